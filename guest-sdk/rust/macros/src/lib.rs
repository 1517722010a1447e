//! The derives and attributes of the Millstream SDK; the crate `millstream-sdk` documents and re-exports them.
//!
//! Each turns what stands in the source (a struct's fields, a function's signature) into two things: the
//! specification that becomes the module's manifest, and the loop that calls the user's code row by row over
//! typed views of columns.

mod aggregate;
mod attribute;
mod block;
mod columns;
mod function;
mod map;
mod map_block;
mod migrate;
mod module;
mod parameters;
mod process;
mod returns;
mod row;
mod signature;
mod source;
mod window;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct a row that functions read: one column a field, of the field's name or that of
/// `#[column(name = "…")]`.
#[proc_macro_derive(Input, attributes(column))]
pub fn derive_input(item: TokenStream) -> TokenStream {
    derive(item, row::input)
}

/// Makes a struct a row that functions make: one column a field.
#[proc_macro_derive(Output, attributes(column))]
pub fn derive_output(item: TokenStream) -> TokenStream {
    derive(item, row::output)
}

/// Makes a struct a value that the host keeps: one column a field, with the version of `#[state(version = 2)]`, or 1.
/// `#[state(version = 2, migrates(1))]` also lists the earlier versions for which there is a function under
/// `#[millstream::migrate(from = 1)]`.
#[proc_macro_derive(State, attributes(column, state))]
pub fn derive_state(item: TokenStream) -> TokenStream {
    derive(item, row::state)
}

/// Makes a struct the columns of a batch, for functions over whole columns.
#[proc_macro_derive(Columns, attributes(column))]
pub fn derive_columns(item: TokenStream) -> TokenStream {
    derive(item, columns::derive)
}

/// Makes a struct a function's parameters, required but for those with a `#[parameter(default = 15)]`.
#[proc_macro_derive(Parameters, attributes(parameter))]
pub fn derive_parameters(item: TokenStream) -> TokenStream {
    derive(item, parameters::derive)
}

/// Makes a struct the holder of a function's states, of parameters under `#[parameter]`, and of memory under `#[memory]`,
/// which starts as its type's default with every instance.
#[proc_macro_derive(Function, attributes(state, parameter, memory))]
pub fn derive_function(item: TokenStream) -> TokenStream {
    derive(item, function::derive)
}

/// Makes a function of one row a map function; with `columns`, a function of whole columns. On an impl block its method
/// `map` is the function, which has the struct's states and parameters and the methods `open`, `close`,
/// `before_barrier` and `end_of_input`. Other options are `name = "…"`, in place of the function's own or the struct's in
/// snake case, and `carry = "replace"`, in place of `"extend"`.
#[proc_macro_attribute]
pub fn map(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute(arguments, item, map::expand)
}

/// Makes an impl block a keyed process function. Options are `name = "…"`, in place of the struct's in snake case, `carry =
/// "extend"` for the main output, in place of `"replace"`, and `timers("event", "processing")`, the clocks on which
/// it sets timers, in place of event time alone.
#[proc_macro_attribute]
pub fn process(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute(arguments, item, process::expand)
}

/// Makes an impl block an aggregate function. Options are `name = "…"` and `carry = "replace"`.
#[proc_macro_attribute]
pub fn aggregate(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute(arguments, item, aggregate::expand)
}

/// Makes a function of a window's rows a window function; on an impl block its method `apply` is the function, as with
/// `map`. Options are `name = "…"` and `carry = "replace"`.
#[proc_macro_attribute]
pub fn window(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute(arguments, item, window::expand)
}

/// Makes a function from the old type of a state to the new one, `fn(Old) -> New`, what takes stored values of the version
/// `from = 1` over. The new type lists that version: `#[state(version = 2, migrates(1))]`.
#[proc_macro_attribute]
pub fn migrate(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let from = parse_macro_input!(arguments as migrate::From);
    let item = parse_macro_input!(item as syn::ItemFn);
    migrate::expand(&from, &item).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Lists a module's functions and exports them: `module! { name: "…", doc: "…", functions: [one, Another] }`. Name and
/// documentation are the crate's where they are left out.
#[proc_macro]
pub fn module(arguments: TokenStream) -> TokenStream {
    let list = parse_macro_input!(arguments as module::List);
    module::expand(&list).into()
}

fn derive(item: TokenStream, expand: fn(&DeriveInput) -> syn::Result<Tokens>) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expand(&item).unwrap_or_else(syn::Error::into_compile_error).into()
}

fn attribute<T: syn::parse::Parse>(
    arguments: TokenStream,
    item: TokenStream,
    expand: fn(attribute::Arguments, T) -> syn::Result<Tokens>,
) -> TokenStream {
    let arguments = parse_macro_input!(arguments as attribute::Arguments);
    let item = parse_macro_input!(item as T);
    expand(arguments, item).unwrap_or_else(syn::Error::into_compile_error).into()
}

//! `#[millstream::window]`: the loop over windows around a function of a window's rows.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Error, Item, ItemFn, ItemImpl, Result, Signature, Type};

use crate::aggregate::refuse_result;
use crate::attribute::{Arguments, Carry};
use crate::block::{Block, Ports};
use crate::map::{spec, unused_allowance};
use crate::returns::Returns;
use crate::signature::{Extra, arguments, error_at, extra, receiver};
use crate::source::{doc, elided, plain_name, snake_case, with_lifetime};

/// The function as it stands, and a type of the same name that is the window function; or a struct's methods, and the
/// function around them.
pub(crate) fn expand(options: Arguments, item: Item) -> Result<Tokens> {
    options.refuse(true, true)?;
    match item {
        Item::Fn(item) => {
            let (ident, context) = (&item.sig.ident, quote!(&self.context));
            let function = Window::new(&item.sig, quote!(#ident), context)?.function(&options, &item)?;
            Ok(quote!(#item #function))
        }
        Item::Impl(item) => block(&options, &item),
        other => {
            let message = "expected a function, or an impl block with a method `apply`";
            Err(Error::new_spanned(other, message))
        }
    }
}

/// The impl block as it stands, and the window function around its method `apply`.
fn block(options: &Arguments, item: &ItemImpl) -> Result<Tokens> {
    let block = Block::new(item)?;
    let method = block.required("apply", METHOD)?;
    receiver(&method.sig, "&mut self")?;
    let window = Window::new(&method.sig, quote!(__it.function.apply), quote!(&__it.context))?;
    if window.parameters.is_some() {
        let message = "the parameters of an impl block are fields of its struct under `#[parameter]`";
        return Err(error_at(&method.sig.ident, message));
    }
    let name = block.name;
    let fields = quote! {
        spec.parameters = <#name as ::millstream::function::Fields>::parameters();
        spec.states = <#name as ::millstream::function::Fields>::states();
    };
    let spec =
        window.spec(&options.name_or(snake_case(&name.to_string())), &doc(&item.attrs), options, &fields)?;
    let begin = quote!(__it.begin(0, ::std::primitive::i64::MIN););
    let apply = window.apply(&begin, &quote!(__it.flush();));
    let calls = quote! {
        impl ::millstream::function::WindowFunction for Open {
            fn apply(&mut self, __call: ::millstream::function::WindowCall) -> ::millstream::function::Call {
                let __it = &mut self.0;
                #apply
            }
        }
    };
    let ports = Ports::of_return(&block, &window.returns.row)?;
    let function = block.function_without_keys(&quote!(Window), &spec, &ports, &calls)?;
    Ok(quote!(#item #function))
}

/// A function or method that takes a window.
struct Window {
    /// How it is called.
    path: Tokens,
    key: Type,
    row: Type,
    call: Vec<Tokens>,
    parameters: Option<Type>,
    returns: Returns,
}

const SHAPE: &str = "fn name(key: Key, window: Window, rows: &[Row<'_>]) -> …";
const METHOD: &str = "fn apply(&mut self, key: Key, window: Window, rows: &[Row<'_>]) -> …";

impl Window {
    /// Reads a signature. `context` is what is passed for a `&Context`.
    fn new(signature: &Signature, path: Tokens, context: Tokens) -> Result<Self> {
        let arguments = arguments(signature)?;
        let shape =
            || error_at(&signature.ident, &format!("expected `{SHAPE}`, with `()` as the key of no key"));
        let (_, key) = arguments.first().ok_or_else(shape)?;
        let (mut row, mut call, mut parameters) = (None, Vec::new(), None);
        for (name, r#type) in &arguments[1..] {
            if let Some(rows) = slice_of(r#type) {
                row = Some(elided(rows));
                call.push(quote!(&__rows));
                continue;
            }
            call.push(match extra(name, r#type)? {
                Extra::Window => quote!(__window),
                Extra::Context => context.clone(),
                Extra::Parameters(declared) => {
                    parameters = Some(with_lifetime(declared, "'static"));
                    quote!(&self.parameters)
                }
                _ => return Err(Error::new_spanned(r#type, format!("expected `{SHAPE}`"))),
            });
        }
        let returns = Returns::new(&signature.output);
        refuse_result(&returns, &signature.ident)?;
        Ok(Self { path, key: elided(key), row: row.ok_or_else(shape)?, call, parameters, returns })
    }

    /// The specification; `fields` sets what the holder of the function declares.
    fn spec(&self, name: &str, doc: &str, options: &Arguments, fields: &Tokens) -> Result<Tokens> {
        let Self { key, row, returns, .. } = self;
        let spec = spec(name, doc, &quote!(Window));
        let (output, carry) = (elided(&returns.row), options.carry_or(Carry::Extend)?.tokens());
        Ok(quote! {{
            let mut spec = #spec;
            #fields
            spec.key = <#key as ::millstream::Input>::columns("key");
            spec.inputs.push(::millstream::manifest::InputSpec {
                name: "input".into(),
                keyed: true,
                columns: <#row as ::millstream::Input>::columns("value"),
                times: false,
            });
            spec.outputs.push(::millstream::manifest::OutputSpec {
                name: "output".into(),
                columns: <#output as ::millstream::Output>::columns("value"),
                carry: #carry,
            });
            spec
        }})
    }

    fn function(&self, options: &Arguments, item: &ItemFn) -> Result<Tokens> {
        let (vis, ident) = (&item.vis, &item.sig.ident);
        let parameters = self.parameters.clone().unwrap_or_else(|| syn::parse_quote!(()));
        let name = options.name_or(plain_name(ident));
        let summary = format!("The window function `{name}`, as `module!` lists it.");
        let fields = quote!(spec.parameters = <#parameters as ::millstream::Parameters>::specs(););
        let spec = self.spec(&name, &doc(&item.attrs), options, &fields)?;
        let apply = self.apply(&quote!(self.context.begin();), &quote!(self.context.flush();));
        let unused = unused_allowance(ident);
        Ok(quote! {
            #[doc = #summary]
            #unused
            #vis struct #ident {
                parameters: #parameters,
                context: ::millstream::Context,
            }

            impl ::millstream::function::Function for #ident {
                fn spec() -> ::millstream::manifest::FunctionSpec {
                    #spec
                }

                fn open() -> ::std::result::Result<::millstream::function::Opened, ::std::string::String> {
                    let parameters = <#parameters as ::millstream::Parameters>::read()?;
                    let function = Self { parameters, context: ::std::default::Default::default() };
                    ::std::result::Result::Ok(
                        ::millstream::function::Opened::Window(::std::boxed::Box::new(function)),
                    )
                }
            }

            impl ::millstream::function::Hooks for #ident {}

            impl ::millstream::function::WindowFunction for #ident {
                fn apply(&mut self, __call: ::millstream::function::WindowCall) -> ::millstream::function::Call {
                    #apply
                }
            }
        })
    }

    /// The loop over windows, between the beginning and the end of a call.
    fn apply(&self, begin: &Tokens, flush: &Tokens) -> Tokens {
        let Self { path, key, row, call, returns, .. } = self;
        let output = elided(&returns.row);
        let call = quote!(#path(<#key as ::millstream::Input>::read(&__keys, __key as usize), #(#call),*));
        let emit = returns.emit(&call, &quote!(__out), &quote!(__at));
        quote! {
            #begin
            let __count = __call.windows.len();
            ::millstream::__private::check_runs(&__call.offsets, __count, __call.rows.rows)?;
            ::millstream::__private::check_rows(__call.key_of_window.len(), __count)?;
            ::millstream::__private::check_positions(&__call.key_of_window, __call.keys.rows)?;
            let __reader = <#row as ::millstream::Input>::reader(&__call.rows)?;
            let __keys = <#key as ::millstream::Input>::reader(&__call.keys)?;
            let mut __out = ::millstream::Collector::<#output>::new(0, __count);
            let mut __rows = ::std::vec::Vec::new();
            for (__at, (&__key, &__window)) in __call.key_of_window.iter().zip(&__call.windows).enumerate() {
                let _ = __window;
                let __run = __call.offsets[__at] as usize..__call.offsets[__at + 1] as usize;
                __rows.clear();
                __rows.extend(__run.map(|__row| <#row as ::millstream::Input>::read(&__reader, __row)));
                __out.at(__at);
                #emit
            }
            let mut __outcome = ::millstream::function::Outcome::default();
            __outcome.add(__out, __count);
            #flush
            ::std::result::Result::Ok(__outcome)
        }
    }
}

/// `T` of `&[T]`.
fn slice_of(r#type: &Type) -> Option<&Type> {
    match r#type {
        Type::Reference(reference) => match reference.elem.as_ref() {
            Type::Slice(slice) => Some(&slice.elem),
            _ => None,
        },
        _ => None,
    }
}

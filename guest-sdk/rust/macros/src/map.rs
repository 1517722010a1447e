//! `#[millstream::map]`: the loop over rows (or the one call over columns) around a user's function.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Error, Ident, Item, ItemFn, Result, Type};

use crate::attribute::{Arguments, Carry};
use crate::map_block;
use crate::returns::{Many, Returns, argument_of};
use crate::signature::{Extra, arguments, error_at, extra};
use crate::source::{doc, elided, plain_name, with_lifetime};

/// The function as it stands, and a type of the same name that is the map function; or a struct's methods, and the
/// function around them.
pub(crate) fn expand(options: Arguments, item: Item) -> Result<Tokens> {
    options.refuse(false, true)?;
    let item = match item {
        Item::Fn(item) => item,
        Item::Impl(item) => return map_block::expand(&options, &item),
        other => {
            return Err(Error::new_spanned(
                other,
                "expected a function, or an impl block with a method `map`",
            ));
        }
    };
    let map = Map::new(&options, &item)?;
    let (row, output, apply) = match options.is_columns() {
        true => map.over_columns()?,
        false => map.over_rows(),
    };
    let function = map.function(&row, &output, &apply, options.carry_or(Carry::Extend)?);
    Ok(quote!(#item #function))
}

struct Map<'a> {
    item: &'a ItemFn,
    name: String,
    input: &'a Type,
    call: Vec<Tokens>,
    parameters: Type,
    times: bool,
}

impl<'a> Map<'a> {
    fn new(options: &Arguments, item: &'a ItemFn) -> Result<Self> {
        let signature = &item.sig;
        let arguments = arguments(signature)?;
        let Some((_, input)) = arguments.first() else {
            return Err(error_at(
                &signature.ident,
                "a map function takes a row: `fn name(row: Row<'_>) -> …`",
            ));
        };
        let name = options.name_or(plain_name(&signature.ident));
        let mut map =
            Self { item, name, input, call: Vec::new(), parameters: syn::parse_quote!(()), times: false };
        for (name, r#type) in &arguments[1..] {
            map.argument(name, r#type)?;
        }
        Ok(map)
    }

    fn argument(&mut self, name: &str, r#type: &Type) -> Result<()> {
        self.call.push(match extra(name, r#type)? {
            Extra::Context => quote!(&self.context),
            Extra::EventTime => {
                self.times = true;
                quote!(__times.at(__at))
            }
            Extra::Parameters(parameters) => {
                self.parameters = with_lifetime(parameters, "'static");
                quote!(&self.parameters)
            }
            _ => {
                let expected = "expected `&Context`, `EventTime` or a reference to parameters";
                return Err(Error::new_spanned(r#type, format!("no argument of a map function: {expected}")));
            }
        });
        Ok(())
    }

    /// Specifications of input and output columns, and the body of `apply`.
    fn over_rows(&self) -> (Tokens, Tokens, Tokens) {
        let returns = Returns::new(&self.item.sig.output);
        let (input, output) = (elided(self.input), elided(&returns.row));
        let (name, extra) = (&self.item.sig.ident, &self.call);
        let call = quote!(#name(<#input as ::millstream::Input>::read(&__reader, __at), #(#extra),*));
        let prepare = quote! {
            let __reader = <#input as ::millstream::Input>::reader(&__call.rows)?;
            let __times = ::millstream::__private::Times::of(&__call.times, __call.rows.rows)?;
            let _ = &__times;
            let __rows = __call.rows.rows;
        };
        let body = match (returns.many, returns.fallible) {
            (Many::One, false) => one_each(&prepare, &output, &call),
            _ => collected(&prepare, &output, &returns.emit(&call, &quote!(__out), &quote!(__at))),
        };
        let columns =
            |r#trait: Tokens, row: &Type| quote!(<#row as ::millstream::#r#trait>::columns("value"));
        (columns(quote!(Input), &input), columns(quote!(Output), &output), body)
    }

    /// The same for a function over whole columns.
    fn over_columns(&self) -> Result<(Tokens, Tokens, Tokens)> {
        if self.times {
            return Err(error_at(&self.item.sig.ident, "a function over columns reads no event times"));
        }
        let returns = Returns::new(&self.item.sig.output);
        let (output, outcome) = match argument_of(&returns.row, "Picked") {
            Some(output) => (output, quote!(__made.into_outcome())),
            None => (&returns.row, quote!(::millstream::__private::columns_outcome(__made, __rows))),
        };
        let (name, extra, input) = (&self.item.sig.ident, &self.call, self.input);
        let attempt = returns.fallible.then(|| quote!(?));
        let body = quote! {
            let __rows = __call.rows.rows;
            let __input = <#input as ::millstream::Columns>::from_batch(__call.rows)?;
            let __made = #name(__input, #(#extra),*) #attempt;
            #outcome
        };
        let columns = |columns: &Type| quote!(<#columns as ::millstream::Columns>::specs());
        Ok((columns(input), columns(output), body))
    }

    fn function(&self, input: &Tokens, output: &Tokens, apply: &Tokens, carry: Carry) -> Tokens {
        let (vis, ident, name) = (&self.item.vis, &self.item.sig.ident, &self.name);
        let (parameters, times, carry) = (&self.parameters, self.times, carry.tokens());
        let doc = doc(&self.item.attrs);
        let summary = format!("The map function `{name}`, as `module!` lists it.");
        let spec = spec(name, &doc, &quote!(Map));
        let unused = unused_allowance(ident);
        quote! {
            #[doc = #summary]
            #unused
            #vis struct #ident {
                parameters: #parameters,
                context: ::millstream::Context,
            }

            impl ::millstream::function::Function for #ident {
                fn spec() -> ::millstream::manifest::FunctionSpec {
                    let mut spec = #spec;
                    spec.parameters = <#parameters as ::millstream::Parameters>::specs();
                    spec.inputs.push(::millstream::manifest::InputSpec {
                        name: "input".into(),
                        keyed: false,
                        columns: #input,
                        times: #times,
                    });
                    spec.outputs.push(::millstream::manifest::OutputSpec {
                        name: "output".into(),
                        columns: #output,
                        carry: #carry,
                    });
                    spec
                }

                fn open() -> ::std::result::Result<::millstream::function::Opened, ::std::string::String> {
                    let parameters = <#parameters as ::millstream::Parameters>::read()?;
                    let function = Self { parameters, context: ::std::default::Default::default() };
                    ::std::result::Result::Ok(::millstream::function::Opened::Map(::std::boxed::Box::new(function)))
                }
            }

            impl ::millstream::function::Hooks for #ident {}

            impl ::millstream::function::MapFunction for #ident {
                fn apply(
                    &mut self,
                    __call: ::millstream::function::MapCall,
                ) -> ::std::result::Result<::millstream::function::Outcome, ::millstream::function::CallError> {
                    self.context.begin();
                    let __outcome = self.rows(__call)?;
                    self.context.flush();
                    ::std::result::Result::Ok(__outcome)
                }
            }

            impl #ident {
                fn rows(
                    &self,
                    __call: ::millstream::function::MapCall,
                ) -> ::std::result::Result<::millstream::function::Outcome, ::millstream::function::CallError> {
                    #apply
                }
            }
        }
    }
}

/// A loop that makes one row of each: nothing to gather but the columns.
pub(crate) fn one_each(prepare: &Tokens, output: &Type, call: &Tokens) -> Tokens {
    quote! {
        #prepare
        let mut __builder = <#output as ::millstream::Output>::builder(__rows);
        for __at in 0..__rows {
            ::millstream::Output::append_to(#call, &mut __builder);
        }
        let __columns = <#output as ::millstream::Output>::finish(__builder);
        ::std::result::Result::Ok(::millstream::function::Outcome::each(__rows, __columns))
    }
}

/// A loop that gathers rows and where they come from.
pub(crate) fn collected(prepare: &Tokens, output: &Type, emit: &Tokens) -> Tokens {
    quote! {
        #prepare
        let mut __out = ::millstream::Collector::<#output>::new(0, __rows);
        let mut __rejections = ::millstream::__private::Rejections::default();
        for __at in 0..__rows {
            __out.at(__at);
            #emit
        }
        let mut __outcome = ::millstream::function::Outcome::default();
        __outcome.add(__out, __rows);
        __outcome.reject(__rejections);
        ::std::result::Result::Ok(__outcome)
    }
}

/// A specification with name, kind and documentation.
pub(crate) fn spec(name: &str, doc: &str, kind: &Tokens) -> Tokens {
    quote! {
        ::millstream::manifest::FunctionSpec::new(#name, ::millstream::manifest::Kind::#kind, #doc)
    }
}

/// A type named like a function is not in camel case, which is the point of it.
pub(crate) fn unused_allowance(ident: &Ident) -> Tokens {
    let reason = format!("`{ident}` is the function's name, in the namespace of types");
    quote!(#[allow(non_camel_case_types, reason = #reason)])
}

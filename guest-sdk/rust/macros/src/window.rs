//! `#[millstream::window]`: the loop over windows around a function of a window's rows.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Error, ItemFn, Result, Type};

use crate::attribute::{Arguments, Carry};
use crate::map::{spec, unused_allowance};
use crate::returns::Returns;
use crate::signature::{Extra, arguments, error_at, extra};
use crate::source::{doc, elided, plain_name, with_lifetime};

/// The function as it stands, and a type of the same name that is the window function.
pub(crate) fn expand(options: Arguments, item: ItemFn) -> Result<Tokens> {
    options.refuse(true, true)?;
    let function = Window::new(&item)?.expand(&options)?;
    Ok(quote!(#item #function))
}

struct Window<'a> {
    item: &'a ItemFn,
    key: Type,
    row: Type,
    call: Vec<Tokens>,
    parameters: Type,
}

const SHAPE: &str = "fn name(key: Key, window: Window, rows: &[Row<'_>]) -> …";

impl<'a> Window<'a> {
    fn new(item: &'a ItemFn) -> Result<Self> {
        let arguments = arguments(&item.sig)?;
        let shape =
            || error_at(&item.sig.ident, &format!("expected `{SHAPE}`, with `()` as the key of no key"));
        let (_, key) = arguments.first().ok_or_else(shape)?;
        let (mut row, mut call, mut parameters) = (None, Vec::new(), syn::parse_quote!(()));
        for (name, r#type) in &arguments[1..] {
            if let Some(rows) = slice_of(r#type) {
                row = Some(elided(rows));
                call.push(quote!(&__rows));
                continue;
            }
            call.push(match extra(name, r#type)? {
                Extra::Window => quote!(__window),
                Extra::Context => quote!(&self.context),
                Extra::Parameters(declared) => {
                    parameters = with_lifetime(declared, "'static");
                    quote!(&self.parameters)
                }
                _ => return Err(Error::new_spanned(r#type, format!("expected `{SHAPE}`"))),
            });
        }
        Ok(Self { item, key: elided(key), row: row.ok_or_else(shape)?, call, parameters })
    }

    fn expand(&self, options: &Arguments) -> Result<Tokens> {
        let Self { item, key, row, parameters, .. } = self;
        let (vis, ident) = (&item.vis, &item.sig.ident);
        let name = options.name_or(plain_name(ident));
        let summary = format!("The window function `{name}`, as `module!` lists it.");
        let spec = spec(&name, &doc(&item.attrs), &quote!(Window));
        let returns = Returns::new(&item.sig.output);
        if returns.fallible {
            return Err(error_at(ident, "only rows can be refused: expected no `Result` here"));
        }
        let (output, carry) = (elided(&returns.row), options.carry_or(Carry::Extend)?.tokens());
        let apply = self.apply(&returns);
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
                    let mut spec = #spec;
                    spec.parameters = <#parameters as ::millstream::Parameters>::specs();
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

    fn apply(&self, returns: &Returns) -> Tokens {
        let Self { item, key, row, call, .. } = self;
        let (name, output) = (&item.sig.ident, elided(&returns.row));
        let call = quote!(#name(<#key as ::millstream::Input>::read(&__keys, __key as usize), #(#call),*));
        let emit = returns.emit(&call, &quote!(__out), &quote!(__at));
        quote! {
            self.context.begin();
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
            self.context.flush();
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

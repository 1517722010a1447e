//! `#[millstream::map]` on an impl block: a map function with state of its subtask, parameters, and hooks.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Error, ImplItemFn, ItemImpl, Result, Type};

use crate::attribute::{Arguments, Carry};
use crate::block::{Block, Ports};
use crate::map::{collected, one_each, spec};
use crate::returns::{Many, Returns};
use crate::signature::{Extra, arguments, error_at, extra, receiver};
use crate::source::{doc, elided, snake_case};

/// The impl block as it stands, and the map function around it.
pub(crate) fn expand(options: &Arguments, item: &ItemImpl) -> Result<Tokens> {
    let block = Block::new(item)?;
    if options.is_columns() {
        return Err(error_at(block.name, "`columns` is an option of a map function that is no impl block"));
    }
    let map = Map::new(block.required("map", SHAPE)?)?;
    let ports = Ports::of_return(&block, &map.returns.row)?;
    let function =
        block.function_without_keys(&quote!(Map), &map.spec(&block, options, item)?, &ports, &map.calls())?;
    Ok(quote!(#item #function))
}

/// The method that takes a row.
struct Map {
    row: Type,
    extras: Vec<Tokens>,
    times: bool,
    returns: Returns,
}

const SHAPE: &str = "fn map(&mut self, row: Row<'_>, …) -> Row";

impl Map {
    fn new(method: &ImplItemFn) -> Result<Self> {
        receiver(&method.sig, "&mut self")?;
        let arguments = arguments(&method.sig)?;
        let Some((_, row)) = arguments.first() else {
            return Err(error_at(&method.sig.ident, &format!("expected `{SHAPE}`")));
        };
        let (mut extras, mut times) = (Vec::new(), false);
        for (name, r#type) in &arguments[1..] {
            extras.push(match extra(name, r#type)? {
                Extra::Context => quote!(&__it.context),
                Extra::EventTime => {
                    times = true;
                    quote!(__times.at(__at))
                }
                _ => {
                    let message = "no argument of `map`: expected `&Context` or `EventTime`; parameters are fields under `#[parameter]`";
                    return Err(Error::new_spanned(r#type, message));
                }
            });
        }
        Ok(Self { row: elided(row), extras, times, returns: Returns::new(&method.sig.output) })
    }

    fn spec(&self, block: &Block<'_>, options: &Arguments, item: &ItemImpl) -> Result<Tokens> {
        let (name, row, times) = (block.name, &self.row, self.times);
        let spec = spec(&options.name_or(snake_case(&name.to_string())), &doc(&item.attrs), &quote!(Map));
        let (output, carry) = (elided(&self.returns.row), options.carry_or(Carry::Extend)?.tokens());
        Ok(quote! {{
            let mut spec = #spec;
            spec.parameters = <#name as ::millstream::function::Fields>::parameters();
            spec.states = <#name as ::millstream::function::Fields>::states();
            spec.inputs.push(::millstream::manifest::InputSpec {
                name: "input".into(),
                keyed: false,
                columns: <#row as ::millstream::Input>::columns("value"),
                times: #times,
            });
            spec.outputs.push(::millstream::manifest::OutputSpec {
                name: "output".into(),
                columns: <#output as ::millstream::Output>::columns("value"),
                carry: #carry,
            });
            spec
        }})
    }

    fn calls(&self) -> Tokens {
        let rows = self.rows();
        quote! {
            impl Open {
                fn rows(&mut self, __call: ::millstream::function::MapCall) -> ::millstream::function::Call {
                    let __it = &mut self.0;
                    #rows
                }
            }

            impl ::millstream::function::MapFunction for Open {
                fn apply(&mut self, __call: ::millstream::function::MapCall) -> ::millstream::function::Call {
                    self.0.begin(0, ::std::primitive::i64::MIN);
                    let __outcome = self.rows(__call)?;
                    self.0.flush();
                    ::std::result::Result::Ok(__outcome)
                }
            }
        }
    }

    /// The loop over rows.
    fn rows(&self) -> Tokens {
        let Self { row, extras, returns, .. } = self;
        let output = elided(&returns.row);
        let call =
            quote!(__it.function.map(<#row as ::millstream::Input>::read(&__reader, __at), #(#extras),*));
        let prepare = quote! {
            let __reader = <#row as ::millstream::Input>::reader(&__call.rows)?;
            let __times = ::millstream::__private::Times::of(&__call.times, __call.rows.rows)?;
            let _ = &__times;
            let __rows = __call.rows.rows;
        };
        match (returns.many, returns.fallible) {
            (Many::One, false) => one_each(&prepare, &output, &call),
            _ => collected(&prepare, &output, &returns.emit(&call, &quote!(__out), &quote!(__at))),
        }
    }
}

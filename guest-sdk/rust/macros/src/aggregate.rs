//! `#[millstream::aggregate]`: accumulate, merge and finish over whole batches of groups.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Error, Ident, ImplItemFn, ItemImpl, Result, Type};

use crate::attribute::{Arguments, Carry};
use crate::block::{Block, Ports};
use crate::map::spec;
use crate::process::handle;
use crate::returns::Returns;
use crate::signature::{Extra, arguments, error_at, extra, receiver};
use crate::source::{doc, elided, snake_case, with_lifetime};

/// The impl block as it stands, and the aggregate function around it.
pub(crate) fn expand(options: Arguments, item: ItemImpl) -> Result<Tokens> {
    options.refuse(true, true)?;
    let function = Aggregate::new(&item)?.expand(&options, &item)?;
    Ok(quote!(#item #function))
}

struct Aggregate<'a> {
    block: Block<'a>,
    accumulate: &'a ImplItemFn,
    finish: &'a ImplItemFn,
    accumulator: Type,
    row: &'a Type,
}

const ACCUMULATE: &str = "fn accumulate(&self, accumulator: &mut Accumulator, row: Row<'_>)";
const FINISH: &str = "fn finish(&self, accumulator: &Accumulator, key: Key, window: Window) -> Row";

impl<'a> Aggregate<'a> {
    fn new(item: &'a ItemImpl) -> Result<Self> {
        let block = Block::new(item)?;
        let accumulate = block.required("accumulate", ACCUMULATE)?;
        let finish = block.required("finish", FINISH)?;
        receiver(&accumulate.sig, "&self")?;
        receiver(&finish.sig, "&self")?;
        let shape = || error_at(&accumulate.sig.ident, &format!("expected `{ACCUMULATE}`"));
        let arguments = arguments(&accumulate.sig)?;
        let [(_, Type::Reference(accumulator)), (_, row), ..] = arguments.as_slice() else {
            return Err(shape());
        };
        let accumulator = with_lifetime(&accumulator.elem, "'static");
        Ok(Self { block, accumulate, finish, accumulator, row })
    }

    fn expand(&self, options: &Arguments, item: &ItemImpl) -> Result<Tokens> {
        let (key, finish) = self.finish()?;
        let (times, accumulate) = self.accumulate()?;
        let merge = self.merge();
        let spec = self.spec(options, item, &key, times)?;
        let calls = quote! {
            impl ::millstream::function::AggregateFunction for Open {
                fn accumulate(
                    &mut self,
                    __call: ::millstream::function::AccumulateCall,
                ) -> ::millstream::function::Call<::millstream::function::Accumulated> {
                    let __it = &mut self.0;
                    #accumulate
                }

                fn merge(
                    &mut self,
                    into: ::millstream::column::Batch,
                    other: ::millstream::column::Batch,
                ) -> ::millstream::function::Call<::millstream::column::Batch> {
                    #merge
                }

                fn finish(&mut self, __call: ::millstream::function::FinishCall) -> ::millstream::function::Call {
                    let __it = &mut self.0;
                    #finish
                }
            }
        };
        let ports = Ports::of_return(&self.block, &Returns::new(&self.finish.sig.output).row)?;
        self.block.function_without_keys(&quote!(Aggregate), &spec, &ports, &calls)
    }

    fn spec(&self, options: &Arguments, item: &ItemImpl, key: &Type, times: bool) -> Result<Tokens> {
        let (name, accumulator, row) = (self.block.name, &self.accumulator, elided(self.row));
        let spec =
            spec(&options.name_or(snake_case(&name.to_string())), &doc(&item.attrs), &quote!(Aggregate));
        let output = elided(&Returns::new(&self.finish.sig.output).row);
        let carry = options.carry_or(Carry::Extend)?.tokens();
        let merges = self.block.method("merge").is_some();
        Ok(quote! {{
            let mut spec = #spec;
            spec.parameters = <#name as ::millstream::function::Fields>::parameters();
            spec.states = <#name as ::millstream::function::Fields>::states();
            spec.key = <#key as ::millstream::Input>::columns("key");
            spec.inputs.push(::millstream::manifest::InputSpec {
                name: "input".into(),
                keyed: true,
                columns: <#row as ::millstream::Input>::columns("value"),
                times: #times,
            });
            spec.outputs.push(::millstream::manifest::OutputSpec {
                name: "output".into(),
                columns: <#output as ::millstream::Output>::columns("value"),
                carry: #carry,
            });
            spec.accumulator = ::std::option::Option::Some(::millstream::manifest::AccumulatorSpec {
                columns: <#accumulator as ::millstream::Input>::columns("value"),
                version: <#accumulator as ::millstream::State>::VERSION,
                migrations: <#accumulator as ::millstream::State>::migrations(),
                merges: #merges,
            });
            spec
        }})
    }

    /// Whether event times are read, and the loop over rows.
    fn accumulate(&self) -> Result<(bool, Tokens)> {
        let (accumulator, row) = (&self.accumulator, elided(self.row));
        let mut times = false;
        let mut extras = Vec::new();
        for (name, r#type) in &arguments(&self.accumulate.sig)?[2..] {
            extras.push(match extra(name, r#type)? {
                Extra::Context => quote!(&__it.context),
                Extra::EventTime => {
                    times = true;
                    quote!(__times.at(__at))
                }
                _ => return Err(Error::new_spanned(r#type, "expected `&Context` or `EventTime`")),
            });
        }
        let create = match self.block.method("create") {
            Some(_) => quote!(|| __it.function.create()),
            None => quote!(<#accumulator as ::std::default::Default>::default),
        };
        let call = quote! {
            __it.function.accumulate(
                &mut __groups[__group as usize],
                <#row as ::millstream::Input>::read(&__reader, __at),
                #(#extras),*
            )
        };
        let handle = handle(&call, &Returns::new(&self.accumulate.sig.output), self.accumulate)?;
        let body = quote! {
            __it.begin(0, ::std::primitive::i64::MIN);
            let mut __groups = ::millstream::__private::accumulators::<#accumulator>(&__call.accumulators, #create)?;
            ::millstream::__private::check_positions(&__call.group_of_row, __groups.len())?;
            ::millstream::__private::check_rows(__call.group_of_row.len(), __call.rows.rows)?;
            let __reader = <#row as ::millstream::Input>::reader(&__call.rows)?;
            let __times = ::millstream::__private::Times::of(&__call.times, __call.rows.rows)?;
            let _ = &__times;
            let mut __rejections = ::millstream::__private::Rejections::default();
            for (__at, &__group) in __call.group_of_row.iter().enumerate() {
                #handle
            }
            __it.flush();
            ::std::result::Result::Ok(::millstream::__private::accumulated(__groups, __rejections))
        };
        Ok((times, body))
    }

    /// The body of `merge`. A block without that method says so in its manifest, and jobs that need it are refused.
    fn merge(&self) -> Tokens {
        let (name, accumulator) = (self.block.name.to_string(), &self.accumulator);
        if self.block.method("merge").is_none() {
            return quote! {
                let _ = (into, other);
                ::std::result::Result::Err(::std::format!("`{}` has no method `merge`", #name).into())
            };
        }
        quote! {
            let __it = &mut self.0;
            __it.begin(0, ::std::primitive::i64::MIN);
            let __merged = ::millstream::__private::merge::<#accumulator>(&into, &other, |into, other| {
                __it.function.merge(into, other)
            })?;
            __it.flush();
            ::std::result::Result::Ok(__merged)
        }
    }

    /// Type of the key, and the loop over groups.
    fn finish(&self) -> Result<(Type, Tokens)> {
        let mut key: Type = syn::parse_quote!(());
        let mut extras = Vec::new();
        let arguments = arguments(&self.finish.sig)?;
        for (name, r#type) in arguments.iter().skip(1) {
            extras.push(match extra(name, r#type)? {
                Extra::Context => quote!(&__it.context),
                Extra::Window => quote!(__window),
                Extra::Parameters(_) | Extra::Other => {
                    key = elided(r#type);
                    quote!(<#key as ::millstream::Input>::read(&__keys, __key as usize))
                }
                _ => return Err(Error::new_spanned(r#type, format!("expected `{FINISH}`"))),
            });
        }
        let returns = Returns::new(&self.finish.sig.output);
        refuse_result(&returns, &self.finish.sig.ident)?;
        let (accumulator, output) = (&self.accumulator, elided(&returns.row));
        let call = quote! {
            __it.function.finish(&<#accumulator as ::millstream::Input>::read(&__accumulators, __at), #(#extras),*)
        };
        let emit = returns.emit(&call, &quote!(__out), &quote!(__at));
        let body = quote! {
            __it.begin(0, ::std::primitive::i64::MIN);
            let __groups = __call.accumulators.rows;
            ::millstream::__private::check_rows(__call.key_of_group.len(), __groups)?;
            ::millstream::__private::check_rows(__call.windows.len(), __groups)?;
            ::millstream::__private::check_positions(&__call.key_of_group, __call.keys.rows)?;
            let __accumulators = <#accumulator as ::millstream::Input>::reader(&__call.accumulators)?;
            let __keys = <#key as ::millstream::Input>::reader(&__call.keys)?;
            let _ = &__keys;
            let mut __out = ::millstream::Collector::<#output>::new(0, __groups);
            for (__at, (&__key, &__window)) in __call.key_of_group.iter().zip(&__call.windows).enumerate() {
                let _ = (__key, __window);
                __out.at(__at);
                #emit
            }
            let mut __outcome = ::millstream::function::Outcome::default();
            __outcome.add(__out, __groups);
            __it.flush();
            ::std::result::Result::Ok(__outcome)
        };
        Ok((key, body))
    }
}

/// Only rows can be refused, and a group or window is none.
pub(crate) fn refuse_result(returns: &Returns, method: &Ident) -> Result<()> {
    match returns.fallible {
        true => Err(error_at(method, "only rows can be refused: expected no `Result` here")),
        false => Ok(()),
    }
}

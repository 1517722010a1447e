//! `#[millstream::process]`: the loops over rows and over timers around a struct's methods.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Error, Ident, ImplItem, ImplItemFn, ItemImpl, Result, Type};

use crate::attribute::{Arguments, Carry};
use crate::block::{Block, Ports};
use crate::map::spec;
use crate::returns::{Many, Returns};
use crate::signature::{Extra, arguments, error_at, extra, receiver};
use crate::source::{doc, elided, snake_case};

/// The impl block as it stands, and the process function around it.
pub(crate) fn expand(options: Arguments, mut item: ItemImpl) -> Result<Tokens> {
    options.refuse(true, false)?;
    let function = Process::new(&item)?.expand(&options, &item)?;
    for method in &mut item.items {
        if let ImplItem::Fn(method) = method {
            method.attrs.retain(|attribute| !attribute.path().is_ident("input"));
        }
    }
    Ok(quote!(#item #function))
}

struct Process<'a> {
    block: Block<'a>,
    inputs: Vec<Input<'a>>,
    ports: Ports,
    on_timer: Option<&'a ImplItemFn>,
}

/// A method that takes the rows of one input port.
struct Input<'a> {
    method: &'a ImplItemFn,
    key: &'a Type,
    row: &'a Type,
    name: String,
}

const SHAPE: &str = "fn process(&mut self, key: Key, row: Row<'_>, …)";

impl<'a> Process<'a> {
    fn new(item: &'a ItemImpl) -> Result<Self> {
        let block = Block::new(item)?;
        let marked = block.marked("input");
        let methods = match marked.is_empty() {
            true => vec![block.required("process", SHAPE)?],
            false => marked,
        };
        let single = methods.len() == 1;
        let inputs =
            methods.into_iter().map(|method| Input::new(method, single)).collect::<Result<Vec<_>>>()?;
        let on_timer = block.method("on_timer");
        let emitting = inputs.iter().map(|input| input.method).chain(on_timer);
        let ports = Ports::of(&emitting.chain(block.emitting_hooks()).collect::<Vec<_>>())?;
        Ok(Self { block, inputs, ports, on_timer })
    }

    fn expand(&self, options: &Arguments, item: &ItemImpl) -> Result<Tokens> {
        let spec = self.spec(options, item)?;
        let inputs = self.inputs.iter().map(|input| self.rows(input)).collect::<Result<Vec<_>>>()?;
        let (positions, count) = (0u32.., self.inputs.len() as u32);
        let timers = self.timers()?;
        let calls = quote! {
            impl ::millstream::function::ProcessFunction for Open {
                fn process(&mut self, __call: ::millstream::function::KeyedCall) -> ::millstream::function::Call {
                    let __it = &mut self.0;
                    match __call.port {
                        #(#positions => #inputs,)*
                        found => ::std::result::Result::Err(
                            ::millstream::function::CallError::Port { ports: #count, found },
                        ),
                    }
                }

                fn on_timer(&mut self, __call: ::millstream::function::TimerCall) -> ::millstream::function::Call {
                    let __it = &mut self.0;
                    #timers
                }
            }
        };
        self.block.function(&quote!(Process), &spec, &self.ports, &calls)
    }

    fn spec(&self, options: &Arguments, item: &ItemImpl) -> Result<Tokens> {
        let name = self.block.name;
        let spec = spec(&options.name_or(snake_case(&name.to_string())), &doc(&item.attrs), &quote!(Process));
        let key = self.key()?;
        let outputs = self.ports.specs(&options.carry_or(Carry::Replace)?.tokens());
        let clocks = options.clocks(self.on_timer.is_some())?;
        let inputs = self.inputs.iter().map(Input::spec).collect::<Result<Vec<_>>>()?;
        Ok(quote! {{
            let mut spec = #spec;
            spec.parameters = <#name as ::millstream::function::Fields>::parameters();
            spec.states = <#name as ::millstream::function::Fields>::states();
            spec.key = <#key as ::millstream::Input>::columns("key");
            spec.inputs = ::std::vec![#(#inputs),*];
            spec.outputs = #outputs;
            spec.timers = ::std::vec![#(#clocks),*];
            spec
        }})
    }

    /// Type of the key that the host sends: that of the first method which looks at it.
    fn key(&self) -> Result<Type> {
        let mut keys: Vec<&Type> = self.inputs.iter().map(|input| input.key).collect();
        if let Some(method) = self.on_timer {
            keys.extend(arguments(&method.sig)?.first().map(|(_, key)| *key));
        }
        Ok(keys.iter().find(|key| !is_unit(key)).map_or(syn::parse_quote!(()), |key| elided(key)))
    }

    /// The loop over the rows of one port.
    fn rows(&self, input: &Input<'_>) -> Result<Tokens> {
        let Input { method, key, row, .. } = input;
        let (method_name, key, row) = (&method.sig.ident, elided(key), elided(row));
        let extra = self.extra(&arguments(&method.sig)?[2..], None)?;
        let call = quote! {
            __it.function.#method_name(
                <#key as ::millstream::Input>::read(&__keys, __key),
                <#row as ::millstream::Input>::read(&__reader, __at),
                #(#extra),*
            )
        };
        let handle = handle(&call, &Returns::new(&method.sig.output), method)?;
        let rows = quote!(__call.rows.rows);
        let (declare, at, gather) =
            (self.ports.declare(&rows), self.ports.at(&quote!(__at)), self.ports.gather(&rows));
        Ok(quote! {{
            ::millstream::__private::check_positions(&__call.key_of_row, __call.keys.rows)?;
            ::millstream::__private::check_rows(__call.key_of_row.len(), __call.rows.rows)?;
            let __keys = <#key as ::millstream::Input>::reader(&__call.keys)?;
            let __reader = <#row as ::millstream::Input>::reader(&__call.rows)?;
            let __times = ::millstream::__private::Times::of(&__call.times, __call.rows.rows)?;
            let _ = &__times;
            let mut __rejections = ::millstream::__private::Rejections::default();
            __it.begin(__call.keys.rows, __call.watermark);
            #declare
            for (__at, &__key) in __call.key_of_row.iter().enumerate() {
                let __key = __key as usize;
                __it.select(__key);
                #at
                #handle
            }
            let mut __outcome = ::millstream::function::Outcome::default();
            #gather
            __outcome.reject(__rejections);
            __it.flush();
            ::std::result::Result::Ok(__outcome)
        }})
    }

    /// The loop over due timers, each of another key.
    fn timers(&self) -> Result<Tokens> {
        let Some(method) = self.on_timer else {
            return Ok(quote! {
                let _ = (__call, __it);
                ::std::result::Result::Err(::millstream::function::CallError::Refused(
                    "this function has no `on_timer`".into(),
                ))
            });
        };
        receiver(&method.sig, "&mut self")?;
        let arguments = arguments(&method.sig)?;
        if arguments.len() < 2 {
            let shape = "expected `fn on_timer(&mut self, key: Key, timer: Timer, …)`";
            return Err(error_at(&method.sig.ident, shape));
        }
        let key = elided(arguments[0].1);
        let extra = self.extra(&arguments[1..], Some(&quote!(__timer)))?;
        let call = quote! {
            __it.function.on_timer(<#key as ::millstream::Input>::read(&__keys, __at), #(#extra),*)
        };
        let handle = handle(&call, &Returns::new(&method.sig.output), method)?;
        let keys = quote!(__call.keys.rows);
        let (declare, at, gather) =
            (self.ports.declare(&keys), self.ports.at(&quote!(__at)), self.ports.gather(&keys));
        Ok(quote! {
            ::millstream::__private::check_rows(__call.times.len(), __call.keys.rows)?;
            let __keys = <#key as ::millstream::Input>::reader(&__call.keys)?;
            let mut __rejections = ::millstream::__private::Rejections::default();
            __it.begin(__call.keys.rows, __call.watermark);
            #declare
            for (__at, &time) in __call.times.iter().enumerate() {
                let __timer = ::millstream::Timer { clock: __call.clock, time };
                __it.select(__at);
                #at
                #handle
            }
            let mut __outcome = ::millstream::function::Outcome::default();
            #gather
            __outcome.reject(__rejections);
            __it.flush();
            ::std::result::Result::Ok(__outcome)
        })
    }

    /// What is passed for the arguments behind key and row.
    fn extra(&self, arguments: &[(String, &Type)], timer: Option<&Tokens>) -> Result<Vec<Tokens>> {
        let pass = |(name, r#type): &(String, &Type)| match extra(name, r#type)? {
            Extra::Context => Ok(quote!(&mut __it.context)),
            Extra::Collector { name, .. } => {
                let collector = self.ports.collector(&name);
                Ok(quote!(&mut #collector))
            }
            Extra::EventTime if timer.is_none() => Ok(quote!(__times.at(__at))),
            Extra::Timer if timer.is_some() => Ok(quote!(#timer)),
            _ => {
                let expected = "expected `&mut ProcessContext`, `&mut Collector<T>` or `EventTime` (of a row) or `Timer`";
                Err(Error::new_spanned(r#type, format!("no argument of a process function: {expected}")))
            }
        };
        arguments.iter().map(pass).collect()
    }
}

impl<'a> Input<'a> {
    fn new(method: &'a ImplItemFn, single: bool) -> Result<Self> {
        receiver(&method.sig, "&mut self")?;
        match arguments(&method.sig)?.as_slice() {
            [(_, key), (_, row), ..] => {
                let name = if single { "input".to_owned() } else { method.sig.ident.to_string() };
                Ok(Self { method, key, row, name })
            }
            _ => Err(error_at(&method.sig.ident, &format!("expected `{SHAPE}`"))),
        }
    }

    fn spec(&self) -> Result<Tokens> {
        let (name, row) = (&self.name, elided(self.row));
        let mut times = false;
        for (argument, r#type) in &arguments(&self.method.sig)?[2..] {
            times |= matches!(extra(argument, r#type)?, Extra::EventTime);
        }
        Ok(quote!(::millstream::manifest::InputSpec {
            name: #name.into(),
            keyed: true,
            columns: <#row as ::millstream::Input>::columns("value"),
            times: #times,
        }))
    }
}

/// A call of a method that returns nothing or `Result<(), Reject>`.
pub(crate) fn handle(call: &Tokens, returns: &Returns, method: &ImplItemFn) -> Result<Tokens> {
    match (is_unit(&returns.row) && returns.many == Many::One, returns.fallible) {
        (true, false) => Ok(quote!(#call;)),
        (true, true) => Ok(quote!(__rejections.accept(__at, #call);)),
        (false, _) => Err(returns_rows(&method.sig.ident)),
    }
}

fn is_unit(r#type: &Type) -> bool {
    matches!(r#type, Type::Tuple(tuple) if tuple.elems.is_empty())
}

fn returns_rows(method: &Ident) -> Error {
    let message = "a process function emits into a `&mut Collector<T>`: expected to return nothing or `Result<(), Reject>`";
    error_at(method, message)
}

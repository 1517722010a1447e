//! An impl block whose methods are a function: finding them, their collectors, their hooks.

use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::{Error, Ident, ImplItem, ImplItemFn, ItemImpl, Result, Type};

use crate::returns::last_segment;
use crate::signature::{Extra, arguments, extra};
use crate::source::elided;

/// The methods of an impl block.
pub(crate) struct Block<'a> {
    /// Name of the struct.
    pub(crate) name: &'a Ident,
    methods: Vec<&'a ImplItemFn>,
}

impl<'a> Block<'a> {
    /// Reads an impl block.
    pub(crate) fn new(item: &'a ItemImpl) -> Result<Self> {
        if let Some((_, path, _)) = &item.trait_ {
            return Err(Error::new_spanned(path, "expected the struct's own methods: `impl Name { … }`"));
        }
        let Some(segment) = last_segment(&item.self_ty) else {
            return Err(Error::new_spanned(&item.self_ty, "expected a struct under `#[derive(Function)]`"));
        };
        let methods = item.items.iter().filter_map(|item| match item {
            ImplItem::Fn(method) => Some(method),
            _ => None,
        });
        Ok(Self { name: &segment.ident, methods: methods.collect() })
    }

    /// The method of this name.
    pub(crate) fn method(&self, name: &str) -> Option<&'a ImplItemFn> {
        self.methods.iter().copied().find(|method| method.sig.ident == name)
    }

    /// The method of this name, or an error that shows its shape.
    pub(crate) fn required(&self, name: &str, shape: &str) -> Result<&'a ImplItemFn> {
        let message = || format!("missing method `{name}`: expected `{shape}`");
        self.method(name).ok_or_else(|| Error::new(self.name.span(), message()))
    }

    /// The methods under an attribute of this name.
    pub(crate) fn marked(&self, name: &str) -> Vec<&'a ImplItemFn> {
        let marked =
            |method: &&ImplItemFn| method.attrs.iter().any(|attribute| attribute.path().is_ident(name));
        self.methods.iter().copied().filter(marked).collect()
    }

    /// `impl Hooks`, and the hooks' names for the manifest.
    fn hooks(&self, ports: &Ports) -> Result<(Tokens, Tokens)> {
        let (mut methods, mut names) = (Vec::new(), Vec::new());
        for (name, hook) in [("before_barrier", quote!(BeforeBarrier)), ("end_of_input", quote!(EndOfInput))]
        {
            if let Some(method) = self.method(name) {
                methods.push(self.hook(method, ports)?);
                names.push(quote!(::millstream::manifest::Hook::#hook));
            }
        }
        let close = self.method("close").map(|_| quote!(self.0.function.close();));
        let hooks = quote! {
            impl ::millstream::function::Hooks for Open {
                #(#methods)*

                fn close(&mut self) {
                    #close
                }
            }
        };
        Ok((hooks, quote!(::std::vec![#(#names),*])))
    }

    fn hook(&self, method: &ImplItemFn, ports: &Ports) -> Result<Tokens> {
        let name = &method.sig.ident;
        let mut call = Vec::new();
        for (argument, r#type) in arguments(&method.sig)? {
            call.push(match extra(&argument, r#type)? {
                Extra::Context => quote!(&mut __it.context),
                Extra::Collector { name, .. } => {
                    let collector = ports.collector(&name);
                    quote!(&mut #collector)
                }
                _ => {
                    let message = "no argument of a hook: expected a context or a `&mut Collector<T>`";
                    return Err(Error::new_spanned(r#type, message));
                }
            });
        }
        let attempt = crate::returns::Returns::new(&method.sig.output).fallible.then(|| quote!(?));
        let (declare, gather) = (ports.declare(&quote!(0)), ports.gather(&quote!(0)));
        Ok(quote! {
            fn #name(&mut self) -> ::millstream::function::Call {
                let __it = &mut self.0;
                __it.begin(0, ::std::primitive::i64::MIN);
                #declare
                __it.function.#name(#(#call),*) #attempt;
                let mut __outcome = ::millstream::function::Outcome::default();
                #gather
                __it.flush();
                ::std::result::Result::Ok(__outcome)
            }
        })
    }

    /// A call of the method `open`, if there is one.
    fn opening(&self) -> Tokens {
        let Some(method) = self.method("open") else { return quote!() };
        let attempt = crate::returns::Returns::new(&method.sig.output).fallible.then(|| quote!(?));
        let context = (method.sig.inputs.len() > 1).then(|| quote!(&mut __running.context));
        quote! {
            __running.begin(0, ::std::primitive::i64::MIN);
            __running.function.open(#context) #attempt;
            __running.flush();
        }
    }

    /// The function around the methods: its specification, how it opens, its hooks, and the calls of its kind, which
    /// are items over a struct `Open` that holds a `Running`.
    pub(crate) fn function(
        &self,
        kind: &Tokens,
        spec: &Tokens,
        ports: &Ports,
        calls: &Tokens,
    ) -> Result<Tokens> {
        let name = self.name;
        let (hooks, lifecycle) = self.hooks(ports)?;
        let opening = self.opening();
        Ok(quote! { const _: () = {
            struct Open(::millstream::function::Running<#name>);

            impl ::millstream::function::Function for #name {
                fn spec() -> ::millstream::manifest::FunctionSpec {
                    let mut spec = #spec;
                    spec.lifecycle = #lifecycle;
                    spec
                }

                fn open() -> ::std::result::Result<::millstream::function::Opened, ::std::string::String> {
                    let mut __running = ::millstream::function::Running::<#name>::open()?;
                    #opening
                    ::std::result::Result::Ok(
                        ::millstream::function::Opened::#kind(::std::boxed::Box::new(Open(__running))),
                    )
                }
            }

            #hooks

            #calls
        };})
    }

    /// The same for a kind without keys, whose states can only be those of its subtask.
    pub(crate) fn function_without_keys(
        &self,
        kind: &Tokens,
        spec: &Tokens,
        ports: &Ports,
        calls: &Tokens,
    ) -> Result<Tokens> {
        let (name, function) = (self.name, self.function(kind, spec, ports, calls)?);
        let message = format!(
            "`{name}` has a state that is kept by key, but a {} function's states are those of its subtask: expected \
             `OperatorState` or `UnionState`",
            kind.to_string().to_lowercase()
        );
        Ok(quote! {
            #function

            const _: () = ::std::assert!(!<#name as ::millstream::function::Fields>::KEYED, #message);
        })
    }

    /// The hooks that emit, or may.
    pub(crate) fn emitting_hooks(&self) -> impl Iterator<Item = &'a ImplItemFn> {
        ["before_barrier", "end_of_input"].into_iter().filter_map(|hook| self.method(hook))
    }
}

/// The output ports of a block: one for each name that a collector argument has.
#[derive(Default)]
pub(crate) struct Ports {
    ports: Vec<(String, Type)>,
}

impl Ports {
    /// The ports that these methods name, in the order of their first mention.
    pub(crate) fn of(methods: &[&ImplItemFn]) -> Result<Self> {
        let mut ports = Self::default();
        for method in methods {
            for (name, r#type) in arguments(&method.sig)? {
                if let Extra::Collector { name, row } = extra(&name, r#type)? {
                    ports.add(name, row);
                }
            }
        }
        Ok(ports)
    }

    /// The one port of a kind whose output is what a method returns; hooks may name it as they like.
    pub(crate) fn of_return(block: &Block<'_>, row: &Type) -> Result<Self> {
        let named = Self::of(&block.emitting_hooks().collect::<Vec<_>>())?;
        match named.ports.as_slice() {
            [] => Ok(Self { ports: vec![("out".to_owned(), elided(row))] }),
            [_] => Ok(named),
            [_, (second, _), ..] => {
                let message = format!("one output, so one name for its collector: found another, `{second}`");
                Err(Error::new(block.name.span(), message))
            }
        }
    }

    fn add(&mut self, name: String, row: &Type) {
        if self.ports.iter().all(|(known, _)| *known != name) {
            self.ports.push((name, elided(row)));
        }
    }

    /// Variable of a port's collector.
    pub(crate) fn collector(&self, port: &str) -> Ident {
        format_ident!("__out_{port}")
    }

    fn collectors(&self) -> Vec<Ident> {
        self.ports.iter().map(|(name, _)| self.collector(name)).collect()
    }

    /// Declares the collectors, with room for so many rows.
    pub(crate) fn declare(&self, rows: &Tokens) -> Tokens {
        let (collectors, positions) = (self.collectors(), 0u32..);
        let rows_of = self.ports.iter().map(|(_, row)| row);
        quote! {
            #(let mut #collectors = ::millstream::Collector::<#rows_of>::new(#positions, #rows);)*
        }
    }

    /// Says which row the next emitted rows come from.
    pub(crate) fn at(&self, row: &Tokens) -> Tokens {
        let collectors = self.collectors();
        quote!(#(#collectors.at(#row);)*)
    }

    /// Puts what was collected into `__outcome`.
    pub(crate) fn gather(&self, rows: &Tokens) -> Tokens {
        let collectors = self.collectors();
        quote!(#(__outcome.add(#collectors, #rows);)*)
    }

    /// Specifications; the first port is the main one, and called `output`.
    pub(crate) fn specs(&self, carry: &Tokens) -> Tokens {
        let specs = self.ports.iter().enumerate().map(|(at, (name, row))| {
            let replace = quote!(::millstream::manifest::Carry::Replace);
            let (name, carry) = if at == 0 { ("output", carry) } else { (name.as_str(), &replace) };
            quote!(::millstream::manifest::OutputSpec {
                name: #name.into(),
                columns: <#row as ::millstream::Output>::columns("value"),
                carry: #carry,
            })
        });
        quote!(::std::vec![#(#specs),*])
    }
}

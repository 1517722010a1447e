//! `millstream::module!`: lists a module's functions once, and exports them.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Path, Result, Token};

/// What stands in `module! { … }`.
pub(crate) struct List {
    name: Option<LitStr>,
    doc: Option<LitStr>,
    functions: Vec<Path>,
}

impl Parse for List {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut list = Self { name: None, doc: None, functions: Vec::new() };
        while !input.is_empty() {
            let member: Ident = input.parse()?;
            input.parse::<Token![:]>()?;
            list.member(&member, input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        match list.functions.is_empty() {
            true => Err(input.error("a module without functions: expected `functions: [first, Second]`")),
            false => Ok(list),
        }
    }
}

impl List {
    fn member(&mut self, member: &Ident, input: ParseStream<'_>) -> Result<()> {
        match member.to_string().as_str() {
            "name" => self.name = Some(input.parse()?),
            "doc" => self.doc = Some(input.parse()?),
            "functions" => {
                let content;
                syn::bracketed!(content in input);
                let functions = Punctuated::<Path, Token![,]>::parse_terminated(&content)?;
                self.functions = functions.into_iter().collect();
            }
            other => {
                let message = format!("unknown member `{other}`: expected `name`, `doc` or `functions`");
                return Err(Error::new(member.span(), message));
            }
        }
        Ok(())
    }
}

/// The module's list, and its exports where the target is WebAssembly.
pub(crate) fn expand(list: &List) -> Tokens {
    let functions = &list.functions;
    let name = match &list.name {
        Some(name) => quote!(#name),
        None => quote!(::std::env!("CARGO_PKG_NAME")),
    };
    let doc = match &list.doc {
        Some(doc) => quote!(#doc),
        None => quote!(::std::env!("CARGO_PKG_DESCRIPTION")),
    };
    quote! {
        /// The functions of this module.
        pub struct MillstreamModule;

        impl ::millstream::function::Module for MillstreamModule {
            const SPEC: ::millstream::manifest::ModuleSpec = ::millstream::manifest::ModuleSpec {
                name: #name,
                version: ::std::env!("CARGO_PKG_VERSION"),
                doc: #doc,
            };

            fn functions() -> ::std::vec::Vec<::millstream::function::Entry> {
                ::std::vec![#(::millstream::function::Entry::of::<#functions>()),*]
            }
        }

        #[cfg(target_family = "wasm")]
        const _: () = {
            type Component = ::millstream::__private::Component<MillstreamModule>;
            ::millstream::__private::export!(Component);
        };
    }
}

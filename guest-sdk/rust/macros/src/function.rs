//! `#[derive(Function)]`: what the struct of a function holds, and how it opens.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{DeriveInput, Field, Result};

use crate::parameters::Parameter;
use crate::source::{named_fields, plain_name};

/// Implements `Fields`.
pub(crate) fn derive(item: &DeriveInput) -> Result<Tokens> {
    let name = &item.ident;
    let mut held = Held::default();
    for field in named_fields(item)? {
        held.add(field)?;
    }
    let Held { states, state_types, state_specs, parameter_specs, opens } = held;
    Ok(quote! {
        impl ::millstream::function::Fields for #name {
            const KEYED: bool = false #(|| <#state_types as ::millstream::Handle>::KEYED)*;

            fn states() -> ::std::vec::Vec<::millstream::manifest::StateSpec> {
                ::std::vec![#(#state_specs),*]
            }

            fn parameters() -> ::std::vec::Vec<::millstream::manifest::ParameterSpec> {
                ::std::vec![#(#parameter_specs),*]
            }

            fn open() -> ::std::result::Result<Self, ::std::string::String> {
                ::std::result::Result::Ok(Self { #(#opens),* })
            }

            fn begin(&mut self, keys: usize) {
                let _ = keys;
                #(::millstream::Handle::begin(&mut self.#states, keys);)*
            }

            #[inline(always)]
            fn select(&mut self, key: usize) {
                let _ = key;
                #(::millstream::Handle::select(&mut self.#states, key);)*
            }

            fn flush(&mut self) {
                #(::millstream::Handle::flush(&mut self.#states);)*
            }
        }
    })
}

#[derive(Default)]
struct Held<'a> {
    states: Vec<&'a syn::Ident>,
    state_types: Vec<&'a syn::Type>,
    state_specs: Vec<Tokens>,
    parameter_specs: Vec<Tokens>,
    opens: Vec<Tokens>,
}

impl<'a> Held<'a> {
    fn add(&mut self, field: &'a Field) -> Result<()> {
        let marked = |name: &str| field.attrs.iter().any(|attribute| attribute.path().is_ident(name));
        let Some(ident) = &field.ident else { return Ok(()) };
        if marked("parameter") {
            let parameter = Parameter::new(field)?;
            let read = parameter.read();
            self.parameter_specs.push(parameter.spec());
            self.opens.push(quote!(#ident: #read));
        } else if marked("memory") {
            self.opens.push(quote!(#ident: ::std::default::Default::default()));
        } else {
            let (r#type, name) = (&field.ty, plain_name(ident));
            self.states.push(ident);
            self.state_types.push(r#type);
            self.state_specs.push(quote!(<#r#type as ::millstream::Handle>::spec(#name)));
            self.opens.push(quote!(#ident: <#r#type as ::millstream::Handle>::open(#name)?));
        }
        Ok(())
    }
}

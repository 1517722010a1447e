//! `#[derive(Parameters)]`: typed parameters out of the job file.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{DeriveInput, Error, Field, Ident, Lit, Result, Type};

use crate::source::{doc, named_fields, plain_name};

/// Implements `Parameters`.
pub(crate) fn derive(item: &DeriveInput) -> Result<Tokens> {
    let name = &item.ident;
    let parameters = named_fields(item)?.into_iter().map(Parameter::new).collect::<Result<Vec<_>>>()?;
    let specs = parameters.iter().map(Parameter::spec);
    let reads = parameters.iter().map(Parameter::read);
    let fields = parameters.iter().map(|parameter| parameter.field);
    Ok(quote! {
        impl ::millstream::Parameters for #name {
            fn specs() -> ::std::vec::Vec<::millstream::manifest::ParameterSpec> {
                ::std::vec![#(#specs),*]
            }

            fn read() -> ::std::result::Result<Self, ::std::string::String> {
                ::std::result::Result::Ok(Self { #(#fields: #reads),* })
            }
        }
    })
}

/// A field that is a parameter.
pub(crate) struct Parameter<'a> {
    pub(crate) field: &'a Ident,
    r#type: &'a Type,
    name: String,
    default: Option<String>,
    doc: String,
}

impl<'a> Parameter<'a> {
    /// Reads a field and its `#[parameter(default = …)]`.
    pub(crate) fn new(field: &'a Field) -> Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(Error::new_spanned(field, "expected a named field"));
        };
        let default = default(field)?;
        Ok(Self { field: ident, r#type: &field.ty, name: plain_name(ident), default, doc: doc(&field.attrs) })
    }

    /// Its entry in the manifest.
    pub(crate) fn spec(&self) -> Tokens {
        let Self { r#type, name, doc, .. } = self;
        let default = self.default();
        quote!(::millstream::__private::parameter_spec::<#r#type>(#name, #default, #doc))
    }

    /// Its value, or a return with the error.
    pub(crate) fn read(&self) -> Tokens {
        let Self { r#type, name, .. } = self;
        let default = self.default();
        quote!(::millstream::__private::parameter_read::<#r#type>(#name, #default)?)
    }

    fn default(&self) -> Tokens {
        match &self.default {
            Some(text) => quote!(::std::option::Option::Some(#text)),
            None => quote!(::std::option::Option::None),
        }
    }
}

fn default(field: &Field) -> Result<Option<String>> {
    let mut default = None;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("parameter")) {
        if matches!(attribute.meta, syn::Meta::Path(_)) {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("default") {
                return Err(meta.error("unknown option: expected `default = …`"));
            }
            default = Some(text(meta.value()?)?);
            Ok(())
        })?;
    }
    Ok(default)
}

/// A literal, perhaps negative, as the text that stands for it in a job file.
fn text(input: syn::parse::ParseStream<'_>) -> Result<String> {
    let sign = if input.parse::<Option<syn::Token![-]>>()?.is_some() { "-" } else { "" };
    Ok(match input.parse()? {
        Lit::Str(text) => text.value(),
        Lit::Int(number) => format!("{sign}{}", number.base10_digits()),
        Lit::Float(number) => format!("{sign}{}", number.base10_digits()),
        Lit::Bool(value) => value.value.to_string(),
        other => return Err(Error::new_spanned(other, "expected a text, a number, `true` or `false`")),
    })
}

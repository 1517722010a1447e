//! `#[millstream::migrate(from = 1)]`: a function from the stored value of an earlier version to the current one.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, FnArg, Ident, ItemFn, LitInt, Result, ReturnType, Token};

/// What stands in the parentheses.
pub(crate) struct From(LitInt);

impl Parse for From {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let option: Ident = input.parse()?;
        if option != "from" {
            return Err(Error::new(
                option.span(),
                "unknown option: expected `from = 1`, the version that is stored",
            ));
        }
        input.parse::<Token![=]>()?;
        Ok(Self(input.parse()?))
    }
}

/// The function as it stands, and the trait that calls it.
pub(crate) fn expand(From(from): &From, item: &ItemFn) -> Result<Tokens> {
    let shape = "expected `fn name(old: Old) -> New`, of two types with `#[derive(State)]`";
    let mut inputs = item.sig.inputs.iter();
    let (Some(FnArg::Typed(old)), None, ReturnType::Type(_, new)) =
        (inputs.next(), inputs.next(), &item.sig.output)
    else {
        return Err(Error::new_spanned(&item.sig, shape));
    };
    let (name, old) = (&item.sig.ident, &old.ty);
    Ok(quote! {
        #item

        impl ::millstream::Migrate<#from> for #new {
            type Stored = #old;

            fn migrate(stored: #old) -> Self {
                #name(stored)
            }
        }
    })
}

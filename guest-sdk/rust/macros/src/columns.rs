//! `#[derive(Columns)]`: a struct of vectors, for functions over whole columns.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{DeriveInput, Error, Result};

use crate::row::column_name;
use crate::source::{named_fields, plain_name};

/// Implements `Columns`.
pub(crate) fn derive(item: &DeriveInput) -> Result<Tokens> {
    let name = &item.ident;
    let (mut fields, mut types, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for field in named_fields(item)? {
        let Some(ident) = &field.ident else {
            return Err(Error::new_spanned(field, "expected a named field"));
        };
        names.push(column_name(field)?.unwrap_or_else(|| plain_name(ident)));
        types.push(&field.ty);
        fields.push(ident);
    }
    Ok(quote! {
        impl ::millstream::Columns for #name {
            fn specs() -> ::std::vec::Vec<::millstream::column::ColumnSpec> {
                ::std::vec![#(::millstream::__private::column_data::<#types>(#names)),*]
            }

            fn from_batch(
                batch: ::millstream::column::Batch,
            ) -> ::std::result::Result<Self, ::millstream::column::Mismatch> {
                let mut columns = ::millstream::__private::Taken::new(batch);
                ::std::result::Result::Ok(Self { #(#fields: columns.take::<#types>()?),* })
            }

            fn into_columns(self) -> ::std::vec::Vec<::millstream::column::Column> {
                ::std::vec![#(::millstream::ColumnData::into_column(self.#fields)),*]
            }
        }
    })
}

//! `#[derive(Input)]`, `#[derive(Output)]`, `#[derive(State)]`: one column a field.

use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{DeriveInput, Error, Field, GenericParam, Ident, LitInt, LitStr, Result, Token, Type};

use crate::source::{elided, named_fields, plain_name, with_lifetime};

/// Implements `Input`, and for tests `Given`.
pub(crate) fn input(item: &DeriveInput) -> Result<Tokens> {
    let row = Row::new(item)?;
    let input = row.reads(&quote!(Input), "Reader");
    let given = row.writes(&quote!(testing::Given), "Given");
    Ok(quote!(#input #[cfg(not(target_family = "wasm"))] const _: () = { #given };))
}

/// Implements `Output`, and for tests `Seen`.
pub(crate) fn output(item: &DeriveInput) -> Result<Tokens> {
    let row = Row::new(item)?;
    let output = row.writes(&quote!(Output), "Builder");
    let seen = row.reads(&quote!(testing::Seen), "Seen");
    Ok(quote!(#output #[cfg(not(target_family = "wasm"))] const _: () = { #seen };))
}

/// Implements `Input`, `Output` and `State`.
pub(crate) fn state(item: &DeriveInput) -> Result<Tokens> {
    let (input, output) = (input(item)?, output(item)?);
    let name = &item.ident;
    if let Some(parameter) = item.generics.params.first() {
        return Err(Error::new_spanned(parameter, "a state is owned: expected a struct without parameters"));
    }
    let Versions { version, migrates } = Versions::of(item)?;
    let migrations = (!migrates.is_empty()).then(|| {
        quote! {
            fn migrations() -> ::std::vec::Vec<::millstream::manifest::Migration> {
                ::std::vec![#(::millstream::__private::migration::<Self, #migrates>()),*]
            }
        }
    });
    Ok(quote! {
        #input
        #output
        impl ::millstream::State for #name {
            const VERSION: u32 = #version;
            #migrations
        }
    })
}

/// What stands in `#[state(version = 2, migrates(1))]`.
struct Versions {
    version: u32,
    migrates: Vec<u32>,
}

impl Versions {
    fn of(item: &DeriveInput) -> Result<Self> {
        let mut versions = Self { version: 1, migrates: Vec::new() };
        for attribute in item.attrs.iter().filter(|attribute| attribute.path().is_ident("state")) {
            attribute.parse_nested_meta(|meta| versions.option(&meta))?;
        }
        match versions.migrates.iter().find(|from| **from >= versions.version) {
            Some(from) => {
                let version = versions.version;
                let message =
                    format!("version {version} cannot take over version {from}: expected earlier ones");
                Err(Error::new_spanned(&item.ident, message))
            }
            None => Ok(versions),
        }
    }

    fn option(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("version") {
            self.version = meta.value()?.parse::<LitInt>()?.base10_parse()?;
        } else if meta.path.is_ident("migrates") {
            let content;
            syn::parenthesized!(content in meta.input);
            for version in Punctuated::<LitInt, Token![,]>::parse_terminated(&content)? {
                self.migrates.push(version.base10_parse()?);
            }
        } else {
            return Err(meta.error("unknown option: expected `version = 2` or `migrates(1)`"));
        }
        Ok(())
    }
}

/// A struct whose fields are columns.
struct Row<'a> {
    item: &'a DeriveInput,
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    field: &'a Ident,
    r#type: &'a Type,
    name: String,
}

impl<'a> Row<'a> {
    fn new(item: &'a DeriveInput) -> Result<Self> {
        let foreign = |parameter: &&GenericParam| !matches!(parameter, GenericParam::Lifetime(_));
        if let Some(parameter) = item.generics.params.iter().find(foreign) {
            return Err(Error::new_spanned(
                parameter,
                "a row has columns of known types: expected lifetimes only",
            ));
        }
        let columns = named_fields(item)?.into_iter().map(column).collect::<Result<_>>()?;
        Ok(Self { item, columns })
    }

    fn specs(&self) -> Tokens {
        let specs = self.columns.iter().map(|Column { r#type, name, .. }| {
            let r#type = elided(r#type);
            quote!(::millstream::__private::column::<#r#type>(#name))
        });
        quote! {
            fn columns(_plain: &str) -> ::std::vec::Vec<::millstream::column::ColumnSpec> {
                ::std::vec![#(#specs),*]
            }
        }
    }

    /// The struct with all its lifetimes replaced by one.
    fn with_lifetime(&self, lifetime: &str) -> Tokens {
        let name = &self.item.ident;
        let lifetime = syn::Lifetime::new(lifetime, proc_macro2::Span::call_site());
        let lifetimes = self.item.generics.lifetimes().map(|_| &lifetime);
        let lifetimes: Vec<_> = lifetimes.collect();
        if lifetimes.is_empty() { quote!(#name) } else { quote!(#name<#(#lifetimes),*>) }
    }

    /// The half that reads, for the trait of this name.
    fn reads(&self, r#trait: &Tokens, suffix: &str) -> Tokens {
        let (name, vis) = (&self.item.ident, &self.item.vis);
        let reader = format_ident!("{name}{suffix}");
        let row = self.with_lifetime("'__batch");
        let anonymous = self.with_lifetime("'_");
        let specs = self.specs();
        let fields: Vec<_> = self.columns.iter().map(|column| column.field).collect();
        let types: Vec<_> =
            self.columns.iter().map(|column| with_lifetime(column.r#type, "'__batch")).collect();
        let positions = 0..fields.len();
        quote! {
            #[doc(hidden)]
            #vis struct #reader<'__batch> {
                #(#fields: <#types as ::millstream::Field>::View<'__batch>,)*
                __rows: ::std::marker::PhantomData<&'__batch ()>,
            }

            impl ::millstream::#r#trait for #anonymous {
                type Row<'__batch> = #row;
                type Reader<'__batch> = #reader<'__batch>;

                #specs

                fn reader<'__batch>(
                    batch: &'__batch ::millstream::column::Batch,
                ) -> ::std::result::Result<#reader<'__batch>, ::millstream::column::Mismatch> {
                    let _ = batch;
                    ::std::result::Result::Ok(#reader {
                        #(#fields: <#types as ::millstream::Field>::view(
                            batch.column(#positions)?,
                            batch.rows,
                        )?,)*
                        __rows: ::std::marker::PhantomData,
                    })
                }

                #[inline(always)]
                fn read<'__batch>(reader: &Self::Reader<'__batch>, row: usize) -> Self::Row<'__batch> {
                    let _ = (reader, row);
                    #name {
                        #(#fields: <#types as ::millstream::Field>::value(&reader.#fields, row),)*
                    }
                }
            }
        }
    }

    /// The half that writes, for the trait of this name.
    fn writes(&self, r#trait: &Tokens, suffix: &str) -> Tokens {
        let (name, vis) = (&self.item.ident, &self.item.vis);
        let builder = format_ident!("{name}{suffix}");
        let anonymous = self.with_lifetime("'_");
        let specs = self.specs();
        let fields: Vec<_> = self.columns.iter().map(|column| column.field).collect();
        let types: Vec<_> = self.columns.iter().map(|column| elided(column.r#type)).collect();
        let owned: Vec<_> =
            self.columns.iter().map(|column| with_lifetime(column.r#type, "'static")).collect();
        quote! {
            #[doc(hidden)]
            #vis struct #builder {
                #(#fields: <#owned as ::millstream::Field>::Builder,)*
            }

            impl ::millstream::#r#trait for #anonymous {
                type Builder = #builder;

                #specs

                fn builder(rows: usize) -> #builder {
                    let _ = rows;
                    #builder { #(#fields: <#types as ::millstream::Field>::builder(rows),)* }
                }

                #[inline(always)]
                fn append_to(self, builder: &mut #builder) {
                    let _ = &builder;
                    let #name { #(#fields),* } = self;
                    #(::millstream::Field::append_to(#fields, &mut builder.#fields);)*
                }

                fn push_absent(builder: &mut #builder) {
                    let _ = &builder;
                    #(<#types as ::millstream::Field>::push_null(&mut builder.#fields);)*
                }

                fn finish(builder: #builder) -> ::std::vec::Vec<::millstream::column::Column> {
                    let _ = &builder;
                    ::std::vec![#(<#types as ::millstream::Field>::finish(builder.#fields)),*]
                }
            }
        }
    }
}

fn column(field: &Field) -> Result<Column<'_>> {
    let Some(ident) = &field.ident else {
        return Err(Error::new_spanned(field, "expected a named field"));
    };
    let name = column_name(field)?.unwrap_or_else(|| plain_name(ident));
    Ok(Column { field: ident, r#type: &field.ty, name })
}

/// Name given by `#[column(name = "…")]`.
pub(crate) fn column_name(field: &Field) -> Result<Option<String>> {
    let mut name = None;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("column")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("unknown option: expected `name = \"…\"`"));
            }
            name = Some(meta.value()?.parse::<LitStr>()?.value());
            Ok(())
        })?;
    }
    Ok(name)
}

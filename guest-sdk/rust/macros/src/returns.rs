//! The return type of a function says how many rows it makes of one.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{
    AssocType, GenericArgument, PathArguments, PathSegment, ReturnType, Type, TypeImplTrait, TypeParamBound,
};

/// What a function returns for one row, window or group.
pub(crate) struct Returns {
    /// Whether it is a `Result<_, Reject>`.
    pub(crate) fallible: bool,
    /// How many rows.
    pub(crate) many: Many,
    /// Type of one output row.
    pub(crate) row: Type,
}

/// How many rows a return value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Many {
    /// Exactly one.
    One,
    /// `Option<T>`, `Vec<T>` or an iterator.
    Some,
    /// `bool`: the row itself or none.
    Kept,
}

impl Returns {
    /// Reads a return type.
    pub(crate) fn new(output: &ReturnType) -> Self {
        let unit = syn::parse_quote!(());
        let declared = match output {
            ReturnType::Default => &unit,
            ReturnType::Type(_, declared) => declared.as_ref(),
        };
        let (fallible, value) = match argument_of(declared, "Result") {
            Some(value) => (true, value),
            None => (false, declared),
        };
        let (many, row) = shape(value);
        Self { fallible, many, row }
    }

    /// Code that emits `value` into the collector `out`; `at` is the position that a refusal names.
    pub(crate) fn emit(&self, call: &Tokens, out: &Tokens, at: &Tokens) -> Tokens {
        let emit = match self.many {
            Many::One => quote!(#out.emit(__value)),
            Many::Some => quote! {
                ::std::iter::IntoIterator::into_iter(__value).for_each(|__row| #out.emit(__row));
            },
            Many::Kept => quote! {
                if __value {
                    #out.emit(());
                }
            },
        };
        match self.fallible {
            false => quote!({ let __value = #call; #emit }),
            true => quote! {
                if let ::std::option::Option::Some(__value) = __rejections.accept(#at, #call) {
                    #emit
                }
            },
        }
    }
}

fn shape(value: &Type) -> (Many, Type) {
    for collection in ["Option", "Vec"] {
        if let Some(row) = argument_of(value, collection) {
            return (Many::Some, row.clone());
        }
    }
    match value {
        Type::ImplTrait(iterator) => match item_of(iterator) {
            Some(row) => (Many::Some, row),
            None => (Many::One, value.clone()),
        },
        Type::Path(path) if path.path.is_ident("bool") => (Many::Kept, syn::parse_quote!(())),
        _ => (Many::One, value.clone()),
    }
}

/// `T` of `name<T, …>`.
pub(crate) fn argument_of<'a>(r#type: &'a Type, name: &str) -> Option<&'a Type> {
    let segment = last_segment(r#type).filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(argument) => Some(argument),
        _ => None,
    })
}

/// Last segment of a type's path: `Collector<T>` of `millstream::Collector<T>`.
pub(crate) fn last_segment(r#type: &Type) -> Option<&PathSegment> {
    match r#type {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// `T` of `impl Iterator<Item = T>` or `impl IntoIterator<Item = T>`.
fn item_of(iterator: &TypeImplTrait) -> Option<Type> {
    iterator.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let PathArguments::AngleBracketed(arguments) = &bound.path.segments.last()?.arguments else {
            return None;
        };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(AssocType { ident, ty, .. }) if ident == "Item" => Some(ty.clone()),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: ReturnType) -> (bool, Many, String) {
        let returns = Returns::new(&output);
        let row = &returns.row;
        (returns.fallible, returns.many, quote!(#row).to_string())
    }

    #[test]
    fn each_return_type_has_its_meaning() {
        let one = |text: &str| text.to_owned();
        assert!(read(syn::parse_quote!(-> Late)) == (false, Many::One, one("Late")));
        assert!(read(syn::parse_quote!(-> Option<Late>)) == (false, Many::Some, one("Late")));
        assert!(read(syn::parse_quote!(-> std::vec::Vec<Late>)) == (false, Many::Some, one("Late")));
        assert!(read(syn::parse_quote!(-> bool)) == (false, Many::Kept, one("()")));
        assert!(read(syn::parse_quote!(-> Result<bool, Reject>)) == (true, Many::Kept, one("()")));
        assert!(read(syn::parse_quote!(-> Result<Option<Late>, Reject>)) == (true, Many::Some, one("Late")));
        assert!(read(syn::parse_quote!(-> impl Iterator<Item = Late>)) == (false, Many::Some, one("Late")));
        assert!(read(syn::parse_quote!()) == (false, Many::One, one("()")));
    }
}

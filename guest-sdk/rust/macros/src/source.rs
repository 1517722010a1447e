//! What is read out of source: fields, documentation, lifetimes.

use syn::visit_mut::{VisitMut, visit_type_reference_mut};
use syn::{Attribute, Data, DeriveInput, Expr, ExprLit, Field, Fields, Lifetime, Lit, Meta, Type};

/// Named fields of a struct, in order.
pub(crate) fn named_fields(item: &DeriveInput) -> syn::Result<Vec<&Field>> {
    match &item.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter().collect()),
            Fields::Unit => Ok(Vec::new()),
            Fields::Unnamed(_) => Err(unnamed(item)),
        },
        _ => Err(unnamed(item)),
    }
}

fn unnamed(item: &DeriveInput) -> syn::Error {
    syn::Error::new_spanned(
        &item.ident,
        "expected a struct with named fields: each field is a column by its name",
    )
}

/// Name of a field without the `r#` of a keyword.
pub(crate) fn plain_name(ident: &syn::Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

/// First paragraph of the doc comment, as one line.
pub(crate) fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(doc_line).map(|line| line.trim().to_owned());
    lines.skip_while(String::is_empty).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if pair.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}

/// The type with every lifetime elided, as expressions may name it: `Flight<'_>` for `Flight<'a>`.
pub(crate) fn elided(r#type: &Type) -> Type {
    with_lifetime(r#type, "'_")
}

/// The type with every lifetime, also the elided ones of references, replaced by `lifetime`.
pub(crate) fn with_lifetime(r#type: &Type, lifetime: &str) -> Type {
    let mut replaced = r#type.clone();
    Lifetimes(Lifetime::new(lifetime, proc_macro2::Span::call_site())).visit_type_mut(&mut replaced);
    replaced
}

struct Lifetimes(Lifetime);

impl VisitMut for Lifetimes {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        *lifetime = self.0.clone();
    }

    fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
        reference.lifetime = Some(self.0.clone());
        visit_type_reference_mut(self, reference);
    }
}

/// `CamelCase` as `snake_case`: the name of a function that is a struct.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for (at, character) in name.chars().enumerate() {
        if character.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[test]
    fn names_become_snake_case() {
        assert_eq!(snake_case("BusyPlanes"), "busy_planes");
        assert_eq!(snake_case("q5"), "q5");
    }

    #[test]
    fn lifetimes_are_replaced_everywhere() {
        let given: Type = syn::parse_quote!(Option<Flight<'a, &str>>);
        let elided = elided(&given);
        let text = quote!(#elided).to_string().replace(' ', "");
        assert_eq!(text, "Option<Flight<'_,&'_str>>");
    }

    #[test]
    fn documentation_is_its_first_paragraph() {
        let item: syn::ItemFn = syn::parse_quote! {
            /// One
            /// line.
            ///
            /// More.
            fn f() {}
        };
        assert_eq!(doc(&item.attrs), "One line.");
    }
}

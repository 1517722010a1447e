//! Options of the function attributes: `#[millstream::map(name = "x", carry = "replace", columns)]`.

use proc_macro2::{Span, TokenStream as Tokens};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitStr, Result, Token};

/// What stands in the attribute's parentheses.
#[derive(Default)]
pub(crate) struct Arguments {
    name: Option<LitStr>,
    carry: Option<LitStr>,
    columns: Option<Span>,
    timers: Option<(Span, Vec<LitStr>)>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            arguments.option(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

impl Arguments {
    fn option(&mut self, input: ParseStream<'_>) -> Result<()> {
        let option: Ident = input.parse()?;
        match option.to_string().as_str() {
            "name" => self.name = Some(value(input)?),
            "carry" => self.carry = Some(value(input)?),
            "columns" => self.columns = Some(option.span()),
            "timers" => self.timers = Some((option.span(), values(input)?)),
            other => {
                let expected = "`name = \"…\"`, `carry = \"extend\"`, `columns` or `timers(\"event\")`";
                return Err(Error::new(
                    option.span(),
                    format!("unknown option `{other}`: expected {expected}"),
                ));
            }
        }
        Ok(())
    }

    /// The function's name in job files.
    pub(crate) fn name_or(&self, default: String) -> String {
        self.name.as_ref().map_or(default, LitStr::value)
    }

    /// What the main port carries.
    pub(crate) fn carry_or(&self, default: Carry) -> Result<Carry> {
        let Some(text) = &self.carry else { return Ok(default) };
        match text.value().as_str() {
            "extend" => Ok(Carry::Extend),
            "replace" => Ok(Carry::Replace),
            other => {
                let message = format!("unknown carry `{other}`: expected `extend` or `replace`");
                Err(Error::new(text.span(), message))
            }
        }
    }

    /// Whether the function works on whole columns.
    pub(crate) fn is_columns(&self) -> bool {
        self.columns.is_some()
    }

    /// Errors if `columns` or `timers` is given to a kind that has no use for it.
    pub(crate) fn refuse(&self, columns: bool, timers: bool) -> Result<()> {
        match (self.columns, &self.timers) {
            (Some(span), _) if columns => Err(Error::new(span, "`columns` is an option of map functions")),
            (_, Some((span, _))) if timers => {
                Err(Error::new(*span, "`timers` is an option of process functions"))
            }
            _ => Ok(()),
        }
    }

    /// Clocks that the function sets timers on; by default event time if it has `on_timer`.
    pub(crate) fn clocks(&self, has_on_timer: bool) -> Result<Vec<Tokens>> {
        let Some((span, names)) = &self.timers else {
            return Ok(has_on_timer.then(|| quote!(::millstream::Clock::Event)).into_iter().collect());
        };
        match has_on_timer {
            true => names.iter().map(clock).collect(),
            false => Err(Error::new(*span, "timers without a method `on_timer` to call")),
        }
    }
}

fn clock(name: &LitStr) -> Result<Tokens> {
    match name.value().as_str() {
        "event" => Ok(quote!(::millstream::Clock::Event)),
        "processing" => Ok(quote!(::millstream::Clock::Processing)),
        other => {
            let message = format!("unknown clock `{other}`: expected `event` or `processing`");
            Err(Error::new(name.span(), message))
        }
    }
}

fn value(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

fn values(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    let content;
    syn::parenthesized!(content in input);
    Ok(Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?.into_iter().collect())
}

/// What the host does with a row's other columns.
#[derive(Clone, Copy)]
pub(crate) enum Carry {
    Extend,
    Replace,
}

impl Carry {
    /// The SDK's name of it.
    pub(crate) fn tokens(self) -> Tokens {
        match self {
            Carry::Extend => quote!(::millstream::manifest::Carry::Extend),
            Carry::Replace => quote!(::millstream::manifest::Carry::Replace),
        }
    }
}

//! The arguments of a user's function: what each is, by its type.

use syn::{Error, FnArg, Ident, Pat, Receiver, Result, Signature, Type};

use crate::returns::{argument_of, last_segment};

/// An argument after the ones that stand in a fixed place.
pub(crate) enum Extra<'a> {
    /// `&Context` or `&mut ProcessContext`.
    Context,
    /// `EventTime`.
    EventTime,
    /// `Window`.
    Window,
    /// `Timer`.
    Timer,
    /// `&mut Collector<T>`: a port named like the argument.
    Collector { name: String, row: &'a Type },
    /// `&T`: the parameters.
    Parameters(&'a Type),
    /// Anything else, by value.
    Other,
}

/// Name and type of each argument but `self`.
pub(crate) fn arguments(signature: &Signature) -> Result<Vec<(String, &Type)>> {
    let typed = |argument: &'_ FnArg| matches!(argument, FnArg::Typed(_));
    signature.inputs.iter().filter(|argument| typed(argument)).map(argument).collect()
}

fn argument(argument: &FnArg) -> Result<(String, &Type)> {
    match argument {
        FnArg::Receiver(receiver) => Err(Error::new_spanned(receiver, "`self` is no argument here")),
        FnArg::Typed(typed) => Ok((pattern_name(&typed.pat), &typed.ty)),
    }
}

fn pattern_name(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(ident) => {
            ident.ident.to_string().trim_start_matches("r#").trim_start_matches('_').to_owned()
        }
        _ => String::new(),
    }
}

/// `self` of a method, or the error that there is none.
pub(crate) fn receiver<'a>(signature: &'a Signature, kind: &str) -> Result<&'a Receiver> {
    signature.receiver().ok_or_else(|| {
        let message = format!("expected a method: `fn {}({kind}, …)`", signature.ident);
        Error::new(signature.ident.span(), message)
    })
}

/// What an argument is.
pub(crate) fn extra<'a>(name: &str, r#type: &'a Type) -> Result<Extra<'a>> {
    match r#type {
        Type::Reference(reference) => {
            if let Some(row) = argument_of(&reference.elem, "Collector") {
                return Ok(Extra::Collector { name: name.to_owned(), row });
            }
            match last_name(&reference.elem).as_deref() {
                Some("Context" | "ProcessContext") => Ok(Extra::Context),
                Some(_) if reference.mutability.is_none() => Ok(Extra::Parameters(&reference.elem)),
                _ => Err(Error::new_spanned(r#type, "no such argument: expected a `&mut Collector<T>`")),
            }
        }
        other => Ok(match last_name(other).as_deref() {
            Some("EventTime") => Extra::EventTime,
            Some("Window") => Extra::Window,
            Some("Timer") => Extra::Timer,
            _ => Extra::Other,
        }),
    }
}

fn last_name(r#type: &Type) -> Option<String> {
    last_segment(r#type).map(|segment| segment.ident.to_string())
}

/// The function's name, for messages at it.
pub(crate) fn error_at(ident: &Ident, message: &str) -> Error {
    Error::new(ident.span(), message)
}

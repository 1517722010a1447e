//! `${NAME}` and `${NAME:-default}` in strings.

/// Why a string's variables cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum VariableError {
    #[error("the variable `{0}` is not set and has no default")]
    Unset(String),
    #[error("`${{` without a `}}` behind it")]
    Unclosed,
    #[error("`{0}` is no name of a variable: expected letters, digits and underscores")]
    Name(String),
}

impl VariableError {
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Unset(name) => format!("set it, or give a default: \"${{{name}:-default}}\""),
            Self::Unclosed | Self::Name(_) => "write \"$${\" for a \"${\" that is not a variable".to_owned(),
        }
    }
}

/// The text with its variables replaced, or none if it has none. As in a shell, an empty variable counts as unset
/// where there is a default; a default is text up to the next brace.
pub(crate) fn substitute(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<String>, VariableError> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let before = &rest[..start];
        if let Some(escaped) = before.strip_suffix('$') {
            result.push_str(escaped);
            result.push_str("${");
            rest = &rest[start + 2..];
            continue;
        }
        let inner = &rest[start + 2..];
        let end = inner.find('}').ok_or(VariableError::Unclosed)?;
        result.push_str(before);
        result.push_str(&value_of(&inner[..end], variables)?);
        rest = &inner[end + 1..];
    }
    result.push_str(rest);
    Ok(Some(result))
}

fn value_of(inner: &str, variables: &dyn Fn(&str) -> Option<String>) -> Result<String, VariableError> {
    let (name, default) =
        inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
    let valid = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !valid {
        return Err(VariableError::Name(name.to_owned()));
    }
    match (variables(name), default) {
        (Some(value), _) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (Some(empty), None) => Ok(empty),
        (None, None) => Err(VariableError::Unset(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, VariableError>) {
        let variables = |name: &str| match name {
            "OUT" => Some("/tmp/out".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let found = substitute(text, &variables).map(|t| t.unwrap_or_else(|| text.to_owned()));
        assert_eq!(found, expected.map(str::to_owned));
    }

    #[test]
    fn variables_and_defaults() {
        check("plain $OUT", Ok("plain $OUT"));
        check("${OUT}/delays", Ok("/tmp/out/delays"));
        check("${NONE:-../target}/${OUT:-x}", Ok("../target//tmp/out"));
        check("[${EMPTY:-x}][${EMPTY}][${NONE:-}]", Ok("[x][][]"));
        check("$${OUT} costs $$5", Ok("${OUT} costs $$5"));
    }

    #[test]
    fn what_cannot_be_replaced() {
        check("${NONE}", Err(VariableError::Unset("NONE".into())));
        check("x${OUT", Err(VariableError::Unclosed));
        check("${a b}", Err(VariableError::Name("a b".into())));
        check("${}", Err(VariableError::Name(String::new())));
    }
}

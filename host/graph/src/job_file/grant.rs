//! `allow`: what a job grants a module or a function beyond computing.

use crate::{Grant, document::Spanned, nearest::nearest, problem::Problem, table_reader::TableReader};

/// How variables of the environment are looked up.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `allow = ["env:TOKEN"]`. A grant that cannot be given is reported and left out.
pub(crate) fn read(table: &mut TableReader<'_>, variables: Variables<'_>) -> Option<Vec<Grant>> {
    let entries = table.strings("allow")?;
    let grant = |entry: &Spanned<String>| match parse(&entry.value, variables) {
        Ok(grant) => Some(grant),
        Err(Refused { message, label, help }) => {
            let message = format!("`allow` of {}: {message}", table.name());
            table.problems.push(Problem::error(message).at(&entry.span, label).maybe_help(help));
            None
        }
    };
    Some(entries.value.iter().filter_map(grant).collect())
}

/// Why a grant cannot be given.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    message: String,
    label: &'static str,
    help: Option<String>,
}

fn parse(text: &str, variables: Variables<'_>) -> Result<Grant, Refused> {
    let refused = |message, label, help| Err(Refused { message, label, help });
    match text.split_once(':') {
        Some(("env", "")) => refused("`env:` names no variable".to_owned(), "expected env:NAME", None),
        Some(("env", name)) if variables(name).is_none() => refused(
            format!("the variable `{name}` is not set, so it cannot be granted"),
            "not set",
            Some(format!("set `{name}`, or leave the grant out")),
        ),
        Some(("env", name)) => Ok(Grant::Environment(name.to_owned())),
        Some(("http", _)) => refused(
            format!("`{text}` cannot be granted: functions have no HTTP in this version"),
            "not available",
            None,
        ),
        _ => refused(format!("`{text}` is not known as a grant"), "not known", Some(meant(text))),
    }
}

/// The grant that was perhaps meant, or else all that there are.
fn meant(text: &str) -> String {
    let (form, rest) = text.split_once(':').unwrap_or(("", text));
    match nearest(form, FORMS) {
        Some(form) => format!("did you mean `{form}:{rest}`?"),
        None => "there is `env:NAME`, which lets a component see the variable NAME".to_owned(),
    }
}

const FORMS: [&str; 2] = ["env", "http"];

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Grant, (String, Option<String>)> {
        let variables = |name: &str| (name == "TOKEN").then(String::new);
        parse(text, &variables).map_err(|refused| (refused.message, refused.help))
    }

    #[test]
    fn a_variable_that_is_set_is_granted() {
        assert_eq!(parsed("env:TOKEN"), Ok(Grant::Environment("TOKEN".to_owned())));
    }

    #[test]
    fn what_cannot_be_granted_is_told() {
        let refused = |text: &str| {
            let (message, help) = parsed(text).expect_err("refused");
            format!("{message}: {}", help.unwrap_or_default())
        };
        assert_eq!(
            refused("env:OTHER"),
            "the variable `OTHER` is not set, so it cannot be granted: set `OTHER`, or leave the grant out"
        );
        assert_eq!(refused("env:"), "`env:` names no variable: ");
        assert_eq!(
            refused("http:api.example.com"),
            "`http:api.example.com` cannot be granted: functions have no HTTP in this version: "
        );
        assert_eq!(refused("evn:TOKEN"), "`evn:TOKEN` is not known as a grant: did you mean `env:TOKEN`?");
        assert_eq!(
            refused("TOKEN"),
            "`TOKEN` is not known as a grant: there is `env:NAME`, which lets a component see the variable NAME"
        );
    }
}

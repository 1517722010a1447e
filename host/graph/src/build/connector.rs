//! What connectors say of their options, put at its place in the file.

use super::Drafts;
use crate::{
    ConnectorProblem,
    document::{Spanned, Value},
    job_file::ConnectorOptions,
    nearest::{nearest, suggestion},
    problem::Problem,
    source_text::Span,
};

/// Whether there is a connector of this name.
pub(super) fn known(drafts: &Drafts<'_>, what: &str, name: &Spanned<String>, known: &[&str]) -> Option<()> {
    if known.contains(&name.value.as_str()) {
        return Some(());
    }
    let message = format!("there is no {what} connector `{}`", name.value);
    let help = suggestion(&name.value, "there are", known.iter().copied());
    drafts.problems().push(Problem::error(message).at(&name.span, "not known").maybe_help(help));
    None
}

/// Reports a connector's problems with its options. A key that the connector does not know may be meant to be one that
/// all nodes have.
pub(super) fn report(
    drafts: &Drafts<'_>,
    index: usize,
    options: &ConnectorOptions,
    connector: &Span,
    problems: Vec<ConnectorProblem>,
) {
    let node = drafts.node(index);
    for ConnectorProblem { key, message, help } in problems {
        let entry = key.as_ref().and_then(|key| options.table.entry_at(key));
        if entry.is_some_and(|e| e.node.value == Value::Broken) {
            continue;
        }
        let span = match entry {
            Some(entry) if !matches!(entry.node.value, Value::Table(_)) => {
                entry.key_span.start..entry.node.span.end
            }
            Some(entry) => entry.key_span.clone(),
            None if key.as_deref() == Some("connector") => connector.clone(),
            None => node.name.span.clone(),
        };
        let common = entry.and_then(|e| nearest(&e.key, options.common.iter().copied()));
        let help = help.or(common.map(|name| format!("did you mean `{name}`?")));
        let message = format!("{} `{}`: {message}", node.kind(), node.name.value);
        drafts.problems().push(Problem::error(message).at(&span, "here").maybe_help(help));
    }
}

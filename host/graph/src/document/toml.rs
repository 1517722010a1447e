//! TOML text to the tree.

use ::toml::{
    Spanned as TomlSpanned,
    de::{DeTable, DeValue},
};

use super::{Entry, Node, Table, Text, Value, variables::substitute};
use crate::{
    problem::{Problem, Problems},
    source_text::Span,
};

/// Reads a document. What is wrong with the syntax goes to `problems`; the rest of the text is then not looked at.
pub(crate) fn parse_toml(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
    problems: &Problems,
) -> Option<Table> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        problems.push(Problem::error(format!("not valid TOML: {}", error.message())).at(&span, "here"));
    }
    let reader = Reader { variables, problems };
    errors.is_empty().then(|| reader.table(document.get_ref()))
}

struct Reader<'a> {
    variables: &'a dyn Fn(&str) -> Option<String>,
    problems: &'a Problems,
}

impl Reader<'_> {
    fn table(&self, table: &DeTable<'_>) -> Table {
        let mut entries: Vec<Entry> = table.iter().map(|(key, node)| self.entry(key, node)).collect();
        // The parser sorts by key; the order of columns and of tables is that of the text.
        entries.sort_by_key(|e| e.key_span.start);
        Table { entries }
    }

    fn entry(&self, key: &TomlSpanned<std::borrow::Cow<'_, str>>, node: &TomlSpanned<DeValue<'_>>) -> Entry {
        Entry { key: key.get_ref().to_string(), key_span: key.span(), node: self.node(node) }
    }

    fn node(&self, node: &TomlSpanned<DeValue<'_>>) -> Node {
        let span = node.span();
        let value = match node.get_ref() {
            DeValue::String(text) => string(text, self.variables, &span, self.problems),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::Integer(number),
                Err(_) => self.refuse(&span, "the number is larger than 64 bits hold"),
            },
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Float(number),
                _ => self.refuse(&span, "the number is not finite"),
            },
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(nodes) => Value::Array(nodes.iter().map(|n| self.node(n)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { value, span }
    }

    fn refuse(&self, span: &Span, message: &str) -> Value {
        self.problems.push(Problem::error(message).at(span, "here"));
        Value::Broken
    }
}

/// A string of a document with its variables replaced.
pub(super) fn string(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
    span: &Span,
    problems: &Problems,
) -> Value {
    match substitute(text, variables) {
        Ok(None) => Value::String(Text { text: text.to_owned(), substituted: false }),
        Ok(Some(text)) => Value::String(Text { text, substituted: true }),
        Err(error) => {
            problems.push(Problem::error(error.to_string()).at(span, "here").help(error.help()));
            Value::Broken
        }
    }
}

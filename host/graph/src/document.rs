//! A job file as a tree of values, each with its place in the text. TOML and JSON become the same tree; entries stand in
//! the order of the text, and variables in strings have been replaced.

mod json;
mod toml;
mod variables;

pub(crate) use json::parse_json;
pub(crate) use toml::parse_toml;

use serde_json::Value as Json;

use crate::{Options, source_text::Span};

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    String(Text),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A TOML date or time as its text.
    Date(String),
    Array(Vec<Node>),
    Table(Table),
    /// Something that cannot be read, which has been reported.
    Broken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Whether a variable stood in it: such text is also taken where a number is expected.
    pub(crate) substituted: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

impl<T> Spanned<T> {
    pub(crate) fn new(value: T, span: &Span) -> Self {
        Self { value, span: span.clone() }
    }
}

impl Value {
    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Boolean(_) => "a boolean",
            Value::Date(_) => "a date",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
            Value::Broken => "something unreadable",
        }
    }

    /// The same for connectors, which know nothing of places.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Value::String(text) => Json::from(text.text.as_str()),
            Value::Integer(number) => Json::from(*number),
            Value::Float(number) => Json::from(*number),
            Value::Boolean(boolean) => Json::from(*boolean),
            Value::Date(text) => Json::from(text.as_str()),
            Value::Array(nodes) => nodes.iter().map(|n| n.value.to_json()).collect(),
            Value::Table(table) => Json::Object(table.to_options()),
            Value::Broken => Json::Null,
        }
    }
}

impl Table {
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub(crate) fn to_options(&self) -> Options {
        self.entries.iter().map(|e| (e.key.clone(), e.node.value.to_json())).collect()
    }

    /// The entry at a path such as `format.csv.null`, or the last one of the path that there is.
    pub(crate) fn entry_at(&self, path: &str) -> Option<&Entry> {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let entry = self.entry(first)?;
        let inner = match (&entry.node.value, rest) {
            (Value::Table(table), Some(rest)) => table.entry_at(rest),
            _ => None,
        };
        Some(inner.unwrap_or(entry))
    }
}

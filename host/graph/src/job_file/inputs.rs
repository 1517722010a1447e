//! `input` of operators and sinks.

use crate::{
    document::{Spanned, Value},
    problem::Problem,
    table_reader::TableReader,
};

/// The streams of one input port.
#[derive(Debug)]
pub(crate) struct InputTable {
    /// The port; none for the only one.
    pub(crate) port: Option<Spanned<String>>,
    pub(crate) streams: Vec<Spanned<StreamName>>,
}

/// `node` or `node.port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamName {
    pub(crate) node: String,
    pub(crate) port: Option<String>,
}

impl StreamName {
    fn parse(text: &str) -> Self {
        let (node, port) = text.split_once('.').map_or((text, None), |(node, port)| (node, Some(port)));
        Self { node: node.to_owned(), port: port.map(str::to_owned) }
    }
}

impl std::fmt::Display for StreamName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.port {
            Some(port) => write!(f, "{}.{port}", self.node),
            None => f.write_str(&self.node),
        }
    }
}

/// Reads `input`, which is required.
pub(crate) fn read(table: &mut TableReader<'_>) -> Vec<InputTable> {
    let Some(node) = table.node("input") else {
        table.missing("input", "input = \"name\" reads what the node of that name makes");
        return Vec::new();
    };
    let streams = |node| {
        let texts = table.strings_of("input", node);
        let streams: Vec<_> =
            texts.iter().map(|t| Spanned::new(StreamName::parse(&t.value), &t.span)).collect();
        if streams.is_empty() && node.value == Value::Array(Vec::new()) {
            table.problems.push(Problem::error("`input` names no stream").at(&node.span, "empty"));
        }
        streams
    };
    match &node.value {
        Value::Table(ports) => {
            let port = |e: &crate::document::Entry| Some(Spanned::new(e.key.clone(), &e.key_span));
            ports.entries.iter().map(|e| InputTable { port: port(e), streams: streams(&e.node) }).collect()
        }
        _ => vec![InputTable { port: None, streams: streams(node) }],
    }
}

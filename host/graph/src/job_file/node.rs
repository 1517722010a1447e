//! What sources, operators and sinks share, and the tables of sources and sinks.

use millstream_types::Field;

use super::{InputTable, OperatorTable, TimeTable, inputs, time};
use crate::{
    Options, RowPolicy,
    document::{Entry, Spanned, Table, Text, Value},
    problem::{Problem, Problems},
    table_reader::TableReader,
};

#[derive(Debug)]
pub(crate) struct NodeTable {
    pub(crate) name: Spanned<String>,
    pub(crate) id: Option<Spanned<String>>,
    pub(crate) parallelism: Option<Spanned<u32>>,
    pub(crate) chain: bool,
    pub(crate) body: NodeTableBody,
}

#[derive(Debug)]
pub(crate) enum NodeTableBody {
    Source(SourceTable),
    Operator(Box<OperatorTable>),
    Sink(SinkTable),
}

#[derive(Debug)]
pub(crate) struct SourceTable {
    pub(crate) connector: Option<Spanned<String>>,
    pub(crate) options: ConnectorOptions,
    /// None if there is none.
    pub(crate) schema: Option<Vec<Field>>,
    /// Whether a column of the schema could not be read, so that its columns are not known.
    pub(crate) schema_broken: bool,
    pub(crate) time: Option<TimeTable>,
    pub(crate) on_error: Spanned<RowPolicy>,
}

#[derive(Debug)]
pub(crate) struct SinkTable {
    pub(crate) connector: Option<Spanned<String>>,
    pub(crate) options: ConnectorOptions,
    pub(crate) inputs: Vec<InputTable>,
    pub(crate) partition: Option<Spanned<PartitionName>>,
    pub(crate) key: Option<Spanned<Vec<Spanned<String>>>>,
}

/// The keys of a table that belong to the connector.
#[derive(Debug)]
pub(crate) struct ConnectorOptions {
    pub(crate) values: Options,
    /// The same with places.
    pub(crate) table: Table,
    /// The keys that do not belong to the connector, for those that were meant to be one of them.
    pub(crate) common: Vec<&'static str>,
}

/// `partition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionName {
    Forward,
    Rebalance,
    Hash,
    Broadcast,
    Global,
}

impl NodeTable {
    pub(crate) fn inputs(&self) -> &[InputTable] {
        match &self.body {
            NodeTableBody::Source(_) => &[],
            NodeTableBody::Operator(operator) => &operator.inputs,
            NodeTableBody::Sink(sink) => &sink.inputs,
        }
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.body {
            NodeTableBody::Source(_) => "source",
            NodeTableBody::Operator(_) => "operator",
            NodeTableBody::Sink(_) => "sink",
        }
    }

    /// The identity: the name unless `id` is given.
    pub(crate) fn identity(&self) -> &Spanned<String> {
        self.id.as_ref().unwrap_or(&self.name)
    }

    pub(crate) fn on_error(&self) -> Option<&Spanned<RowPolicy>> {
        match &self.body {
            NodeTableBody::Source(source) => Some(&source.on_error),
            NodeTableBody::Operator(operator) => Some(&operator.on_error),
            NodeTableBody::Sink(_) => None,
        }
    }
}

pub(crate) fn read_source(name: String, entry: &Entry, problems: &Problems) -> Option<NodeTable> {
    let mut table = TableReader::of_entry(format!("[source.{name}]"), entry, problems)?;
    let connector = connector(&mut table);
    let schema = schema(&mut table);
    let columns = schema.as_ref().map_or(0, Vec::len);
    let schema_broken = table.free_table("schema").is_some_and(|entries| entries.len() != columns);
    let time = time::read_of_source(&mut table);
    let on_error = on_error(&mut table);
    let common = common(name, entry, &mut table);
    let options = ConnectorOptions::new(table);
    let body =
        NodeTableBody::Source(SourceTable { connector, options, schema, schema_broken, time, on_error });
    Some(common.with(body))
}

pub(crate) fn read_sink(name: String, entry: &Entry, problems: &Problems) -> Option<NodeTable> {
    let mut table = TableReader::of_entry(format!("[sink.{name}]"), entry, problems)?;
    let connector = connector(&mut table);
    let inputs = inputs::read(&mut table);
    let (partition, key) = (partition(&mut table), table.strings("key"));
    let common = common(name, entry, &mut table);
    let options = ConnectorOptions::new(table);
    let body = NodeTableBody::Sink(SinkTable { connector, options, inputs, partition, key });
    Some(common.with(body))
}

/// The keys that every node has.
pub(super) struct Common {
    name: Spanned<String>,
    id: Option<Spanned<String>>,
    parallelism: Option<Spanned<u32>>,
    chain: bool,
}

impl Common {
    pub(super) fn with(self, body: NodeTableBody) -> NodeTable {
        let Common { name, id, parallelism, chain } = self;
        NodeTable { name, id, parallelism, chain, body }
    }
}

pub(super) fn common(name: String, entry: &Entry, table: &mut TableReader<'_>) -> Common {
    let id = table.string("id");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if let Some(id) = id.as_ref().filter(|id| id.value.is_empty() || !id.value.chars().all(plain)) {
        let message = format!("`{}` is no id: expected letters, digits, `_`, `-` and `.`", id.value);
        table.problems.push(Problem::error(message).at(&id.span, "here"));
    }
    let parallelism = table.integer("parallelism", 1, 1 << 15);
    let parallelism = parallelism.map(|p| Spanned::new(p.value as u32, &p.span));
    let chain = table.boolean("chain").is_none_or(|c| c.value);
    Common { name: Spanned::new(name, &entry.key_span), id, parallelism, chain }
}

pub(super) fn on_error(table: &mut TableReader<'_>) -> Spanned<RowPolicy> {
    let names =
        [("fail", RowPolicy::Fail), ("skip", RowPolicy::Skip), ("dead-letter", RowPolicy::DeadLetter)];
    table.choice("on-error", &names).unwrap_or_else(|| Spanned::new(RowPolicy::Fail, &table.span))
}

pub(super) fn partition(table: &mut TableReader<'_>) -> Option<Spanned<PartitionName>> {
    let names = [
        ("forward", PartitionName::Forward),
        ("rebalance", PartitionName::Rebalance),
        ("hash", PartitionName::Hash),
        ("broadcast", PartitionName::Broadcast),
        ("global", PartitionName::Global),
    ];
    table.choice("partition", &names)
}

fn connector(table: &mut TableReader<'_>) -> Option<Spanned<String>> {
    if table.entry("connector").is_none() {
        table.missing("connector", "such as connector = \"file\"");
    }
    table.string("connector")
}

/// `schema`; a column whose type cannot be read is left out, which is an error anyway.
fn schema(table: &mut TableReader<'_>) -> Option<Vec<Field>> {
    let entries = table.free_table("schema")?;
    let field = |entry: &Entry| {
        let Value::String(Text { text, .. }) = &entry.node.value else {
            table.wrong_type(&entry.key, &entry.node, "a type such as \"int64\" or \"utf8?\"");
            return None;
        };
        let parsed = Field::parse(entry.key.as_str(), text);
        parsed
            .map_err(|error| {
                table.problems.push(Problem::error(error.to_string()).at(&entry.node.span, "here"))
            })
            .ok()
    };
    Some(entries.iter().filter_map(field).collect())
}

impl ConnectorOptions {
    fn new(table: TableReader<'_>) -> Self {
        let (values, table, common) = table.rest();
        Self { values, table, common }
    }
}

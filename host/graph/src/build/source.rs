//! Sources: the connector says which columns come out of which port.

use millstream_types::{Field, Schema};

use super::{Draft, Drafts, connector, draft::PortDraft, event_time};
use crate::{
    ConnectorCatalog, NodeBody, RowPolicy, SourceNode, SourceTime, TrapPolicy,
    job_file::{SourceTable, TimeTable},
    problem::Problem,
};

pub(super) fn draft(
    drafts: &Drafts<'_>,
    index: usize,
    source: &SourceTable,
    connectors: &dyn ConnectorCatalog,
) -> Draft {
    let schema = source.schema.as_deref().map(|fields| schema(drafts, index, fields));
    let outputs = outputs(drafts, index, source, schema.as_ref(), connectors);
    let body = outputs.as_deref().and_then(|outputs| body(drafts, index, source, schema, outputs));
    let ports = outputs.map(|outputs| {
        let mut ports: Vec<_> =
            outputs.into_iter().map(|(name, schema)| PortDraft::data(name, Some(schema))).collect();
        ports.extend((source.on_error.value == RowPolicy::DeadLetter).then(PortDraft::dead_letter));
        ports
    });
    Draft {
        parallelism: drafts.parallelism(index),
        inputs: Vec::new(),
        ports,
        body,
        on_trap: TrapPolicy::Fail,
        key: None,
        keyed: false,
        partition: None,
        timeless: source.time.is_none().then_some(index),
        time_column: None,
    }
}

fn schema(drafts: &Drafts<'_>, index: usize, fields: &[Field]) -> Schema {
    if fields.is_empty() {
        let problem =
            Problem::error("the schema has no column").at(&drafts.node(index).name.span, "of this source");
        drafts.problems().push(problem.help("schema = { id = \"int64\", name = \"utf8?\" }"));
    }
    Schema::new(fields.to_vec())
}

fn outputs(
    drafts: &Drafts<'_>,
    index: usize,
    source: &SourceTable,
    schema: Option<&Schema>,
    connectors: &dyn ConnectorCatalog,
) -> Option<Vec<(String, Schema)>> {
    let name = source.connector.as_ref()?;
    connector::known(drafts, "source", name, &connectors.sources())?;
    let schema = schema.filter(|_| !source.schema_broken);
    let outputs = connectors.source_outputs(&name.value, &source.options.values, schema);
    if source.schema_broken {
        return None;
    }
    outputs.map_err(|problems| connector::report(drafts, index, &source.options, &name.span, problems)).ok()
}

fn body(
    drafts: &Drafts<'_>,
    index: usize,
    source: &SourceTable,
    schema: Option<Schema>,
    outputs: &[(String, Schema)],
) -> Option<NodeBody> {
    let time = match &source.time {
        Some(table) => Some(time(drafts, index, table, outputs)?),
        None => None,
    };
    let connector = source.connector.as_ref()?.value.clone();
    Some(NodeBody::Source(SourceNode { connector, options: source.options.values.clone(), schema, time }))
}

/// The time column of every port that is read; of the main one if none is.
fn time(
    drafts: &Drafts<'_>,
    index: usize,
    table: &TimeTable,
    outputs: &[(String, Schema)],
) -> Option<SourceTime> {
    let column = table.column.as_ref()?;
    let mut read: Vec<usize> =
        drafts.wires_out_of(index).filter_map(|w| port_of(&w.stream.value.port, outputs)).collect();
    if read.is_empty() {
        read.push(0);
    }
    let mut columns = Vec::with_capacity(outputs.len());
    for (port, (name, schema)) in outputs.iter().enumerate() {
        let of = if outputs.len() > 1 { format!(" of port `{name}`") } else { String::new() };
        let known = schema.index_of(&column.value).is_some();
        let found = if read.contains(&port) || known {
            event_time::column(drafts, column, schema, &of)
        } else {
            None
        };
        if found.is_none() && read.contains(&port) {
            return None;
        }
        columns.push(found);
    }
    let TimeTable { out_of_orderness, idle, ref alignment, .. } = *table;
    Some(SourceTime { columns, out_of_orderness, idle, alignment: alignment.clone() })
}

fn port_of(name: &Option<String>, outputs: &[(String, Schema)]) -> Option<usize> {
    name.as_ref().map_or(Some(0), |name| outputs.iter().position(|(n, _)| n == name))
}

//! Sinks: the connector says whether it takes the columns that come in.

use super::{Draft, Drafts, connector, input, key};
use crate::{ConnectorCatalog, NodeBody, SinkNode, TrapPolicy, job_file::SinkTable, problem::Problem};

pub(super) fn draft(
    drafts: &Drafts<'_>,
    index: usize,
    sink: &SinkTable,
    connectors: &dyn ConnectorCatalog,
) -> Draft {
    if let Some(port) = sink.inputs.iter().find_map(|i| i.port.as_ref()) {
        let problem = Problem::error("a sink has one input, without a name").at(&port.span, "named here");
        drafts.problems().push(problem.help("input = \"name\", or an array of names for their union"));
    }
    let port = input::port(drafts, index, 0, "input");
    let schema = port.as_ref().map(|p| &p.schema);
    let key = sink
        .key
        .as_ref()
        .and_then(|k| key::positions(drafts, k, schema?, &input::stream_names(drafts, index)));
    let accepted = sink.connector.as_ref().and_then(|name| {
        connector::known(drafts, "sink", name, &connectors.sinks())?;
        let accepts = connectors.sink_accepts(&name.value, &sink.options.values, schema);
        accepts
            .map_err(|problems| connector::report(drafts, index, &sink.options, &name.span, problems))
            .ok()?;
        Some(name.value.clone())
    });
    let body = accepted
        .map(|connector| NodeBody::Sink(SinkNode { connector, options: sink.options.values.clone() }));
    Draft {
        parallelism: drafts.parallelism(index),
        inputs: port.into_iter().collect(),
        ports: Some(Vec::new()),
        body,
        on_trap: TrapPolicy::Fail,
        key,
        keyed: false,
        partition: sink.partition.clone(),
        timeless: None,
        time_column: None,
    }
}

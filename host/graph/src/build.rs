//! From what the job file says to the logical graph. Names are resolved first and nodes put in order; then each node is
//! drafted from what its inputs are known to be; then streams are dealt out and the graph is put together.
//!
//! A draft is made of every node, also where something is wrong with it or before it: what is not known stays open and
//! is not checked, so that every error is reported once and none hides another.

mod assemble;
mod columns;
mod connector;
mod draft;
mod event_time;
mod input;
mod key;
mod modules;
mod names;
mod operator;
mod outputs;
mod parameters;
mod partitioning;
mod sink;
mod source;
mod unused;
mod wiring;

pub(crate) use draft::RESERVED_PORTS;
use draft::{Draft, Drafts};

use crate::{ConnectorCatalog, JobFile, LogicalGraph, ModuleResolver, job_file::NodeTableBody};

/// The graph of a job file; none, or one that is not to be used, where an error has been added to the file's problems.
pub(crate) fn logical_graph(
    file: &JobFile,
    resolver: &dyn ModuleResolver,
    connectors: &dyn ConnectorCatalog,
) -> Option<LogicalGraph> {
    names::check(file);
    let modules = modules::resolve(file, resolver);
    let wiring = wiring::resolve(file);
    let mut drafts = Drafts::new(file, &wiring);
    for &index in &wiring.order {
        let node = &file.nodes[index];
        let draft = match &node.body {
            NodeTableBody::Source(source) => source::draft(&drafts, index, source, connectors),
            NodeTableBody::Operator(operator) => operator::draft(&drafts, index, operator, &modules),
            NodeTableBody::Sink(sink) => sink::draft(&drafts, index, sink, connectors),
        };
        drafts.set(index, draft);
    }
    let partitionings = partitioning::choose(&drafts);
    unused::check(&drafts, &modules);
    assemble::graph(&drafts, &partitionings, modules)
}

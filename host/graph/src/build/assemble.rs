//! Drafts that are all complete become the graph. Behind an operator with `time` stands a node of its own that makes its
//! watermarks, which whoever reads the operator's main port reads instead.

use std::collections::HashMap;

use millstream_types::{OperatorId, PortIndex};

use super::{Draft, Drafts, draft::PortDraft};
use crate::{
    Chaining, InputPort, LogicalEdge, LogicalGraph, LogicalModule, LogicalNode, NodeBody, NodeIndex,
    OutputKind, OutputPort, Partitioning, RowPolicy, TimeSpec, TrapPolicy,
    job_file::{NodeTableBody, TimeTable},
};

/// The graph, if every draft is complete.
pub(super) fn graph(
    drafts: &Drafts<'_>,
    partitionings: &[Partitioning],
    modules: Vec<Option<LogicalModule>>,
) -> Option<LogicalGraph> {
    let modules = modules.into_iter().collect::<Option<Vec<_>>>()?;
    let mut graph =
        LogicalGraph { job: drafts.file.settings.clone(), modules, nodes: Vec::new(), edges: Vec::new() };
    let mut places = HashMap::new();
    for &index in &drafts.wiring.order {
        let draft = drafts.get(index)?;
        let (node, ports) = node(drafts, index, draft)?;
        let watermark = watermark(drafts, index, draft, &node);
        let place = push(&mut graph, node);
        let main = match watermark {
            None => place,
            Some(watermark) => {
                let watermark = push(&mut graph, watermark);
                graph.edges.push(edge((place, 0), (watermark, 0), Partitioning::Forward));
                watermark
            }
        };
        places.insert(index, Place { node: place, main, ports });
    }
    for (wire, partitioning) in drafts.wiring.wires.iter().zip(partitionings) {
        let (from, to) = (places.get(&wire.from)?, places.get(&wire.to)?);
        let (port, _) = drafts.port(wire)?;
        let output = from.ports[port]?;
        let from = if output == 0 { from.main } else { from.node };
        graph.edges.push(edge((from, output), (to.node, wire.input), partitioning.clone()));
    }
    graph.edges.sort_by_key(|e| (e.from, e.to, e.input));
    Some(graph)
}

/// Where a node of the file stands in the graph.
struct Place {
    node: NodeIndex,
    /// The node that its main port's readers read.
    main: NodeIndex,
    /// The output port of each port of the draft: one that is reserved and that nothing reads has none.
    ports: Vec<Option<usize>>,
}

fn push(graph: &mut LogicalGraph, node: LogicalNode) -> NodeIndex {
    graph.nodes.push(node);
    NodeIndex(graph.nodes.len() - 1)
}

fn edge(from: (NodeIndex, usize), to: (NodeIndex, usize), partitioning: Partitioning) -> LogicalEdge {
    let port = |port: usize| PortIndex(port as u32);
    LogicalEdge { from: from.0, output: port(from.1), to: to.0, input: port(to.1), partitioning }
}

fn node(drafts: &Drafts<'_>, index: usize, draft: &Draft) -> Option<(LogicalNode, Vec<Option<usize>>)> {
    let table = drafts.node(index);
    let (outputs, ports) = outputs(drafts, index, draft.ports.as_ref()?)?;
    let body = draft.body.clone()?;
    // The node that makes its watermarks belongs to it, so it shares its chain in any case.
    let makes_times = draft.time_column.is_some() && !matches!(body, NodeBody::Watermark(_));
    let node = LogicalNode {
        id: OperatorId::new(&table.identity().value),
        name: table.name.value.clone(),
        parallelism: draft.parallelism,
        chaining: Chaining { with_input: table.chain, with_output: table.chain || makes_times },
        inputs: draft.inputs.clone(),
        outputs,
        on_error: table.on_error().map_or(RowPolicy::Fail, |p| p.value),
        on_trap: draft.on_trap,
        body,
    };
    Some((node, ports))
}

/// A node's output ports: its own, and of the reserved ones those that are read.
fn outputs(
    drafts: &Drafts<'_>,
    index: usize,
    ports: &[PortDraft],
) -> Option<(Vec<OutputPort>, Vec<Option<usize>>)> {
    let mut outputs = Vec::new();
    let mut places = Vec::new();
    for PortDraft { name, schema, kind } in ports {
        let read = || drafts.wires_out_of(index).any(|w| w.stream.value.port.as_ref() == Some(name));
        let there = *kind == OutputKind::Data || read();
        places.push(there.then_some(outputs.len()));
        if there {
            outputs.push(OutputPort { name: name.clone(), schema: schema.clone()?, kind: *kind });
        }
    }
    Some((outputs, places))
}

/// The node that makes watermarks behind an operator with `time`.
fn watermark(drafts: &Drafts<'_>, index: usize, draft: &Draft, node: &LogicalNode) -> Option<LogicalNode> {
    let NodeTableBody::Operator(operator) = &drafts.node(index).body else { return None };
    if matches!(node.body, NodeBody::Watermark(_)) {
        return None;
    }
    let TimeTable { out_of_orderness, idle, .. } = operator.time.as_ref()?;
    let spec = TimeSpec { column: draft.time_column?, out_of_orderness: *out_of_orderness, idle: *idle };
    let schema = node.outputs.first()?.schema.clone();
    Some(LogicalNode {
        id: OperatorId::new(format!("{}/{ROLE}", node.id)),
        name: format!("{}/{ROLE}", node.name),
        parallelism: node.parallelism,
        chaining: Chaining { with_input: true, with_output: drafts.node(index).chain },
        inputs: vec![InputPort { name: "input".to_owned(), schema: schema.clone() }],
        outputs: vec![OutputPort { name: "output".to_owned(), schema, kind: OutputKind::Data }],
        on_error: RowPolicy::Fail,
        on_trap: TrapPolicy::Fail,
        body: NodeBody::Watermark(spec),
    })
}

const ROLE: &str = "watermark";

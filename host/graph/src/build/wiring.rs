//! Which node reads which, and in what order that puts them.

use std::collections::BTreeSet;

use crate::{
    JobFile,
    document::Spanned,
    job_file::{NodeTableBody, StreamName},
    nearest::suggestion,
    problem::Problem,
};

/// A stream on its way into a node, both by position in the file.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Position among the reader's inputs.
    pub(super) input: usize,
    pub(super) stream: Spanned<StreamName>,
}

/// All streams, and the nodes in an order in which each stands behind what it reads. Nodes on a cycle, and those that
/// read from one, come last.
#[derive(Debug)]
pub(super) struct Wiring {
    pub(super) wires: Vec<Wire>,
    pub(super) order: Vec<usize>,
}

pub(super) fn resolve(file: &JobFile) -> Wiring {
    let mut wires = Vec::new();
    for (to, node) in file.nodes.iter().enumerate() {
        for (input, table) in node.inputs().iter().enumerate() {
            let wire =
                |s: &Spanned<StreamName>| Some(Wire { from: reads(file, s)?, to, input, stream: s.clone() });
            wires.extend(table.streams.iter().filter_map(wire));
        }
    }
    let (mut order, rest) = sort(file.nodes.len(), &wires);
    report_cycles(file, &wires, &rest);
    order.extend(rest);
    Wiring { wires, order }
}

/// The node that a stream comes from.
fn reads(file: &JobFile, stream: &Spanned<StreamName>) -> Option<usize> {
    let name = &stream.value.node;
    let is_sink = |i: usize| matches!(file.nodes[i].body, NodeTableBody::Sink(_));
    let found = file.nodes.iter().position(|n| n.name.value == *name);
    match found {
        Some(index) if is_sink(index) => {
            let message = format!("`{name}` is a sink: nothing can read from it");
            file.problems
                .push(Problem::error(message).at(&stream.span, "a source or an operator was expected"));
            None
        }
        Some(index) => Some(index),
        None => {
            let readable = (0..file.nodes.len()).filter(|&i| !is_sink(i));
            let help = suggestion(name, "there are", readable.map(|i| file.nodes[i].name.value.as_str()));
            let message = format!("there is no source or operator `{name}`");
            file.problems.push(Problem::error(message).at(&stream.span, "not known").maybe_help(help));
            None
        }
    }
}

/// Nodes in order, of those that could come next always the first of the file; then those that cannot be ordered.
fn sort(nodes: usize, wires: &[Wire]) -> (Vec<usize>, Vec<usize>) {
    let mut open: Vec<usize> = (0..nodes).map(|n| wires.iter().filter(|w| w.to == n).count()).collect();
    let mut ready: BTreeSet<usize> = (0..nodes).filter(|&n| open[n] == 0).collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(node) = ready.pop_first() {
        order.push(node);
        for wire in wires.iter().filter(|w| w.from == node) {
            open[wire.to] -= 1;
            if open[wire.to] == 0 {
                ready.insert(wire.to);
            }
        }
    }
    let rest = (0..nodes).filter(|n| !order.contains(n)).collect();
    (order, rest)
}

/// Walks back from each node that could not be ordered until it comes to one again: that is a cycle.
fn report_cycles(file: &JobFile, wires: &[Wire], rest: &[usize]) {
    let mut seen = BTreeSet::new();
    for &start in rest {
        let mut path: Vec<&Wire> = Vec::new();
        let mut node = start;
        while seen.insert(node) {
            let Some(wire) = wires.iter().find(|w| w.to == node && rest.contains(&w.from)) else { break };
            path.push(wire);
            node = wire.from;
        }
        if let Some(first) = path.iter().position(|w| w.to == node) {
            report_cycle(file, &path[first..]);
        }
    }
}

fn report_cycle(file: &JobFile, cycle: &[&Wire]) {
    let name = |node: usize| file.nodes[node].name.value.as_str();
    let mut names: Vec<_> = cycle.iter().rev().map(|w| name(w.from)).collect();
    names.extend(cycle.last().map(|w| name(w.from)));
    let problem = Problem::error(format!("the job goes round in a circle: {}", names.join(" -> ")));
    let labels =
        cycle.iter().rev().fold(problem, |p, w| p.at(&w.stream.span, format!("`{}` reads this", name(w.to))));
    file.problems
        .push(labels.help("rows have to come to an end at a sink: let one of these read something else"));
}

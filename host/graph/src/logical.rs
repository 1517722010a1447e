//! The logical graph: what the job file says, resolved. Every name has become an index, every schema is known, and
//! what could be wrong has been ruled out, so whoever builds tasks from it looks nothing up and checks nothing.
//!
//! Nodes are in topological order, those of equal rank in the order of the job file: an edge always leads from a
//! lower index to a higher one.

mod edge;
mod function;
mod grant;
mod node;
mod settings;
mod window;

pub use edge::{LogicalEdge, NodeIndex, Partitioning};
pub(crate) use function::kind_name;
pub use function::{
    BoundColumn, FunctionInput, FunctionLimits, FunctionNode, KeyPlan, LogicalModule, OutputColumn,
    OutputPlan,
};
pub use grant::Grant;
pub use node::{
    Chaining, InputPort, LogicalNode, NodeBody, OutputKind, OutputPort, RowPolicy, SinkNode, SourceAlignment,
    SourceNode, SourceTime, TimeSpec, TrapPolicy,
};
pub use settings::{CheckpointSpec, JobSettings, RestartSpec, StateSpec};
pub use window::{Trigger, WindowAssigner, WindowSpec};

/// A checked job, before anything is decided about where it runs.
#[derive(Clone, Debug)]
pub struct LogicalGraph {
    /// What holds for the whole job.
    pub job: JobSettings,
    /// The modules whose functions it uses, in the order of the job file.
    pub modules: Vec<LogicalModule>,
    /// Sources, operators and sinks, in topological order.
    pub nodes: Vec<LogicalNode>,
    /// The streams between them, by source node, then in the order in which they are read.
    pub edges: Vec<LogicalEdge>,
}

impl LogicalGraph {
    /// The node at an index of this graph.
    pub fn node(&self, index: NodeIndex) -> &LogicalNode {
        &self.nodes[index.0]
    }

    /// All nodes with their indices.
    pub fn iter(&self) -> impl Iterator<Item = (NodeIndex, &LogicalNode)> {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeIndex(i), n))
    }

    /// The edges into a node; a port that is a union has several.
    pub fn edges_into(&self, node: NodeIndex) -> impl Iterator<Item = &LogicalEdge> {
        self.edges.iter().filter(move |e| e.to == node)
    }

    /// The edges out of a node; a port that is read more than once has several.
    pub fn edges_out_of(&self, node: NodeIndex) -> impl Iterator<Item = &LogicalEdge> {
        self.edges.iter().filter(move |e| e.from == node)
    }

    /// The columns of the rows on an edge.
    pub fn edge_schema(&self, edge: &LogicalEdge) -> &millstream_types::Schema {
        &self.node(edge.from).outputs[edge.output.index()].schema
    }
}

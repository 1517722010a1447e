//! The streams between nodes.

use millstream_types::PortIndex;

/// Position of a node in [`LogicalGraph::nodes`](crate::LogicalGraph::nodes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub usize);

/// The rows of one output port on their way to one input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalEdge {
    /// The node that makes the rows.
    pub from: NodeIndex,
    /// Its output port.
    pub output: PortIndex,
    /// The node that reads them.
    pub to: NodeIndex,
    /// Its input port.
    pub input: PortIndex,
    /// How rows are dealt out to the reader's subtasks.
    pub partitioning: Partitioning,
}

/// How rows are dealt out to the subtasks of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partitioning {
    /// Subtask i sends to subtask i only; both sides have the same parallelism.
    Forward,
    /// By the key group of these columns of the edge's schema, which are not empty.
    Hash {
        /// Positions of the key columns.
        key: Vec<usize>,
    },
    /// Batches go to the subtasks in turn.
    Rebalance,
    /// Every row goes to every subtask.
    Broadcast,
    /// Every row goes to subtask 0.
    Global,
}

impl Partitioning {
    /// The name that job files and plans use.
    pub fn name(&self) -> &'static str {
        match self {
            Partitioning::Forward => "forward",
            Partitioning::Hash { .. } => "hash",
            Partitioning::Rebalance => "rebalance",
            Partitioning::Broadcast => "broadcast",
            Partitioning::Global => "global",
        }
    }
}

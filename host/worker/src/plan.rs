//! A job, planned down to its subtasks and channels.

use millstream_graph::{ExecutionGraph, JobGraph, LogicalGraph, LogicalNode, NodeIndex};
use millstream_types::Attempt;

/// The three graphs of a job.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the job file says.
    pub logical: LogicalGraph,
    /// Which nodes share a task.
    pub job: JobGraph,
    /// What runs.
    pub execution: ExecutionGraph,
}

impl Plan {
    /// Plans a checked job.
    pub fn new(logical: LogicalGraph) -> Self {
        let job = JobGraph::new(&logical);
        let execution = ExecutionGraph::new(&job, logical.job.max_parallelism, Attempt::default());
        Self { logical, job, execution }
    }

    pub(crate) fn node(&self, node: NodeIndex) -> &LogicalNode {
        self.logical.node(node)
    }
}

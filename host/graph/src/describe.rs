//! A plan for people and for programs: what `--explain` prints, as text and as JSON with names that stay.

mod columns;
mod node;
mod text;

use serde::Serialize;

pub use columns::{ColumnDescription, OutputDescription, ReadDescription};
pub use node::{NodeDescription, TimeDescription, WindowDescription};

use crate::{EdgeIndex, JobEdge, Plan, ProblemRecord, StateSpec};

/// A plan, described. [`Display`](std::fmt::Display) is the text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlanDescription {
    /// The job's name.
    pub job: String,
    /// Its parallelism where a node does not say otherwise.
    pub parallelism: u32,
    /// Number of key groups.
    pub max_parallelism: u16,
    /// Where the state of keys is kept, if not in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateDescription>,
    /// How many slots it needs.
    pub slots: u32,
    /// Its tasks: each a chain that runs in so many subtasks.
    pub tasks: Vec<TaskDescription>,
    /// The exchanges between tasks.
    pub exchanges: Vec<ExchangeDescription>,
    /// What is odd.
    pub warnings: Vec<ProblemRecord>,
}

/// State that is not kept in memory alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateDescription {
    /// `rocksdb`.
    pub backend: String,
    /// The memory that it may take, in bytes.
    pub memory: u64,
}

/// A chain of nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TaskDescription {
    /// The names of its nodes with arrows between them.
    pub name: String,
    /// Number of its subtasks.
    pub parallelism: u32,
    /// Its nodes, the head first.
    pub nodes: Vec<NodeDescription>,
}

/// Rows on their way from one task to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExchangeDescription {
    /// The task that sends, a position in `tasks`.
    pub from_task: usize,
    /// The node that sends.
    pub from_node: String,
    /// Its output port.
    pub from_port: String,
    /// The task that receives.
    pub to_task: usize,
    /// The node that receives.
    pub to_node: String,
    /// `forward`, `hash`, `rebalance`, `broadcast` or `global`.
    pub partitioning: String,
    /// The columns of a `hash`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// How many channels it has.
    pub channels: usize,
}

impl Plan {
    /// What the plan is, for `--explain`.
    pub fn describe(&self) -> PlanDescription {
        let job = &self.logical.job;
        let task = |vertex: &crate::JobVertex| TaskDescription {
            name: vertex.name.clone(),
            parallelism: vertex.parallelism,
            nodes: vertex.chain.iter().map(|chained| node::describe(&self.logical, chained.node)).collect(),
        };
        let edges = self.job.edges.iter().enumerate();
        PlanDescription {
            job: job.name.to_string(),
            parallelism: job.parallelism,
            max_parallelism: job.max_parallelism.groups(),
            state: state(&job.state),
            slots: self.execution.slots,
            tasks: self.job.vertices.iter().map(task).collect(),
            exchanges: edges.map(|(i, edge)| self.exchange(EdgeIndex(i), edge)).collect(),
            warnings: self.warnings.records(),
        }
    }

    fn exchange(&self, index: EdgeIndex, edge: &JobEdge) -> ExchangeDescription {
        let sender = self.logical.node(self.job.vertex(edge.from).chain[edge.chained].node);
        let receiver = self.logical.node(self.job.vertex(edge.to).head());
        let key = match &edge.partitioning {
            crate::Partitioning::Hash { key } => key.as_slice(),
            _ => &[],
        };
        ExchangeDescription {
            from_task: edge.from.0,
            from_node: sender.name.clone(),
            from_port: sender.outputs[edge.output.index()].name.clone(),
            to_task: edge.to.0,
            to_node: receiver.name.clone(),
            partitioning: edge.partitioning.name().to_owned(),
            key: key.iter().map(|&c| edge.schema.fields()[c].name.clone()).collect(),
            channels: self.execution.channels.iter().filter(|c| c.edge == index).count(),
        }
    }
}

fn state(spec: &StateSpec) -> Option<StateDescription> {
    match spec {
        StateSpec::Memory => None,
        StateSpec::RocksDb { memory, .. } => {
            Some(StateDescription { backend: spec.name().to_owned(), memory: *memory })
        }
    }
}

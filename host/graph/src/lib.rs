//! From a job file to what runs, with every check before anything does.
//!
//! A job file becomes a [`LogicalGraph`] (what it says, resolved and checked), that a [`JobGraph`] (which nodes share a
//! task), that an [`ExecutionGraph`] (subtasks, slots and channels). Everything here is pure: modules and connectors
//! are asked through [`ModuleResolver`] and [`ConnectorCatalog`], and nothing is read, written or started.

mod catalog;
mod dead_letter;
mod execution_graph;
mod job_graph;
mod logical;
mod subtask_state;

pub use catalog::{ConnectorCatalog, ConnectorProblem, ModuleResolver, Options};
pub use dead_letter::dead_letter_schema;
pub use execution_graph::{Channel, ChannelIndex, ExecutionGraph, Subtask};
pub use job_graph::{ChainInput, ChainedNode, EdgeIndex, JobEdge, JobGraph, JobVertex, VertexIndex};
pub use logical::{
    BoundColumn, Chaining, FunctionInput, FunctionLimits, FunctionNode, InputPort, JobSettings, KeyPlan,
    LogicalEdge, LogicalGraph, LogicalModule, LogicalNode, NodeBody, NodeIndex, OutputColumn, OutputKind,
    OutputPlan, OutputPort, Partitioning, RowPolicy, SinkNode, SourceNode, SourceTime, TimeSpec, TrapPolicy,
    Trigger, WindowAssigner, WindowSpec,
};
pub use subtask_state::{IllegalTransition, SubtaskState};

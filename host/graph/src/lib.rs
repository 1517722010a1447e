//! From a job file to what runs, with every check before anything does.
//!
//! A job file becomes a [`LogicalGraph`] (what it says, resolved and checked), that a [`JobGraph`] (which nodes share a
//! task), that an [`ExecutionGraph`] (subtasks, slots and channels). Everything here is pure: modules and connectors
//! are asked through [`ModuleResolver`] and [`ConnectorCatalog`], and nothing is read, written or started.

mod build;
mod catalog;
mod dead_letter;
mod describe;
mod document;
mod execution_graph;
pub mod job_file;
mod job_graph;
mod logical;
mod nearest;
mod plan;
mod problem;
mod size;
mod source_text;
mod subtask_state;
mod table_reader;
mod units;

pub use catalog::{ConnectorCatalog, ConnectorProblem, ModuleResolver, Options};
pub use dead_letter::dead_letter_schema;
pub use describe::{
    ColumnDescription, ExchangeDescription, NodeDescription, OutputDescription, PlanDescription,
    ReadDescription, TaskDescription, TimeDescription, WindowDescription,
};
pub use execution_graph::{Channel, ChannelIndex, ExecutionGraph, Subtask};
pub use job_file::{JobFile, JobFormat};
pub use job_graph::{ChainInput, ChainedNode, EdgeIndex, JobEdge, JobGraph, JobVertex, VertexIndex};
pub use logical::{
    BoundColumn, Chaining, CheckpointSpec, FunctionInput, FunctionLimits, FunctionNode, Grant, InputPort,
    JobSettings, KeyPlan, LogicalEdge, LogicalGraph, LogicalModule, LogicalNode, NodeBody, NodeIndex,
    OutputColumn, OutputKind, OutputPlan, OutputPort, Partitioning, RestartSpec, RowPolicy, SinkNode,
    SourceAlignment, SourceNode, SourceTime, StateSpec, TimeSpec, TrapPolicy, Trigger, WindowAssigner,
    WindowSpec,
};
pub use plan::Plan;
pub use problem::{LocatedProblem, PlanError, Problem, ProblemRecord, Report, Severity};
pub use source_text::{SourceText, Span};
pub use subtask_state::{IllegalTransition, SubtaskState};

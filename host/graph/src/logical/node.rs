//! Sources, operators and sinks.

use std::time::Duration;

use millstream_types::{OperatorId, PortIndex, Schema};

use super::FunctionNode;
use crate::Options;

/// A source, operator or sink.
#[derive(Clone, Debug)]
pub struct LogicalNode {
    /// Under which its state is kept.
    pub id: OperatorId,
    /// What the job file calls it; `<name>/watermark` for the watermarks that an operator's `time` adds.
    pub name: String,
    /// Number of its subtasks.
    pub parallelism: u32,
    /// With what it may share a chain.
    pub chaining: Chaining,
    /// Where it reads, in the order of its function's ports. None for a source.
    pub inputs: Vec<InputPort>,
    /// Where it writes: its own ports in their order, then `late` and `dead-letter` where they are read. None for a
    /// sink.
    pub outputs: Vec<OutputPort>,
    /// What happens to a row that cannot be used.
    pub on_error: RowPolicy,
    /// What happens when its function traps.
    pub on_trap: TrapPolicy,
    /// What it does.
    pub body: NodeBody,
}

impl LogicalNode {
    /// The `late` port, if the job reads it.
    pub fn late_port(&self) -> Option<PortIndex> {
        self.port_of(OutputKind::Late)
    }

    /// The `dead-letter` port, if the job reads it.
    pub fn dead_letter_port(&self) -> Option<PortIndex> {
        self.port_of(OutputKind::DeadLetter)
    }

    /// The function it runs, if it runs one.
    pub fn function(&self) -> Option<&FunctionNode> {
        match &self.body {
            NodeBody::Function(function) => Some(function),
            _ => None,
        }
    }

    fn port_of(&self, kind: OutputKind) -> Option<PortIndex> {
        self.outputs.iter().position(|o| o.kind == kind).map(|i| PortIndex(i as u32))
    }
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum NodeBody {
    /// Reads from outside.
    Source(SourceNode),
    /// Calls a user's function.
    Function(Box<FunctionNode>),
    /// Passes on what it reads from several streams.
    Union,
    /// Passes on what it reads, sets event times and makes watermarks.
    Watermark(TimeSpec),
    /// Writes to the outside.
    Sink(SinkNode),
}

/// A source.
#[derive(Clone, Debug)]
pub struct SourceNode {
    /// The connector.
    pub connector: String,
    /// What its table says beyond the keys that all sources have.
    pub options: Options,
    /// The columns that the job file declares, if it does.
    pub schema: Option<Schema>,
    /// Where its event times come from; none means that its rows have none.
    pub time: Option<SourceTime>,
}

/// How a source's rows get their event times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTime {
    /// The time column of each output port; none for a port without it, which no one reads.
    pub columns: Vec<Option<usize>>,
    /// How far a row may stand behind the latest one without being late.
    pub out_of_orderness: Duration,
    /// After how long without a row the source no longer holds up watermarks.
    pub idle: Option<Duration>,
    /// Whether its subtasks wait for each other.
    pub alignment: SourceAlignment,
}

/// Whether a subtask of a source that is ahead of the slowest one in event time waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceAlignment {
    /// By rows where subtasks read the same event time side by side, as those of a generator do; else not at all.
    #[default]
    Usual,
    /// When it is ahead by more than `drift`.
    MaxDrift {
        /// How far it may be ahead.
        drift: Duration,
        /// The group of sources whose subtasks all count; none for those of this source alone.
        group: Option<String>,
    },
    /// Never.
    Off,
}

/// How rows get their event times in the middle of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpec {
    /// The time column: a timestamp, or an int64 of milliseconds since the epoch; never null.
    pub column: usize,
    /// How far a row may stand behind the latest one without being late.
    pub out_of_orderness: Duration,
    /// After how long without a row the subtask no longer holds up watermarks.
    pub idle: Option<Duration>,
}

/// A sink.
#[derive(Clone, Debug)]
pub struct SinkNode {
    /// The connector.
    pub connector: String,
    /// What its table says beyond the keys that all sinks have.
    pub options: Options,
}

/// A place where rows come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputPort {
    /// Its name.
    pub name: String,
    /// The columns of its rows; if several streams lead to it, a column is nullable that is so in one of them.
    pub schema: Schema,
}

/// A place where rows go out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPort {
    /// Its name, as in `node.name`.
    pub name: String,
    /// The columns of its rows.
    pub schema: Schema,
    /// What comes out of it.
    pub kind: OutputKind,
}

/// What comes out of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// What the node makes.
    Data,
    /// Rows that came too late for every window they belong to, as they came in.
    Late,
    /// Rows that could not be used, in the columns of [`dead_letter_schema`](crate::dead_letter_schema).
    DeadLetter,
}

/// With what a node may share a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chaining {
    /// With the node that it reads from.
    pub with_input: bool,
    /// With the nodes that read from it.
    pub with_output: bool,
}

/// What happens to a row that cannot be read, or that a function refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowPolicy {
    /// The job fails.
    #[default]
    Fail,
    /// The row is counted and left out.
    Skip,
    /// The row goes out at the `dead-letter` port.
    DeadLetter,
}

/// What happens when a function traps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrapPolicy {
    /// The job fails.
    #[default]
    Fail,
    /// The call is tried again by halves until the row is found that traps; that row follows the [`RowPolicy`].
    Isolate,
}

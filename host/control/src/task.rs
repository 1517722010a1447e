//! The subtasks of an execution in one worker: how they are deployed, what they are told and what they say.

use std::{net::SocketAddr, time::Duration};

use millstream_operator::{Figures, Split};
use millstream_types::Barrier;
use serde::{Deserialize, Serialize};

use crate::{ExecutionId, JobProgram, StoredMessage};

/// The subtasks of some slots of an execution, for the worker that has the slots.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskDeployment {
    /// The execution.
    pub execution: ExecutionId,
    /// What sinks call what the job leaves behind.
    pub run: u64,
    /// The job.
    pub program: JobProgram,
    /// What the plan comes to that the coordinator has made of it. Whoever runs it makes the same one, or refuses.
    pub plan: u64,
    /// Where all slots of the execution are, in order.
    pub slots: Vec<SlotPlace>,
    /// Whether checkpoints are taken.
    pub checkpoints: bool,
    /// What the job goes on from.
    pub restore: Option<RestoreFrom>,
}

/// A worker that has a slot of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotPlace {
    /// The worker.
    pub node: u128,
    /// Where it takes data.
    pub address: SocketAddr,
}

/// A snapshot that an execution goes on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreFrom {
    /// Where it is.
    pub location: String,
    /// Whether checkpoints may build on it.
    pub is_base: bool,
    /// Whether state that the job does not have any more may be dropped.
    pub allow_dropped_state: bool,
}

/// What the subtasks of an execution in a worker are told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TaskOrder {
    /// About checkpoints and the end.
    Notice(NoticeMessage),
    /// The answer to a reader that wanted a split.
    Split {
        /// Which request.
        request: u64,
        /// What it reads next.
        answer: Result<SplitAnswer, ConnectorFailure>,
    },
    /// How far event time is in subtasks of sources elsewhere, for those that wait for them.
    Watermarks(Vec<(OperatorOfSubtask, i64)>),
    /// Give up at once.
    Cancel,
    /// The execution is over, and nothing more will be said.
    Close,
}

/// What all participants of checkpoints are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoticeMessage {
    /// A checkpoint has been triggered, and goes to this location.
    Triggered(Barrier, String),
    /// A checkpoint is complete, and there is no other if `last`.
    Complete {
        /// The checkpoint.
        checkpoint: u64,
        /// Whether there will be no other.
        last: bool,
    },
    /// A checkpoint has been given up.
    Aborted(u64),
    /// Sources read no further.
    Stop,
}

/// What a reader that wants a split is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SplitAnswer {
    /// Read these.
    Splits(Vec<Split>),
    /// Ask again after this time.
    Later(Duration),
    /// Nothing will come any more.
    Finished,
    /// Nobody hands out splits any more.
    Gone,
}

/// An error of a connector, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorFailure {
    /// What it says.
    pub message: String,
    /// Whether something outside is at fault.
    pub external: bool,
}

/// What the subtasks of an execution in a worker say.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TaskEvent {
    /// All that runs here has been started.
    Started,
    /// A participant's part in checkpoints.
    Participation(u32, ParticipationMessage),
    /// A reader has nothing to read.
    SplitWanted {
        /// The vertex of its source.
        vertex: u32,
        /// The reader.
        subtask: u32,
        /// What the answer refers to.
        request: u64,
    },
    /// A reader has passed a barrier.
    ReaderPassed {
        /// The vertex of its source.
        vertex: u32,
        /// The reader.
        subtask: u32,
        /// The checkpoint.
        checkpoint: u64,
    },
    /// A subtask has come to its end.
    Ended(Result<(), TaskFailure>),
    /// Figures, by operator and subtask.
    Figures(Vec<(OperatorOfSubtask, Figures)>),
    /// How far event time is in subtasks of sources here, for those elsewhere that wait for them.
    Watermarks(Vec<(OperatorOfSubtask, i64)>),
    /// Nothing is left of it here.
    Gone,
}

/// An operator in one subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorOfSubtask {
    /// The node of the plan.
    pub node: u32,
    /// The subtask.
    pub subtask: u32,
}

/// A participant's part in checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParticipationMessage {
    /// Its snapshot has been stored.
    Stored(u64, StoredMessage),
    /// It cannot take part, and why.
    Declined(u64, String),
    /// It has processed the end of its input.
    Ended,
}

/// How a subtask failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskFailure {
    /// It was told to give up.
    Cancelled,
    /// It failed.
    Failed {
        /// In what way, with all that is behind it.
        message: String,
        /// Whether another subtask's failure is behind it.
        consequence: bool,
        /// Whether something outside is at fault.
        external: bool,
    },
}

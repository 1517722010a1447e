//! What runs in a worker: slots, and in them subtasks, each a loop over its input, a chain of operators and outputs.
//!
//! A slot is a thread with an executor of its own; its subtasks are futures on it that give way to each other at
//! batch boundaries. Nothing on the data path is shared between threads but the channels of `millstream_net`.

mod chain;
mod checkpoint;
mod error;
mod gate;
mod gate_reading;
mod in_flight;
mod mail;
mod output;
mod overdraft;
mod partition;
mod pieces;
mod slot;
mod source;
mod source_reading;
mod stop;
mod subtask;
#[cfg(test)]
mod tests;
mod wakeup;

pub use chain::{Chain, ChainedOperator, Target};
pub use checkpoint::{CheckpointLink, CheckpointReport, TaskSnapshot};
pub use error::TaskError;
pub use gate::{GateChannel, InputGate};
pub use in_flight::{InFlight, Overtaken, Resent, deal};
pub use mail::{Mail, Mailbox};
pub use output::{OutgoingChannel, ResultPartition};
pub use partition::Partitioner;
pub use pieces::{PiecesOf, StatePieces};
pub use slot::{Slot, SlotClosed};
pub use source::{ENUMERATOR, SPLITS, SourceTask, SplitRequest, SplitRequests, SplitService, decode_split};
pub use subtask::{Input, Restore, Subtask, SubtaskEnd};

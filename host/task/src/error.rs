//! What ends a subtask before its time.

use millstream_net::{Disconnected, TransportError};
use millstream_operator::{OperatorError, Whose};

/// The failure of a subtask.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// An operator of its chain failed.
    #[error("`{operator}` failed")]
    Operator {
        /// The operator with its position, `delays[0]`.
        operator: String,
        /// What went wrong.
        source: OperatorError,
    },
    /// A subtask that it is connected with has gone; that one's failure is the cause.
    #[error("`{subtask}` was cut off")]
    Disconnected {
        /// This subtask.
        subtask: String,
        /// The channel.
        source: Disconnected,
    },
    /// A channel could not be opened.
    #[error("`{subtask}` cannot be connected")]
    Transport {
        /// This subtask.
        subtask: String,
        /// Why.
        source: TransportError,
    },
    /// The one that hands out splits is gone.
    #[error("`{subtask}`: nobody hands out splits any more")]
    NoEnumerator {
        /// This subtask.
        subtask: String,
    },
    /// It cannot go on from its snapshot.
    #[error("`{subtask}` cannot be restored")]
    Restore {
        /// This subtask.
        subtask: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The job could not be started again.
    #[error("the job cannot be started again")]
    Restart {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// More checkpoints have failed in a row than are tolerated.
    #[error("checkpoint {checkpoint} failed, and {tolerated} failures in a row are tolerated: {reason}")]
    Checkpoint {
        /// The last one that failed.
        checkpoint: u64,
        /// Why.
        reason: String,
        /// How many failures in a row are tolerated.
        tolerated: u32,
    },
    /// A subtask that another process runs failed.
    #[error("{message} (on {worker})")]
    Elsewhere {
        /// The process.
        worker: String,
        /// What went wrong there, with all that is behind it.
        message: String,
        /// Whether another subtask's failure is behind it.
        consequence: bool,
        /// Whether something outside is at fault.
        external: bool,
    },
    /// The process that runs it is gone, or cannot be reached.
    #[error("{worker} is lost: {reason}")]
    WorkerLost {
        /// The process.
        worker: String,
        /// What is known of it.
        reason: String,
    },
    /// Our own code panicked.
    #[error("`{subtask}`: internal error: {message}; please report it")]
    Panicked {
        /// This subtask.
        subtask: String,
        /// The panic's text.
        message: String,
    },
}

impl TaskError {
    /// Whether another subtask's failure is behind this one.
    pub fn is_consequence(&self) -> bool {
        matches!(self, Self::Disconnected { .. } | Self::Elsewhere { consequence: true, .. })
    }

    /// Whether something outside the job is at fault: a disk, a file, a machine.
    pub fn is_external(&self) -> bool {
        match self {
            Self::Operator { source, .. } => source.whose() == Whose::External,
            Self::Elsewhere { external, .. } => *external,
            Self::Restore { .. } | Self::Checkpoint { .. } | Self::WorkerLost { .. } => true,
            _ => false,
        }
    }
}

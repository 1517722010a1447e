//! What can be asked of a running job, from anywhere in its process.
//!
//! Snapshots are asked for by an order, which goes to the service that takes the checkpoints of the current execution. An
//! order that comes while the job is between two executions waits for the next one.

use millstream_protocol::RequestRefused;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};

/// A job, as those who command it see it. Clones command the same job.
#[derive(Clone, Debug)]
pub struct JobControl {
    commands: watch::Sender<Command>,
    orders: mpsc::UnboundedSender<SnapshotOrder>,
}

/// What a job has been told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run,
    Stop,
    Cancel,
}

/// A snapshot that was asked for and is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SnapshotTaken {
    /// Its folder, as commands name it.
    pub path: String,
    /// Its number.
    pub id: u64,
    /// Whether it is a savepoint, else a checkpoint.
    pub savepoint: bool,
    /// From its trigger until it was complete, in milliseconds.
    pub took_ms: u64,
    /// Bytes of state that it has.
    pub bytes: u64,
}

/// Why a snapshot that was asked for was not taken. The job goes on, unless it has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The job has none.
    #[error("the job takes no checkpoints: start it with `--checkpoint-dir DIR`")]
    NoCheckpoints,
    /// Not now.
    #[error(transparent)]
    Refused(#[from] RequestRefused),
    /// It could not be taken.
    #[error("the snapshot could not be taken, and the job goes on: {0}")]
    Failed(String),
    /// The job has failed or ended meanwhile.
    #[error("the job failed or came to its end before the snapshot was complete")]
    Gone,
}

/// A snapshot that is asked for.
pub(crate) struct SnapshotOrder {
    pub(crate) what: Wanted,
    pub(crate) reply: Reply,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A savepoint, in this folder if one is named, and what comes then.
    Savepoint(Option<String>, Then),
    /// A last checkpoint, at which the job stops.
    LastCheckpoint,
}

/// What a job does behind a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It goes on.
    GoOn,
    /// It stops: nothing fires, nothing is lost.
    Stop,
    /// Before the savepoint sources end, and what has been read is processed as if the input had ended there.
    Drained,
}

/// Who wants to know.
pub(crate) type Reply = oneshot::Sender<Result<SnapshotTaken, SnapshotError>>;

impl JobControl {
    pub(crate) fn new(
        commands: watch::Sender<Command>,
        orders: mpsc::UnboundedSender<SnapshotOrder>,
    ) -> Self {
        Self { commands, orders }
    }

    /// Has a savepoint taken, in an empty folder if one is named. The job goes on.
    pub async fn savepoint(&self, folder: Option<String>) -> Result<SnapshotTaken, SnapshotError> {
        self.order(Wanted::Savepoint(folder, Then::GoOn)).await
    }

    /// Stops the job at a savepoint. If `drain`, its input ends there first, so that windows fire; else a job that goes
    /// on from the savepoint does as if it had not been stopped.
    pub async fn stop_at_savepoint(
        &self,
        folder: Option<String>,
        drain: bool,
    ) -> Result<SnapshotTaken, SnapshotError> {
        let then = if drain { Then::Drained } else { Then::Stop };
        self.order(Wanted::Savepoint(folder, then)).await
    }

    /// Stops the job at a last checkpoint, from which it can go on as if it had not been stopped.
    pub async fn stop_at_checkpoint(&self) -> Result<SnapshotTaken, SnapshotError> {
        self.order(Wanted::LastCheckpoint).await
    }

    /// Lets the sources read no further; what has been read is processed to the end, as if the input ended there.
    pub fn drain(&self) {
        self.commands.send_replace(Command::Stop);
    }

    /// Gives up at once.
    pub fn cancel(&self) {
        self.commands.send_replace(Command::Cancel);
    }

    /// Waits for what becomes of an order. Cancel-safe as far as the job is concerned: it does what it was asked for.
    async fn order(&self, what: Wanted) -> Result<SnapshotTaken, SnapshotError> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(SnapshotOrder { what, reply }).map_err(|_| SnapshotError::Gone)?;
        answer.await.unwrap_or(Err(SnapshotError::Gone))
    }
}

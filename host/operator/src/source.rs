//! Sources: an enumerator that hands out splits, and readers in the subtasks that read them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use millstream_types::{Batch, Schema};
use serde::{Deserialize, Serialize};

use crate::{Collector, ConnectorError, OperatorContext, OperatorError};

/// A part of a source that one reader reads at a time, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Unique in its source and shown in messages, such as `flights.csv[0..1048576]`.
    pub id: Arc<str>,
    /// What the connector needs to read it, encoded by the connector itself: splits travel between machines.
    pub payload: Vec<u8>,
    /// How far event time had got in it when it was left; [`MIN_WATERMARK`](millstream_types::MIN_WATERMARK) if
    /// nothing has been read of it.
    pub watermark: i64,
}

/// Where a source stands at a barrier: its splits without what has been read of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSnapshot {
    /// What [`SplitEnumerator::snapshot`] wrote.
    pub enumerator: Vec<u8>,
    /// What [`SourceOperator::snapshot`] of all subtasks gave, in any order.
    pub unfinished: Vec<Split>,
}

/// What a reader that has nothing to read is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// Read these, one after the other. There is at least one.
    Splits(Vec<Split>),
    /// Nothing now; ask again after this time.
    Later(Duration),
    /// Nothing will come any more.
    Finished,
}

/// Whether a source ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundedness {
    /// It ends by itself.
    Bounded,
    /// It goes on until the job is stopped.
    Unbounded,
}

/// A configured source, checked when it was made.
pub trait Source: Send + Sync {
    /// Its output ports by name, the main one first, each with its columns.
    fn outputs(&self) -> Vec<(String, Schema)>;

    /// Whether it ends.
    fn boundedness(&self) -> Boundedness;

    /// Whether its subtasks read the same event time side by side, as those of a log with partitions do, so that one
    /// that is ahead of the others is just early. Subtasks that read a file in pieces are not: each reads another part
    /// of the time.
    fn is_side_by_side(&self) -> bool {
        false
    }

    /// The file or folder that it reads, up to the first part that is a pattern. No sink of the job may own it.
    fn reads(&self) -> Option<PathBuf> {
        None
    }

    /// The one that finds splits and hands them out, for `parallelism` readers.
    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>, ConnectorError>;

    /// One that goes on where `snapshot` was taken, for `parallelism` readers, whatever number there were then. Splits
    /// that had been begun come first, each subtask's share of them at once, so that together they hold event time
    /// back.
    fn restore(
        &self,
        parallelism: u32,
        snapshot: &SourceSnapshot,
    ) -> Result<Box<dyn SplitEnumerator>, ConnectorError>;

    /// A reader for one subtask.
    fn reader(&self, ctx: &OperatorContext) -> Result<Box<dyn SplitReader>, ConnectorError>;
}

/// Finds the splits of a source and hands them out in order. One a job.
pub trait SplitEnumerator: Send {
    /// What subtask `subtask`, which has nothing left, reads next.
    fn next_split(&mut self, subtask: u32) -> Result<Assignment, ConnectorError>;

    /// What has not been handed out, encoded by the connector itself.
    fn snapshot(&self) -> Result<Vec<u8>, ConnectorError>;
}

/// What a reader found.
#[derive(Debug)]
pub enum Read {
    /// Rows, and what of the input could not be read as rows. Both may be empty.
    Rows {
        /// At most one batch for each output port. Their event times are set later, or by the reader if the source
        /// has its own.
        batches: Vec<(usize, Batch)>,
        /// What could not be read.
        bad: Vec<BadRow>,
    },
    /// Nothing for now; ask again after this time.
    Wait(Duration),
    /// The current split has been read to its end, or there is none: give it one.
    SplitFinished,
}

/// A piece of input that is no row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    /// Where it stands: file, and line or offset.
    pub position: String,
    /// What was found and what was expected.
    pub reason: String,
    /// The piece itself, as text as far as it is, cut to a bounded length.
    pub text: String,
}

/// Reads one split after the other. Lives on one thread.
#[async_trait(?Send)]
pub trait SplitReader {
    /// Starts a split, or goes on with what is left of one. Called before the first read and after each
    /// [`Read::SplitFinished`].
    fn start(&mut self, split: Split) -> Result<(), ConnectorError>;

    /// The next rows. At most a batch in all; not cancel-safe unless the reader says so.
    async fn read(&mut self) -> Result<Read, ConnectorError>;

    /// What is left of the split in progress, behind the last row that [`SplitReader::read`] has returned, as a split
    /// of its own; none between splits. Its watermark is not the reader's business.
    fn snapshot(&self) -> Result<Option<Split>, ConnectorError>;
}

/// What a step of a source operator came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SourceProgress {
    /// Something was read; go on.
    Read,
    /// Nothing for now; ask again after this time.
    Wait(Duration),
    /// All its splits have been read to their ends: give it others.
    SplitFinished,
}

/// A source at the head of a chain: a reader, the policy for what it cannot read, event times and watermarks. Lives on
/// one thread.
#[async_trait(?Send)]
pub trait SourceOperator {
    /// Takes splits to read one after the other. Called before the first read and after each
    /// [`SourceProgress::SplitFinished`].
    fn start(&mut self, splits: Vec<Split>) -> Result<(), OperatorError>;

    /// Reads at most a batch.
    async fn read(&mut self, out: &mut Collector) -> Result<SourceProgress, OperatorError>;

    /// What is left of its splits, behind what it has emitted.
    fn snapshot(&self) -> Result<Vec<Split>, OperatorError>;

    /// No split is there for now, or there is one again.
    fn status(&mut self, idle: bool, out: &mut Collector);
}

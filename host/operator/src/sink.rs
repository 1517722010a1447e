//! Sinks: where rows leave.

use std::path::PathBuf;

use async_trait::async_trait;
use millstream_types::{Attempt, Batch, RunId, Schema};

use crate::{ConnectorError, OperatorContext};

/// An execution of a job that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The run of the job.
    pub run: RunId,
    /// How often it has been started before.
    pub attempt: Attempt,
    /// Whether the sink goes on from a snapshot.
    pub restored: bool,
}

/// A configured sink, checked when it was made.
pub trait Sink: Send + Sync {
    /// Whether rows of this schema can be written; the message says which column cannot.
    fn accepts(&self, schema: &Schema) -> Result<(), String>;

    /// The folder whose content it sees to alone: what a run leaves there is this sink's. No other sink of a job may
    /// have it, and no source of it may read there.
    fn folder(&self) -> Option<PathBuf> {
        None
    }

    /// Readies the place that it writes to, once for all subtasks of an execution, wherever they run, and before any of them
    /// has a writer.
    fn begin(&self, _execution: &Beginning) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// A writer for one subtask, for rows of `schema`.
    fn writer(&self, schema: &Schema, ctx: &OperatorContext) -> Result<Box<dyn SinkWriter>, ConnectorError>;
}

/// Writes the rows of one subtask. Lives on one thread.
#[async_trait(?Send)]
pub trait SinkWriter {
    /// Takes rows.
    async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError>;

    /// Hands on what it holds back, as the input has run dry.
    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// A barrier: closes what has been written, so that it survives whatever comes, and describes it together with all
    /// that was closed before and is not visible yet. It becomes visible with [`SinkWriter::commit`].
    async fn prepare(&mut self, _checkpoint: u64) -> Result<Vec<Vec<u8>>, ConnectorError> {
        Ok(Vec::new())
    }

    /// Makes visible what was closed for this checkpoint and those before it. What is visible already is no error.
    async fn commit(&mut self, _checkpoint: u64) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// Goes on from a snapshot: what is described in it becomes visible, as its checkpoint is complete, and what has been
    /// written since is taken away. Called before anything is written.
    async fn restore(&mut self, _prepared: Vec<Vec<u8>>) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// The end: makes everything written final and visible. Where a job takes checkpoints, the last one has been
    /// committed by then.
    async fn finish(&mut self) -> Result<(), ConnectorError>;
}

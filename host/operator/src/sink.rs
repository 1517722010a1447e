//! Sinks: where rows leave.

use std::path::PathBuf;

use async_trait::async_trait;
use millstream_types::{Batch, Schema};

use crate::{ConnectorError, OperatorContext};

/// A configured sink, checked when it was made.
pub trait Sink: Send + Sync {
    /// Whether rows of this schema can be written; the message says which column cannot.
    fn accepts(&self, schema: &Schema) -> Result<(), String>;

    /// The folder whose content it sees to alone: what a run leaves there is this sink's. No other sink of a job may
    /// have it, and no source of it may read there.
    fn folder(&self) -> Option<PathBuf> {
        None
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

    /// The end of input: makes everything written final and visible.
    async fn finish(&mut self) -> Result<(), ConnectorError>;
}

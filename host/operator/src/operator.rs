//! An operator: what a chain drives.

use async_trait::async_trait;
use millstream_state::StateError;
use millstream_types::{Barrier, Batch, SnapshotRequest, StatePart};

use crate::{Collector, OperatorError};

/// Whether a step is finished. An operator that has more to emit than a batch says [`Progress::More`] and is called
/// again with the same argument once what it made has been passed on, so that firing a million windows needs the
/// memory of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// Nothing is left to do for this call.
    Done,
    /// Call again.
    More,
}

/// One operator in one subtask. It lives on one thread; futures of its calls need not be `Send` and are never
/// dropped half way unless the subtask is cancelled, after which the operator is not called again.
#[async_trait(?Send)]
pub trait Operator {
    /// Called once, before anything else.
    async fn open(&mut self) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Takes rows of an input port.
    async fn process(&mut self, port: usize, batch: Batch, out: &mut Collector) -> Result<(), OperatorError>;

    /// Event time has reached `watermark`; due timers and windows fire before it is sent on. Called once more with
    /// the end of time before [`Operator::end_of_input`].
    async fn watermark(&mut self, watermark: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        out.watermark(watermark);
        Ok(Progress::Done)
    }

    /// Processing time has reached a time that [`Operator::next_wakeup`] asked for.
    async fn processing_time(&mut self, _now: i64, _out: &mut Collector) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// The next processing time at which it wants to be called; asked for after each call.
    fn next_wakeup(&self) -> Option<i64> {
        None
    }

    /// All inputs have gone idle, or one of them is active again.
    fn status(&mut self, idle: bool, out: &mut Collector) {
        out.status(idle);
    }

    /// The input has run dry for now: what is held back for the sake of larger pieces goes out.
    async fn flush(&mut self) -> Result<(), OperatorError> {
        Ok(())
    }

    /// A barrier has been aligned: what has to go out before it goes out now.
    async fn before_barrier(
        &mut self,
        _barrier: &Barrier,
        _out: &mut Collector,
    ) -> Result<(), OperatorError> {
        Ok(())
    }

    /// What it keeps, as parts of a snapshot. The barrier has been passed on, and nothing of what follows it has been
    /// processed. After the end of input it is asked as well. Keyed state may build on what `request` says.
    async fn snapshot(&mut self, _request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        Ok(Vec::new())
    }

    /// Takes up what a snapshot has of it. Called once, before [`Operator::open`]. There may be several parts of a name
    /// and form, from as many subtasks. What it does not know is an error.
    async fn restore(&mut self, parts: Vec<StatePart>) -> Result<(), OperatorError> {
        match parts.into_iter().next() {
            None => Ok(()),
            Some(part) => Err(StateError::NotDeclared { name: part.name }.into()),
        }
    }

    /// Takes up a piece of keyed state that is too large to be handed over at once. Called between [`Operator::restore`] and
    /// [`Operator::open`], as often as it takes; a key is in one piece of a state only.
    async fn restore_piece(&mut self, piece: StatePart) -> Result<(), OperatorError> {
        Err(StateError::NotDeclared { name: piece.name }.into())
    }

    /// A checkpoint is complete: what was prepared for it, or for one before it, takes effect.
    async fn checkpoint_complete(&mut self, _checkpoint: u64) -> Result<(), OperatorError> {
        Ok(())
    }

    /// No row will follow on any port.
    async fn end_of_input(&mut self, _out: &mut Collector) -> Result<Progress, OperatorError> {
        Ok(Progress::Done)
    }

    /// Called once after the end of input, when everything has been passed on. Not called after an error.
    async fn close(&mut self) -> Result<(), OperatorError> {
        Ok(())
    }
}

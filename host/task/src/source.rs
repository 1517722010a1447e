//! Sources in a subtask: who hands out splits, and the loop that reads them.

use std::time::Duration;

use millstream_operator::{Assignment, ConnectorError, Read, Split, SplitEnumerator, SplitReader};
use millstream_types::Batch;
use tokio::sync::{mpsc, oneshot};

/// Hands out the splits of one source to its readers, wherever they run.
pub struct SplitService {
    enumerator: Box<dyn SplitEnumerator>,
    requests: mpsc::UnboundedReceiver<Request>,
}

/// What a reader asks for splits with. There is at most one request a reader under way.
#[derive(Clone)]
pub struct SplitRequests {
    requests: mpsc::UnboundedSender<Request>,
}

struct Request {
    subtask: u32,
    reply: oneshot::Sender<Result<Assignment, ConnectorError>>,
}

/// The one that hands out splits is gone.
pub(crate) struct NoEnumerator;

impl SplitService {
    /// A service over an enumerator, and what readers ask it with.
    pub fn new(enumerator: Box<dyn SplitEnumerator>) -> (SplitRequests, SplitService) {
        let (tx, requests) = mpsc::unbounded_channel();
        (SplitRequests { requests: tx }, SplitService { enumerator, requests })
    }

    /// Answers until no reader is left. Cancel-safe: an unanswered reader is told that nobody is there.
    pub async fn run(mut self) {
        while let Some(Request { subtask, reply }) = self.requests.recv().await {
            // A reader that has gone meanwhile has been cancelled with its job: its split is read by nobody.
            drop(reply.send(self.enumerator.next_split(subtask)));
        }
    }
}

impl SplitRequests {
    pub(crate) async fn next_split(
        &self,
        subtask: u32,
    ) -> Result<Result<Assignment, ConnectorError>, NoEnumerator> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { subtask, reply }).map_err(|_| NoEnumerator)?;
        answer.await.map_err(|_| NoEnumerator)
    }
}

/// The reading side of a source in one subtask.
pub struct SourceTask {
    /// Reads the splits. Rows that cannot be read have been dealt with by a reader around it: see
    /// `millstream_operators`.
    pub reader: Box<dyn SplitReader>,
    /// Where they come from.
    pub splits: SplitRequests,
}

/// What the next step of a source brought.
pub(crate) enum SourceStep {
    /// Rows.
    Rows(usize, Batch),
    /// The split has been read to its end.
    SplitFinished,
    /// A split has been started.
    SplitStarted,
    /// Nothing for now.
    Later(Duration),
    /// Nothing any more.
    Finished,
}

impl SourceTask {
    pub(crate) async fn next(&mut self) -> Result<SourceStep, ConnectorError> {
        Ok(match self.reader.read().await? {
            Read::Rows { port, batch, .. } => SourceStep::Rows(port, batch),
            Read::Wait(time) => SourceStep::Later(time),
            Read::SplitFinished => SourceStep::SplitFinished,
        })
    }

    /// Asks for a split and starts it.
    pub(crate) async fn next_split(
        &mut self,
        subtask: u32,
    ) -> Result<Result<SourceStep, ConnectorError>, NoEnumerator> {
        let assignment = match self.splits.next_split(subtask).await? {
            Ok(assignment) => assignment,
            Err(error) => return Ok(Err(error)),
        };
        Ok(match assignment {
            Assignment::Split(split) => self.start(split).map(|()| SourceStep::SplitStarted),
            Assignment::Later(time) => Ok(SourceStep::Later(time)),
            Assignment::Finished => Ok(SourceStep::Finished),
        })
    }

    fn start(&mut self, split: Split) -> Result<(), ConnectorError> {
        tracing::debug!(split = %split.id, "reading a split");
        self.reader.start(split)
    }
}

//! Sources in a subtask: who hands out splits, and the loop that reads them.

use millstream_operator::{Assignment, ConnectorError, SourceOperator, SplitEnumerator};
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
    /// Reads the splits.
    pub operator: Box<dyn SourceOperator>,
    /// Where they come from.
    pub splits: SplitRequests,
}

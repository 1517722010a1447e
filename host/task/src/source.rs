//! Sources in a subtask: who hands out splits, and what asks for them.
//!
//! A snapshot of a source is its enumerator's and its readers', taken at different moments. A reader says when it has
//! passed a barrier, in the same queue in which it asks for splits, so that what it was given before lies before the
//! barrier and is in its own snapshot. The enumerator's is taken once all readers have passed the barrier; what was
//! handed out behind it to those that were first is added to it as splits that are to be handed out again.

use millstream_operator::{Assignment, ConnectorError, SourceOperator, Split, SplitEnumerator};
use millstream_types::{OperatorId, StateChunk, StateForm, StatePart};
use tokio::sync::{mpsc, oneshot};

use crate::{CheckpointLink, CheckpointReport, TaskSnapshot};

/// Hands out the splits of one source to its readers, wherever they run.
pub struct SplitService {
    enumerator: Box<dyn SplitEnumerator>,
    requests: mpsc::UnboundedReceiver<SplitRequest>,
    /// Where its snapshots go, if there are any, and whose they are.
    checkpoints: Option<(CheckpointLink, OperatorId)>,
    readers: usize,
    pending: Vec<PendingSnapshot>,
}

/// A checkpoint whose barrier some readers have passed and others have not.
struct PendingSnapshot {
    checkpoint: u64,
    /// By reader.
    passed: Vec<bool>,
    /// Splits handed out to readers that had passed.
    behind: Vec<Split>,
}

/// What readers ask for splits with. There is at most one request a reader under way.
#[derive(Clone)]
pub struct SplitRequests {
    requests: mpsc::UnboundedSender<SplitRequest>,
}

/// What a reader says to whoever hands out splits. The order of what a reader says has to be kept.
pub enum SplitRequest {
    /// A reader has nothing to read.
    Next {
        /// The reader.
        subtask: u32,
        /// Takes the answer; dropped if nobody hands out splits any more.
        reply: oneshot::Sender<Result<Assignment, ConnectorError>>,
    },
    /// A reader has passed a barrier.
    Passed {
        /// The reader.
        subtask: u32,
        /// The barrier's checkpoint.
        checkpoint: u64,
    },
}

/// The one that hands out splits is gone.
pub(crate) struct NoEnumerator;

impl SplitService {
    /// A service over an enumerator for so many readers, and what readers ask it with.
    pub fn new(enumerator: Box<dyn SplitEnumerator>, readers: u32) -> (SplitRequests, SplitService) {
        let (tx, requests) = mpsc::unbounded_channel();
        let (readers, pending) = (readers as usize, Vec::new());
        let service = SplitService { enumerator, requests, checkpoints: None, readers, pending };
        (SplitRequests { requests: tx }, service)
    }

    /// Takes part in checkpoints, as the enumerator of this source.
    #[must_use]
    pub fn with_checkpoints(self, link: CheckpointLink, source: OperatorId) -> Self {
        Self { checkpoints: Some((link, source)), ..self }
    }

    /// Answers until no reader is left. Cancel-safe: an unanswered reader is told that nobody is there.
    pub async fn run(mut self) {
        while let Some(request) = self.requests.recv().await {
            match request {
                SplitRequest::Next { subtask, reply } => {
                    let assigned = self.enumerator.next_split(subtask);
                    if let Ok(Assignment::Splits(splits)) = &assigned {
                        self.handed_out(subtask, splits);
                    }
                    // A reader that has gone meanwhile has been cancelled with its job: its split is read by nobody.
                    drop(reply.send(assigned));
                }
                SplitRequest::Passed { subtask, checkpoint } => self.passed(subtask as usize, checkpoint),
            }
        }
    }

    fn handed_out(&mut self, subtask: u32, splits: &[Split]) {
        for pending in self.pending.iter_mut().filter(|p| p.passed[subtask as usize]) {
            pending.behind.extend_from_slice(splits);
        }
    }

    fn passed(&mut self, reader: usize, checkpoint: u64) {
        let found = self.pending.iter().position(|p| p.checkpoint == checkpoint);
        let at = found.unwrap_or_else(|| {
            let passed = vec![false; self.readers];
            self.pending.push(PendingSnapshot { checkpoint, passed, behind: Vec::new() });
            self.pending.len() - 1
        });
        self.pending[at].passed[reader] = true;
        if self.pending[at].passed.iter().all(|&passed| passed) {
            let PendingSnapshot { behind, .. } = self.pending.remove(at);
            // Earlier ones that not all readers have passed have been given up.
            self.pending.retain(|p| p.checkpoint > checkpoint);
            self.report(checkpoint, &behind);
        }
    }

    fn report(&self, checkpoint: u64, behind: &[Split]) {
        let Some((link, source)) = &self.checkpoints else { return };
        link.report(match self.enumerator.snapshot() {
            Ok(bytes) => {
                let chunk = vec![StateChunk::item(bytes)];
                let parts =
                    vec![StatePart::plain(ENUMERATOR, StateForm::Enumerator, chunk), splits_part(behind)];
                let operators = vec![(source.clone(), parts)];
                let snapshot = TaskSnapshot { operators, ..TaskSnapshot::default() };
                CheckpointReport::Snapshot { checkpoint, snapshot }
            }
            Err(error) => CheckpointReport::Declined { checkpoint, reason: format!("`{source}`: {error}") },
        });
    }
}

impl SplitRequests {
    /// What readers ask with, and what they ask: for whoever brings it to the one that hands out splits elsewhere.
    pub fn forwarded() -> (SplitRequests, mpsc::UnboundedReceiver<SplitRequest>) {
        let (tx, requests) = mpsc::unbounded_channel();
        (SplitRequests { requests: tx }, requests)
    }

    /// Asks for a reader that is elsewhere.
    pub fn forward(&self, request: SplitRequest) {
        // If nobody hands out splits any more, the reply is dropped with the request.
        self.requests.send(request).ok();
    }

    pub(crate) async fn next_split(
        &self,
        subtask: u32,
    ) -> Result<Result<Assignment, ConnectorError>, NoEnumerator> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(SplitRequest::Next { subtask, reply }).map_err(|_| NoEnumerator)?;
        answer.await.map_err(|_| NoEnumerator)
    }

    /// Says that a reader has passed a barrier.
    pub(crate) fn passed(&self, subtask: u32, checkpoint: u64) {
        // Without an enumerator the reader fails when it asks for its next split.
        self.requests.send(SplitRequest::Passed { subtask, checkpoint }).ok();
    }
}

/// Splits as a part of a snapshot.
pub(crate) fn splits_part(splits: &[Split]) -> StatePart {
    let chunk = |split: &Split| StateChunk::item(encode_split(split));
    StatePart::plain(SPLITS, StateForm::Splits, splits.iter().map(chunk).collect())
}

fn encode_split(split: &Split) -> Vec<u8> {
    let mut bytes = split.watermark.to_le_bytes().to_vec();
    bytes.extend((split.id.len() as u32).to_le_bytes());
    bytes.extend(split.id.as_bytes());
    bytes.extend(&split.payload);
    bytes
}

/// Reads a chunk of [`StateForm::Splits`]; none if it is no split.
pub fn decode_split(bytes: &[u8]) -> Option<Split> {
    let (watermark, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (id, payload) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (id, payload) = (std::str::from_utf8(id).ok()?.into(), payload.to_vec());
    Some(Split { id, payload, watermark: i64::from_le_bytes(*watermark) })
}

/// The name under which a snapshot has what the enumerator of a source knows.
pub const ENUMERATOR: &str = "enumerator";
/// The name under which a snapshot has the splits that a source is reading.
pub const SPLITS: &str = "splits";

/// The reading side of a source in one subtask.
pub struct SourceTask {
    /// Reads the splits.
    pub operator: Box<dyn SourceOperator>,
    /// Where they come from.
    pub splits: SplitRequests,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out numbered splits.
    struct Counting(u64);

    impl SplitEnumerator for Counting {
        fn next_split(&mut self, _subtask: u32) -> Result<Assignment, ConnectorError> {
            self.0 += 1;
            let id = self.0.to_string().into();
            Ok(Assignment::Splits(vec![Split { id, payload: vec![7], watermark: 5 }]))
        }

        fn snapshot(&self) -> Result<Vec<u8>, ConnectorError> {
            Ok(vec![self.0 as u8])
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_handed_out_behind_a_barrier_is_handed_out_again() {
        let (reports, mut reported) = mpsc::unbounded_channel();
        let (requests, service) = SplitService::new(Box::new(Counting(0)), 2);
        let service = service.with_checkpoints(CheckpointLink::new(9, reports), OperatorId::new("s"));
        let local = tokio::task::LocalSet::new();
        local.spawn_local(service.run());
        let script = async {
            drop(requests.next_split(0).await);
            requests.passed(0, 1);
            drop(requests.next_split(1).await);
            drop(requests.next_split(0).await);
            requests.passed(1, 1);
            drop(requests.next_split(0).await);
        };
        local.run_until(script).await;
        let (participant, report) = reported.recv().await.expect("both have passed");
        let CheckpointReport::Snapshot { checkpoint, snapshot } = report else { panic!("{report:?}") };
        assert_eq!((participant, checkpoint), (9, 1));
        let parts = &snapshot.operators[0].1;
        assert_eq!(parts[0].chunks[0].bytes, [3], "what is handed out later is not in it");
        let behind: Vec<_> = parts[1].chunks.iter().filter_map(|c| decode_split(&c.bytes)).collect();
        assert_eq!(behind, [Split { id: "3".into(), payload: vec![7], watermark: 5 }]);
    }
}

//! A subtask's part in checkpoints.
//!
//! Every subtask is told of every checkpoint by mail. A source puts the barrier into its stream; any other one waits for
//! the barrier to come to it, and one that comes to the end of its input first takes its snapshot there: what it was told
//! of and has not met lies behind the end.
//!
//! ```text
//!             announced by mail                        barrier aligned: snapshot
//!   running ─────────────────────▶ waiting for it ────────────────────────────────▶ running
//!      │                                 │
//!      │ end of input                    │ end of input: snapshot
//!      ▼                                 ▼
//!   ended: a snapshot for each that is announced, until the last one is complete ────▶ closed
//! ```
//!
//! A subtask that has passed a barrier at which the job stops stands still: it reads nothing and no time passes for it
//! until the snapshot is complete, which is its end without an end of input, or given up, when it goes on.

use std::time::{Duration, Instant};

use millstream_types::{Barrier, OperatorId, SnapshotRequest, StatePart};
use tokio::sync::mpsc;

use crate::{Chain, TaskError};

/// What a participant of checkpoints says to whoever coordinates them.
#[derive(Debug)]
pub enum CheckpointReport {
    /// It has taken its snapshot.
    Snapshot {
        /// The checkpoint.
        checkpoint: u64,
        /// What it has.
        snapshot: TaskSnapshot,
    },
    /// It cannot take part in a checkpoint.
    Declined {
        /// The checkpoint.
        checkpoint: u64,
        /// Why.
        reason: String,
    },
    /// It has processed the end of its input.
    Ended,
}

/// The state of a subtask.
#[derive(Debug, Default)]
pub struct TaskSnapshot {
    /// Whether it had processed the end of its input.
    pub ended: bool,
    /// From the barrier of its first channel to that of its last one.
    pub alignment: Duration,
    /// How long it stood still to take it.
    pub pause: Duration,
    /// The state of each operator of its chain.
    pub operators: Vec<(OperatorId, Vec<StatePart>)>,
}

/// The way from a participant to whoever coordinates checkpoints.
#[derive(Clone, Debug)]
pub struct CheckpointLink {
    participant: usize,
    reports: mpsc::UnboundedSender<(usize, CheckpointReport)>,
}

impl CheckpointLink {
    /// The link of a participant. Bounded by what is asked for: a report or two a checkpoint.
    pub fn new(participant: usize, reports: mpsc::UnboundedSender<(usize, CheckpointReport)>) -> Self {
        Self { participant, reports }
    }

    /// Sends a report. If nobody listens any more the job is coming to its end.
    pub fn report(&self, report: CheckpointReport) {
        self.reports.send((self.participant, report)).ok();
    }
}

/// What a subtask has been told of checkpoints.
pub(crate) struct Checkpoints {
    link: Option<CheckpointLink>,
    /// Checkpoints that it has been told of and has taken no snapshot for.
    announced: Vec<Barrier>,
    /// The last one for which it has: its barrier may be faster than the mail that announces it.
    taken: u64,
}

impl Checkpoints {
    /// Of a subtask that takes part in checkpoints if there is a link.
    pub(crate) fn new(link: Option<CheckpointLink>) -> Self {
        Self { link, announced: Vec::new(), taken: 0 }
    }

    /// Whether there are checkpoints at all.
    pub(crate) fn enabled(&self) -> bool {
        self.link.is_some()
    }

    /// A checkpoint has been triggered, and its barrier is to come.
    pub(crate) fn announce(&mut self, barrier: Barrier) {
        if barrier.id > self.taken {
            self.announced.push(barrier);
        }
    }

    /// A checkpoint has been given up.
    pub(crate) fn abort(&mut self, id: u64) {
        self.announced.retain(|barrier| barrier.id != id);
    }

    /// The barrier will not come any more.
    pub(crate) fn decline(&mut self, checkpoint: u64) {
        self.abort(checkpoint);
        if let Some(link) = &self.link {
            let reason = "its barrier did not come through all channels".to_owned();
            link.report(CheckpointReport::Declined { checkpoint, reason });
        }
    }

    /// Passes a barrier on that took so long to come through all channels, and takes the snapshot.
    pub(crate) async fn take(
        &mut self,
        barrier: Barrier,
        alignment: Duration,
        chain: &mut Chain,
    ) -> Result<(), TaskError> {
        let request = SnapshotRequest::at(&barrier);
        chain.barrier(barrier).await?;
        self.taken = request.checkpoint;
        self.announced.retain(|barrier| barrier.id > request.checkpoint);
        self.snapshot(Moment { request, ended: false, alignment }, Vec::new(), chain).await
    }

    /// Says that the end of input has been processed, and takes the snapshots of what was announced before.
    pub(crate) async fn end(&mut self, chain: &mut Chain) -> Result<(), TaskError> {
        if let Some(link) = &self.link {
            link.report(CheckpointReport::Ended);
        }
        for barrier in std::mem::take(&mut self.announced) {
            self.snapshot(Moment::ended(&barrier), Vec::new(), chain).await?;
        }
        Ok(())
    }

    /// Takes the snapshot and reports it; `head` is what a source adds.
    pub(crate) async fn snapshot(
        &mut self,
        moment: Moment,
        head: Vec<StatePart>,
        chain: &mut Chain,
    ) -> Result<(), TaskError> {
        let Some(link) = &self.link else { return Ok(()) };
        let Moment { request, ended, alignment } = moment;
        let since = Instant::now();
        let mut operators = chain.snapshot(&request).await?;
        if let Some((_, parts)) = operators.first_mut() {
            parts.extend(head);
        }
        let snapshot = TaskSnapshot { ended, alignment, pause: since.elapsed(), operators };
        link.report(CheckpointReport::Snapshot { checkpoint: request.checkpoint, snapshot });
        Ok(())
    }
}

/// When a snapshot is taken.
pub(crate) struct Moment {
    pub(crate) request: SnapshotRequest,
    /// Whether the end of input has been processed.
    pub(crate) ended: bool,
    /// How long its barrier took to come through all channels.
    pub(crate) alignment: Duration,
}

impl Moment {
    /// At a barrier that came at once.
    pub(crate) fn running(request: SnapshotRequest) -> Self {
        Self { request, ended: false, alignment: Duration::ZERO }
    }

    /// Behind the end of input.
    pub(crate) fn ended(barrier: &Barrier) -> Self {
        Self { request: SnapshotRequest::at(barrier), ended: true, alignment: Duration::ZERO }
    }
}

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
//! A barrier that overtakes is passed on at once, with a snapshot of the operators. What it has overtaken on its way in
//! may not be there yet; the snapshot is reported when it is.
//!
//! A subtask that has passed a barrier at which the job stops stands still: it reads nothing and no time passes for it
//! until the snapshot is complete, which is its end without an end of input, or given up, when it goes on.

use std::{
    collections::BTreeMap,
    pin::pin,
    time::{Duration, Instant},
};

use millstream_operator::Clock;
use millstream_types::{Barrier, OperatorId, SnapshotRequest, StatePart};
use tokio::sync::mpsc;

use crate::{Chain, InFlight, TaskError, gate::Recorded, in_flight::Overtaken, overdraft::unless_overtaken};

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
    /// What its barrier has overtaken; none if it was aligned all the way.
    pub in_flight: Option<InFlight>,
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
    /// Snapshots at barriers that overtake, of which not all is there.
    halves: BTreeMap<u64, Half>,
}

/// One of the two things that make the snapshot at a barrier that overtakes.
enum Half {
    /// Of the operators, with what has not been sent.
    Operators(TaskSnapshot),
    /// What was ahead of the barrier.
    Ahead(Recorded),
}

impl Checkpoints {
    /// Of a subtask that takes part in checkpoints if there is a link.
    pub(crate) fn new(link: Option<CheckpointLink>) -> Self {
        Self { link, announced: Vec::new(), taken: 0, halves: BTreeMap::new() }
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
        self.halves.remove(&id);
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
        let request = self.taken(&barrier);
        let unsent = pass(barrier, chain).await?;
        let in_flight = unsent.map(|unsent| InFlight { unsent, ..InFlight::default() });
        self.snapshot(Moment { alignment, in_flight, ..Moment::running(request) }, Vec::new(), chain).await
    }

    /// Passes a barrier on that overtakes, and takes the snapshot of the operators.
    pub(crate) async fn overtaken(&mut self, barrier: Barrier, chain: &mut Chain) -> Result<(), TaskError> {
        let request = self.taken(&barrier);
        let unsent = pass(barrier, chain).await?.unwrap_or_default();
        let in_flight = Some(InFlight { unsent, ..InFlight::default() });
        if self.enabled() {
            let moment = Moment { in_flight, ..Moment::running(request) };
            let snapshot = snapshot_at(moment, Vec::new(), chain).await?;
            self.half(request.checkpoint, Half::Operators(snapshot));
        }
        Ok(())
    }

    /// All that a barrier has overtaken on its way in is there.
    pub(crate) fn recorded(&mut self, recorded: Recorded) {
        if self.enabled() {
            self.half(recorded.id, Half::Ahead(recorded));
        }
    }

    /// Reports the snapshot if this is what was missing.
    fn half(&mut self, checkpoint: u64, half: Half) {
        let (mut snapshot, recorded) = match (self.halves.remove(&checkpoint), half) {
            (Some(Half::Ahead(recorded)), Half::Operators(snapshot))
            | (Some(Half::Operators(snapshot)), Half::Ahead(recorded)) => (snapshot, recorded),
            (_, half) => return drop(self.halves.insert(checkpoint, half)),
        };
        snapshot.alignment = recorded.alignment;
        snapshot.in_flight.get_or_insert_default().received = recorded.ahead;
        if let Some(link) = &self.link {
            link.report(CheckpointReport::Snapshot { checkpoint, snapshot });
        }
    }

    /// Notes that a snapshot is taken at a barrier.
    fn taken(&mut self, barrier: &Barrier) -> SnapshotRequest {
        self.taken = barrier.id;
        self.announced.retain(|announced| announced.id > barrier.id);
        SnapshotRequest::at(barrier)
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
        let checkpoint = moment.request.checkpoint;
        let snapshot = snapshot_at(moment, head, chain).await?;
        link.report(CheckpointReport::Snapshot { checkpoint, snapshot });
        Ok(())
    }
}

async fn snapshot_at(
    moment: Moment,
    head: Vec<StatePart>,
    chain: &mut Chain,
) -> Result<TaskSnapshot, TaskError> {
    let Moment { request, ended, alignment, in_flight } = moment;
    let since = Instant::now();
    let mut operators = chain.snapshot(&request).await?;
    if let Some((_, parts)) = operators.first_mut() {
        parts.extend(head);
    }
    Ok(TaskSnapshot { ended, alignment, pause: since.elapsed(), operators, in_flight })
}

/// Has everything before a barrier go out, and then the barrier. If it may overtake and its time comes while some of that
/// has to wait, it goes ahead: the answer is what it has overtaken.
pub(crate) async fn pass(barrier: Barrier, chain: &mut Chain) -> Result<Option<Vec<Overtaken>>, TaskError> {
    let (overdraft, clock, due) = (chain.overdraft(), chain.head().clock.clone(), barrier.overtakes_at());
    unless_overtaken(pin!(chain.barrier(barrier)), &overdraft, |_| due_in(due?, &*clock)).await?;
    Ok(chain.take_overtaken())
}

/// In how long a time of the clock is there.
pub(crate) fn due_in(time: i64, clock: &dyn Clock) -> Option<Duration> {
    Some(Duration::from_millis(time.saturating_sub(clock.now()).max(0).unsigned_abs()))
}

/// When a snapshot is taken.
pub(crate) struct Moment {
    pub(crate) request: SnapshotRequest,
    /// Whether the end of input has been processed.
    pub(crate) ended: bool,
    /// How long its barrier took to come through all channels.
    pub(crate) alignment: Duration,
    /// What the barrier has overtaken, if it has.
    pub(crate) in_flight: Option<InFlight>,
}

impl Moment {
    /// At a barrier that came at once.
    pub(crate) fn running(request: SnapshotRequest) -> Self {
        Self { request, ended: false, alignment: Duration::ZERO, in_flight: None }
    }

    /// Behind the end of input.
    pub(crate) fn ended(barrier: &Barrier) -> Self {
        Self { ended: true, ..Self::running(SnapshotRequest::at(barrier)) }
    }
}

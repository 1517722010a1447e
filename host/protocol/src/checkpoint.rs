//! The checkpoint coordinator: when checkpoints are triggered, and when one is complete or has failed.
//!
//! Participants are the subtasks of a job and the enumerators of its sources; each acknowledges each checkpoint once.
//!
//! ```text
//!             Trigger            all have acknowledged        Store           stored
//!   (due) ─────────────▶ collecting ─────────────▶ acknowledged ──────▶ storing ──────▶ Complete
//!                            │                          │                  │
//!                            │ declined, timed out,     │ a later one      │ the store failed
//!                            │ a later one is stored    │ is stored        │
//!                            ▼                          ▼                  ▼
//!                          Abort                      Abort              Abort
//! ```
//!
//! One checkpoint is stored at a time, and never after a later one: what is complete ascends. While it is being stored no
//! time limit applies, as its metadata may be there already; the store ends by its own limits.
//!
//! Somebody may ask for a snapshot, a savepoint or one at which the job stops. It is triggered at once, whatever the
//! interval, the pause and the limit say; no other is triggered before it has come to its end, so that none subsumes it.
//! If it fails whoever asked is told, and it does not count as a failure of the job's.
//!
//! Once all subtasks have ended, one more checkpoint is taken that has the end of everything: the last one, with which
//! sinks make visible what they still hold back. It is tried again for as long as failures are tolerated.
//!
//! Time is the caller's: any monotonic clock, as the duration since some moment.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use millstream_types::BarrierKind;

mod settings;
#[cfg(test)]
mod tests;

pub use settings::CheckpointSettings;

/// Who takes part in the checkpoints of a job, numbered: first the subtasks, then the enumerators of its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participants {
    /// How many subtasks there are.
    pub subtasks: usize,
    /// How many enumerators there are.
    pub enumerators: usize,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointAction {
    /// Ask all participants for a snapshot.
    Trigger {
        /// The checkpoint.
        id: u64,
        /// What its barriers are for.
        kind: BarrierKind,
        /// Whether the job stops at it.
        stop: bool,
    },
    /// Write the metadata, as all participants have acknowledged.
    Store {
        /// The checkpoint.
        id: u64,
    },
    /// Tell all participants that the checkpoint is complete.
    Complete {
        /// The checkpoint.
        id: u64,
        /// What it was taken for.
        kind: BarrierKind,
        /// Whether nothing is left to do behind it: it has the end of everything, or the job stops at it.
        last: bool,
    },
    /// Tell all participants that the checkpoint is given up, and drop what has been stored for it.
    Abort {
        /// The checkpoint.
        id: u64,
        /// Why.
        failure: CheckpointFailure,
    },
    /// More checkpoints have failed in a row than are tolerated: fail the job.
    Fail {
        /// The last one.
        id: u64,
        /// Why it failed.
        failure: CheckpointFailure,
    },
}

/// A snapshot that somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedSnapshot {
    /// What it is for.
    pub kind: BarrierKind,
    /// Whether the job stops at it.
    pub stop: bool,
}

/// Why a snapshot is not taken for whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefused {
    /// One is being taken.
    #[error("snapshot {0}, which was asked for before, is still being taken: try again when it is complete")]
    Busy(u64),
    /// Nothing will be taken any more.
    #[error("the job is coming to its end: its last checkpoint is being taken")]
    Ending,
}

/// Why a checkpoint is given up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointFailure {
    /// A participant could not take its snapshot.
    #[error("{0}")]
    Declined(String),
    /// Not all participants have acknowledged in time.
    #[error("{missing} of {participants} participants have not acknowledged within {timeout:?}")]
    TimedOut {
        /// How many are missing.
        missing: usize,
        /// Of how many.
        participants: usize,
        /// The limit.
        timeout: Duration,
    },
    /// The metadata could not be written.
    #[error("the metadata cannot be stored: {0}")]
    NotStored(String),
    /// A later checkpoint is complete before it. This is no failure of the job's.
    #[error("checkpoint {0} is complete before it")]
    Subsumed(u64),
}

/// Decides about the checkpoints of one execution of a job.
#[derive(Clone, Debug)]
pub struct CheckpointCoordinator {
    settings: CheckpointSettings,
    participants: Participants,
    next_id: u64,
    /// When the next one is due by the interval.
    due: Duration,
    /// Before this time none is triggered, for the sake of the pause between two.
    paused_until: Duration,
    pending: BTreeMap<u64, Pending>,
    ended: Vec<bool>,
    /// Checkpoints that have failed since the last one that was completed.
    failures: u32,
    /// What the last checkpoint is, if the job comes to its end.
    last_kind: BarrierKind,
    closed: bool,
    actions: VecDeque<CheckpointAction>,
}

#[derive(Clone, Debug)]
struct Pending {
    triggered: Duration,
    acknowledged: Vec<bool>,
    storing: bool,
    kind: BarrierKind,
    /// Whether somebody has asked for it.
    asked: bool,
    last: bool,
}

/// Why a snapshot is triggered.
struct Asked {
    asked: bool,
    stop: bool,
    last: bool,
}

impl Pending {
    fn missing(&self) -> usize {
        self.acknowledged.iter().filter(|&&acknowledged| !acknowledged).count()
    }
}

impl CheckpointCoordinator {
    /// A coordinator whose first checkpoint is number `first` and due one interval from `now`.
    pub fn new(settings: CheckpointSettings, participants: Participants, first: u64, now: Duration) -> Self {
        Self {
            due: now + settings.interval,
            paused_until: now,
            settings,
            participants,
            next_id: first,
            pending: BTreeMap::new(),
            ended: vec![false; participants.subtasks],
            failures: 0,
            last_kind: BarrierKind::Checkpoint,
            closed: false,
            actions: VecDeque::new(),
        }
    }

    /// The next time at which [`CheckpointCoordinator::handle_timeout`] is to be called, if any.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let collecting = self.pending.values().filter(|p| p.missing() > 0);
        let expiry = collecting.map(|p| p.triggered + self.settings.timeout).min();
        let trigger = self.may_trigger().then(|| self.trigger_time());
        expiry.into_iter().chain(trigger).min()
    }

    /// What is to be done next.
    pub fn poll_action(&mut self) -> Option<CheckpointAction> {
        self.actions.pop_front()
    }

    /// How many checkpoints are under way.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.expire(now);
        self.advance(now);
    }

    /// Somebody asks for a snapshot: the answer is its number.
    pub fn handle_request(&mut self, request: AskedSnapshot, now: Duration) -> Result<u64, RequestRefused> {
        if self.closed || self.all_ended() {
            return Err(RequestRefused::Ending);
        }
        if let Some((&id, _)) = self.pending.iter().find(|(_, p)| p.asked) {
            return Err(RequestRefused::Busy(id));
        }
        let AskedSnapshot { kind, stop } = request;
        Ok(self.trigger(kind, Asked { asked: true, stop, last: stop }, now))
    }

    /// The last checkpoint, which is taken at the end of everything, is to be one of this kind.
    pub fn set_last_kind(&mut self, kind: BarrierKind) {
        self.last_kind = kind;
    }

    /// A participant has taken and stored its snapshot. One of a checkpoint that is not pending any more is ignored.
    pub fn handle_acknowledged(&mut self, id: u64, participant: usize, now: Duration) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.acknowledged[participant] = true;
        }
        self.advance(now);
    }

    /// A participant cannot take its snapshot.
    pub fn handle_declined(&mut self, id: u64, reason: String, now: Duration) {
        if self.pending.get(&id).is_some_and(|p| !p.storing) {
            self.abort(id, CheckpointFailure::Declined(reason), now);
        }
        self.advance(now);
    }

    /// The metadata of a checkpoint has been written, or could not be.
    pub fn handle_stored(&mut self, id: u64, result: Result<(), String>, now: Duration) {
        match result {
            Ok(()) => self.complete(id, now),
            Err(reason) => self.abort(id, CheckpointFailure::NotStored(reason), now),
        }
        self.advance(now);
    }

    /// A subtask has processed the end of its input. It goes on to acknowledge.
    pub fn handle_ended(&mut self, subtask: usize, now: Duration) {
        self.ended[subtask] = true;
        if self.all_ended() {
            self.due = now;
            self.paused_until = now;
        }
        self.advance(now);
    }

    fn all_ended(&self) -> bool {
        self.ended.iter().all(|&ended| ended)
    }

    /// Whether nothing but time is in the way of the next checkpoint.
    fn may_trigger(&self) -> bool {
        let waited_for = self.pending.values().any(|p| p.last || p.asked);
        let room = self.pending.len() < self.settings.concurrent();
        !self.closed && !waited_for && (room || self.all_ended())
    }

    fn trigger_time(&self) -> Duration {
        self.due.max(self.paused_until)
    }

    fn advance(&mut self, now: Duration) {
        self.store_next(now);
        if self.may_trigger() && self.trigger_time() <= now {
            let last = self.all_ended();
            let kind = if last { self.last_kind } else { BarrierKind::Checkpoint };
            self.due = now + self.settings.interval;
            self.trigger(kind, Asked { asked: false, stop: false, last }, now);
        }
    }

    fn trigger(&mut self, kind: BarrierKind, asked: Asked, now: Duration) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let Asked { asked, stop, last } = asked;
        let acknowledged = vec![false; self.participants.subtasks + self.participants.enumerators];
        let pending = Pending { triggered: now, acknowledged, storing: false, kind, asked, last };
        self.pending.insert(id, pending);
        self.actions.push_back(CheckpointAction::Trigger { id, kind, stop });
        id
    }

    /// Has the earliest checkpoint stored that all have acknowledged, unless one is being stored.
    fn store_next(&mut self, now: Duration) {
        if self.pending.values().any(|p| p.storing) {
            return;
        }
        let Some(id) = self.pending.iter().find(|(_, p)| p.missing() == 0).map(|(&id, _)| id) else { return };
        let earlier: Vec<u64> = self.pending.range(..id).map(|(&id, _)| id).collect();
        earlier.into_iter().for_each(|e| self.abort(e, CheckpointFailure::Subsumed(id), now));
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.storing = true;
            self.actions.push_back(CheckpointAction::Store { id });
        }
    }

    fn complete(&mut self, id: u64, now: Duration) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let Pending { kind, asked, last, .. } = pending;
        if !asked {
            self.failures = 0;
            self.paused_until = now + self.settings.min_pause;
        }
        self.closed = last;
        self.actions.push_back(CheckpointAction::Complete { id, kind, last });
    }

    fn expire(&mut self, now: Duration) {
        let timeout = self.settings.timeout;
        let expired = |(&id, p): (&u64, &Pending)| {
            let missing = p.missing();
            (missing > 0 && p.triggered + timeout <= now).then_some((id, missing))
        };
        let expired: Vec<(u64, usize)> = self.pending.iter().filter_map(expired).collect();
        let participants = self.participants.subtasks + self.participants.enumerators;
        for (id, missing) in expired {
            self.abort(id, CheckpointFailure::TimedOut { missing, participants, timeout }, now);
        }
    }

    fn abort(&mut self, id: u64, failure: CheckpointFailure, now: Duration) {
        let Some(pending) = self.pending.remove(&id).filter(|_| !self.closed) else { return };
        self.actions.push_back(CheckpointAction::Abort { id, failure: failure.clone() });
        if pending.asked || matches!(failure, CheckpointFailure::Subsumed(_)) {
            return;
        }
        self.paused_until = now + self.settings.min_pause.max(self.retry_pause());
        self.failures += 1;
        if self.failures > self.settings.tolerable_failures {
            self.closed = true;
            self.actions.push_back(CheckpointAction::Fail { id, failure });
        }
    }

    /// The last checkpoint is not due at an interval: after a failure it waits a moment before it is tried again.
    fn retry_pause(&self) -> Duration {
        if self.all_ended() { RETRY_LAST } else { Duration::ZERO }
    }
}

/// How long after a failure the last checkpoint is tried again.
const RETRY_LAST: Duration = Duration::from_secs(1);

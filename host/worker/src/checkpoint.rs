//! The checkpoint service of a job: it acts on what the pure coordinator decides.
//!
//! It mails barriers to the subtasks, stores the snapshots that come back while everybody goes on, writes the metadata
//! when the last one is stored, tells the subtasks, and deletes what is not needed any more. All of that is done beside
//! each other; nothing waits for a deletion.

mod collect;
mod store;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use millstream_operator::Clock;
use millstream_protocol::{
    CheckpointAction, CheckpointCoordinator, CheckpointFailure, CheckpointSettings, Participants,
};
use millstream_storage::{RunStore, StorageError};
use millstream_task::{CheckpointReport, Mail, SubtaskEnd, TaskError};
use millstream_types::{Alignment, Barrier, BarrierKind};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::status::{Board, CompletedCheckpoint};
use collect::Collected;
use store::{Stored, store_snapshot};

pub(crate) use collect::{Layout, Participant};

/// How the checkpoints of a job are taken, and where they go.
#[derive(Clone, Debug)]
pub struct CheckpointOptions {
    /// When they are due and how much may go wrong.
    pub settings: CheckpointSettings,
    /// What a subtask does with channels that have passed a barrier.
    pub alignment: Alignment,
    /// How many complete ones are kept.
    pub retain: usize,
    /// Where they go.
    pub run: RunStore,
}

/// What the service is connected with.
pub(crate) struct Connections {
    /// The mailboxes of all subtasks, by participant.
    pub(crate) mails: Vec<mpsc::UnboundedSender<Mail>>,
    /// What participants report.
    pub(crate) reports: mpsc::UnboundedReceiver<(usize, CheckpointReport)>,
    /// Takes the failure of the job if there are too many failures.
    pub(crate) ends: mpsc::UnboundedSender<SubtaskEnd>,
    /// Becomes true when the job is given up.
    pub(crate) cancelled: watch::Receiver<bool>,
    /// Where what is known of checkpoints is shown.
    pub(crate) board: Board,
    /// The wall clock, for the metadata.
    pub(crate) clock: Arc<dyn Clock>,
}

/// Takes the checkpoints of one execution of a job.
pub(crate) struct CheckpointService {
    options: CheckpointOptions,
    layout: Arc<Layout>,
    connections: Connections,
    coordinator: CheckpointCoordinator,
    started: Instant,
    pending: BTreeMap<u64, Pending>,
    work: JoinSet<Work>,
}

struct Pending {
    /// By the wall clock, milliseconds since the epoch.
    triggered: i64,
    since: Instant,
    collected: Collected,
}

/// What has been done beside.
enum Work {
    Snapshot { checkpoint: u64, participant: usize, stored: Result<Stored, StorageError> },
    Metadata { checkpoint: u64, stored: Result<u64, StorageError> },
    Deleted(Result<(), StorageError>),
}

impl CheckpointService {
    /// A service whose first checkpoint is number `first`.
    pub(crate) fn new(
        options: CheckpointOptions,
        layout: Layout,
        first: u64,
        connections: Connections,
    ) -> Self {
        let started = Instant::now();
        let subtasks = connections.mails.len();
        let participants = Participants { subtasks, enumerators: layout.participants.len() - subtasks };
        let coordinator =
            CheckpointCoordinator::new(options.settings, participants, first, started.elapsed());
        let (pending, work) = (BTreeMap::new(), JoinSet::new());
        Self { options, layout: Arc::new(layout), connections, coordinator, started, pending, work }
    }

    /// Runs until the last checkpoint is complete, the job is given up, or too many checkpoints have failed. Metadata
    /// that is being written then is waited for, so that what is there afterwards stays as it is.
    pub(crate) async fn run(mut self) {
        let mut over = self.act();
        while !over {
            let timeout = self.coordinator.poll_timeout().map(|at| self.started + at);
            tokio::select! {
                () = cancelled(&mut self.connections.cancelled) => break,
                Some((participant, report)) = self.connections.reports.recv() => self.reported(participant, report),
                Some(done) = self.work.join_next() => {
                    // A panic of such work has been printed; its checkpoint runs into its limit.
                    if let Ok(done) = done { self.done(done) }
                }
                () = until(timeout) => self.coordinator.handle_timeout(self.started.elapsed()),
            }
            over = self.act();
        }
        while let Some(done) = self.work.join_next().await {
            if let Ok(done) = done {
                self.done(done);
                self.act();
            }
        }
    }

    fn reported(&mut self, participant: usize, report: CheckpointReport) {
        let now = self.started.elapsed();
        match report {
            CheckpointReport::Ended => self.coordinator.handle_ended(participant, now),
            CheckpointReport::Declined { checkpoint, reason } => {
                self.coordinator.handle_declined(checkpoint, reason, now);
            }
            CheckpointReport::Snapshot { checkpoint, snapshot } => {
                if self.pending.contains_key(&checkpoint) {
                    let run = self.options.run.clone();
                    self.work.spawn(async move {
                        let stored = store_snapshot(&run, checkpoint, participant, snapshot).await;
                        Work::Snapshot { checkpoint, participant, stored }
                    });
                }
            }
        }
    }

    fn done(&mut self, work: Work) {
        let now = self.started.elapsed();
        match work {
            Work::Snapshot { checkpoint, participant, stored: Ok(stored) } => {
                if let Some(pending) = self.pending.get_mut(&checkpoint) {
                    pending.collected.add(participant, stored);
                }
                self.coordinator.handle_acknowledged(checkpoint, participant, now);
            }
            Work::Snapshot { checkpoint, stored: Err(error), .. } => {
                self.coordinator.handle_declined(checkpoint, error.in_full(), now);
            }
            Work::Metadata { checkpoint, stored } => {
                if let (Ok(bytes), Some(pending)) = (&stored, self.pending.get(&checkpoint)) {
                    let took = pending.since.elapsed();
                    self.connections
                        .board
                        .checkpoint_completed(CompletedCheckpoint::new(checkpoint, took, *bytes));
                }
                let stored = stored.map(drop).map_err(|error| error.in_full());
                self.coordinator.handle_stored(checkpoint, stored, now);
            }
            Work::Deleted(Ok(())) => {}
            Work::Deleted(Err(error)) => {
                tracing::warn!(error = error.in_full(), "old checkpoints cannot be deleted");
            }
        }
    }

    /// Does what has been decided; true once there will be no more checkpoints.
    fn act(&mut self) -> bool {
        let mut over = false;
        while let Some(action) = self.coordinator.poll_action() {
            match action {
                CheckpointAction::Trigger { id, kind } => self.trigger(id, kind),
                CheckpointAction::Store { id } => self.store(id),
                CheckpointAction::Complete { id, last } => {
                    self.pending.remove(&id);
                    self.mail_all(&Mail::Complete { checkpoint: id, last });
                    self.delete_old();
                    over |= last;
                }
                CheckpointAction::Abort { id, failure } => self.abort(id, &failure),
                CheckpointAction::Fail { id, failure } => {
                    let tolerated = self.options.settings.tolerable_failures;
                    let reason = failure.to_string();
                    let error = TaskError::Checkpoint { checkpoint: id, reason, tolerated };
                    self.connections.ends.send(SubtaskEnd::Failed(error)).ok();
                    over = true;
                }
            }
        }
        over
    }

    fn trigger(&mut self, id: u64, kind: BarrierKind) {
        let triggered = self.connections.clock.now();
        let collected = Collected::new(self.layout.clone());
        self.pending.insert(id, Pending { triggered, since: Instant::now(), collected });
        let barrier = Barrier { id, kind, alignment: self.options.alignment, triggered };
        self.mail_all(&Mail::Checkpoint(barrier));
    }

    fn store(&mut self, id: u64) {
        let Some(pending) = self.pending.get(&id) else { return };
        let metadata = pending.collected.metadata(id, pending.triggered, self.connections.clock.now());
        let run = self.options.run.clone();
        self.work.spawn(async move {
            let stored = run.put_metadata(&metadata).await.map(|()| metadata.state_bytes());
            Work::Metadata { checkpoint: id, stored }
        });
    }

    fn abort(&mut self, id: u64, failure: &CheckpointFailure) {
        self.pending.remove(&id);
        self.mail_all(&Mail::Abort(id));
        if !matches!(failure, CheckpointFailure::Subsumed(_)) {
            tracing::warn!(checkpoint = id, %failure, "a checkpoint has failed");
            self.connections.board.checkpoint_failed(id, failure.to_string());
        }
    }

    /// Deletes what is older than what is kept, also what is left of checkpoints that were given up.
    fn delete_old(&mut self) {
        let (run, keep) = (self.options.run.clone(), self.options.retain);
        self.work.spawn(async move { Work::Deleted(run.retain(keep).await) });
    }

    fn mail_all(&self, mail: &Mail) {
        // A subtask that has gone takes no mail; its end is reported elsewhere.
        self.connections.mails.iter().for_each(|to| drop(to.send(mail.clone())));
    }
}

async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    drop(cancel.wait_for(|cancelled| *cancelled).await);
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

//! The checkpoint service of a job: it acts on what the pure coordinator decides.
//!
//! It tells all participants of checkpoints that are triggered, hears where they have stored what they took while everybody
//! went on, writes the metadata when the last one has, tells them, and deletes what is not needed any more. All of that is
//! done beside each other; nothing waits for a deletion.
//!
//! Savepoints go the same way into folders of their own. They belong to whoever asked for them: sinks show nothing on
//! their account, as a job that fails goes on from its newest checkpoint, and nothing deletes them. Only one at which the
//! job stops counts for sinks too.

mod asked;
mod collect;
mod in_flight;
mod participants;
mod program;
mod store;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use millstream_operator::Clock;
use millstream_protocol::{
    CheckpointAction, CheckpointCoordinator, CheckpointFailure, CheckpointSettings, Participants,
};
use millstream_snapshot::SnapshotMetadata;
use millstream_storage::{RunStore, SnapshotFolder, StorageError};
use millstream_task::{SubtaskEnd, TaskError};
use millstream_types::{Alignment, Barrier, BarrierKind};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    control::SnapshotOrder,
    status::{Board, CompletedCheckpoint, millis},
};
use asked::{Asked, Place};
use collect::Collected;

pub(crate) use collect::{Layout, Participant};
pub use participants::{Notice, Participation};
pub(crate) use participants::{ParticipantGroup, StoredSnapshots};
pub use program::JobFileText;
pub(crate) use program::ProgramContent;
pub use store::Stored;

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
    /// What the job was read from, for savepoints.
    pub job_file: JobFileText,
}

/// What the service is connected with.
pub(crate) struct Connections {
    /// To all participants, wherever they are.
    pub(crate) notices: Vec<mpsc::UnboundedSender<Notice>>,
    /// Snapshots that are asked for.
    pub(crate) orders: mpsc::UnboundedReceiver<SnapshotOrder>,
    /// What participants come to.
    pub(crate) participation: mpsc::UnboundedReceiver<(usize, Participation)>,
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
    program: Arc<ProgramContent>,
    connections: Connections,
    coordinator: CheckpointCoordinator,
    started: Instant,
    pending: BTreeMap<u64, Pending>,
    /// Snapshots that somebody has asked for, until they are triggered.
    asked: BTreeMap<u64, Asked>,
    /// The savepoint that is taken at the end of input, if somebody has asked for that.
    drained: Option<Asked>,
    /// The last complete checkpoint of this run, on which others may build.
    base: Option<Arc<SnapshotMetadata>>,
    work: JoinSet<Work>,
    deletion: Deletion,
}

struct Pending {
    /// By the wall clock, milliseconds since the epoch.
    triggered: i64,
    since: Instant,
    kind: BarrierKind,
    /// Where it goes.
    folder: SnapshotFolder,
    collected: Collected,
    /// How many bytes of state it has, once it is stored.
    bytes: u64,
    /// Who asked for it, if somebody did.
    asked: Option<Asked>,
    /// What it may build on.
    base: Option<Arc<SnapshotMetadata>>,
    /// What is being written, once all is there.
    metadata: Option<Arc<SnapshotMetadata>>,
}

/// What has been done beside.
enum Work {
    Metadata {
        checkpoint: u64,
        stored: Result<u64, StorageError>,
    },
    /// A place for a snapshot that is asked for.
    Place(SnapshotOrder, Result<Place, StorageError>),
    Deleted(Result<(), StorageError>),
}

/// Of what is not needed any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Deletion {
    #[default]
    None,
    UnderWay,
    /// Under way, and there is more by now.
    WantedAgain,
}

impl CheckpointService {
    /// A service whose first checkpoint is number `first` and may build on `base`.
    pub(crate) fn new(
        options: CheckpointOptions,
        layout: Arc<Layout>,
        program: Arc<ProgramContent>,
        first: u64,
        base: Option<Arc<SnapshotMetadata>>,
        connections: Connections,
    ) -> Self {
        let started = Instant::now();
        let is_subtask = |participant: &&Participant| matches!(participant, Participant::Subtask(_));
        let subtasks = layout.participants.iter().filter(is_subtask).count();
        let participants = Participants { subtasks, enumerators: layout.participants.len() - subtasks };
        let coordinator =
            CheckpointCoordinator::new(options.settings, participants, first, started.elapsed());
        Self {
            options,
            layout,
            program,
            connections,
            coordinator,
            started,
            pending: BTreeMap::new(),
            base,
            asked: BTreeMap::new(),
            drained: None,
            work: JoinSet::new(),
            deletion: Deletion::None,
        }
    }

    /// Runs until the last checkpoint is complete, the job is given up, or too many checkpoints have failed. Metadata
    /// that is being written then is waited for, so that what is there afterwards stays as it is.
    pub(crate) async fn run(mut self) {
        let mut over = self.act();
        while !over {
            let timeout = self.coordinator.poll_timeout().map(|at| self.started + at);
            tokio::select! {
                () = cancelled(&mut self.connections.cancelled) => break,
                Some(order) = self.connections.orders.recv() => self.ordered(order),
                Some((participant, participation)) = self.connections.participation.recv() => self.participated(participant, participation),
                Some(done) = self.work.join_next() => {
                    // A panic of such work has been printed. A snapshot's checkpoint runs into its limit then.
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

    fn participated(&mut self, participant: usize, participation: Participation) {
        let now = self.started.elapsed();
        match participation {
            Participation::Ended => self.coordinator.handle_ended(participant, now),
            Participation::Declined { checkpoint, reason } => {
                self.given_up_meanwhile(checkpoint);
                self.coordinator.handle_declined(checkpoint, reason, now);
            }
            Participation::Stored { checkpoint, stored } => {
                self.given_up_meanwhile(checkpoint);
                if let Some(pending) = self.pending.get_mut(&checkpoint) {
                    pending.collected.add(participant, stored);
                }
                self.coordinator.handle_acknowledged(checkpoint, participant, now);
            }
        }
    }

    /// What was deleted when a checkpoint was given up did not have what was still being stored.
    fn given_up_meanwhile(&mut self, checkpoint: u64) {
        if !self.pending.contains_key(&checkpoint) {
            self.delete_old();
        }
    }

    fn done(&mut self, work: Work) {
        let now = self.started.elapsed();
        match work {
            Work::Metadata { checkpoint, stored } => {
                if let (Ok(bytes), Some(pending)) = (&stored, self.pending.get_mut(&checkpoint)) {
                    pending.bytes = *bytes;
                }
                let stored = stored.map(drop).map_err(|error| error.in_full());
                self.coordinator.handle_stored(checkpoint, stored, now);
            }
            Work::Place(order, place) => self.placed(order, place),
            Work::Deleted(deleted) => {
                if let Err(error) = deleted {
                    tracing::warn!(error = error.in_full(), "old checkpoints cannot be deleted");
                }
                if std::mem::take(&mut self.deletion) == Deletion::WantedAgain {
                    self.delete_old();
                }
            }
        }
    }

    /// Does what has been decided; true once there will be no more checkpoints.
    fn act(&mut self) -> bool {
        let mut over = false;
        while let Some(action) = self.coordinator.poll_action() {
            match action {
                CheckpointAction::Trigger { id, kind, stop } => self.trigger(id, kind, stop),
                CheckpointAction::Store { id } => self.store(id),
                CheckpointAction::Complete { id, kind, last } => {
                    self.complete(id, kind, last);
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

    fn trigger(&mut self, id: u64, kind: BarrierKind, stop: bool) {
        let asked =
            self.asked.remove(&id).or_else(|| self.drained.take_if(|_| kind == BarrierKind::Savepoint));
        let folder = match &asked {
            Some(Asked { place: Place::Savepoint(folder), .. }) => folder.clone(),
            Some(Asked { place: Place::Run, .. }) | None => self.options.run.checkpoint(id),
        };
        let triggered = self.connections.clock.now();
        let collected = Collected::new(self.layout.clone());
        // What a user asks for has everything.
        let base = self.base.clone().filter(|_| kind == BarrierKind::Checkpoint);
        let barrier = Barrier {
            id,
            kind,
            alignment: match self.options.alignment {
                // Whoever goes on from what a user asks for may be another job.
                Alignment::AlignedFor(_) | Alignment::Unaligned
                    if stop || kind != BarrierKind::Checkpoint =>
                {
                    Alignment::Aligned
                }
                alignment => alignment,
            },
            triggered,
            stop,
            base: base.as_ref().map(|base| base.checkpoint),
        };
        let pending = Pending {
            triggered,
            since: Instant::now(),
            kind,
            folder: folder.clone(),
            collected,
            bytes: 0,
            asked,
            base,
            metadata: None,
        };
        self.pending.insert(id, pending);
        self.tell_all(&Notice::Triggered { barrier, folder });
    }

    fn store(&mut self, id: u64) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        let completed = self.connections.clock.now();
        let mut metadata = pending.collected.metadata(id, pending.kind, pending.triggered, completed);
        let program = Some(self.program.clone()).filter(|_| pending.kind == BarrierKind::Savepoint);
        metadata.program = program.as_ref().map(|content| content.program.clone());
        let metadata = Arc::new(metadata);
        pending.metadata = Some(metadata.clone());
        let folder = pending.folder.clone();
        let limit = self.options.settings.timeout;
        let ends = pending.asked.as_ref().is_some_and(Asked::ends_run).then(|| self.options.run.clone());
        self.work.spawn(async move {
            let store = async {
                if let Some(program) = program {
                    program.store(&folder).await?;
                }
                folder.put_metadata(&metadata).await?;
                match ends {
                    Some(run) => run.end_at(&folder.name()).await,
                    None => Ok(()),
                }
            };
            // Whether it is stored after all cannot be known then; a later checkpoint takes its place.
            let stored = match tokio::time::timeout(limit, store).await {
                Ok(stored) => stored.map(|()| metadata.state_bytes()),
                Err(_) => Err(StorageError::Access {
                    path: folder.name(),
                    action: "complete the snapshot in time",
                    source: Box::new(std::io::Error::from(std::io::ErrorKind::TimedOut)),
                }),
            };
            Work::Metadata { checkpoint: id, stored }
        });
    }

    fn complete(&mut self, id: u64, kind: BarrierKind, last: bool) {
        let Some(pending) = self.pending.remove(&id) else { return };
        let board = &self.connections.board;
        match kind {
            BarrierKind::Savepoint => board.savepoint_completed(),
            _ => {
                let metadata = pending.metadata.as_deref();
                let unaligned = metadata.is_some_and(SnapshotMetadata::is_unaligned);
                board.checkpoint_completed(CompletedCheckpoint {
                    id,
                    took_ms: millis(pending.since.elapsed()),
                    bytes: pending.bytes,
                    in_flight_bytes: metadata.filter(|_| unaligned).map(SnapshotMetadata::in_flight_bytes),
                });
            }
        }
        if let Some(asked) = pending.asked {
            let taken = asked.taken(id, kind, &pending.folder, pending.since.elapsed(), pending.bytes);
            if last {
                board.stopped_at(taken.clone());
            }
            asked.answer(Ok(taken));
        }
        if kind == BarrierKind::Checkpoint || last {
            self.tell_all(&Notice::Complete { checkpoint: id, last });
        }
        if kind == BarrierKind::Checkpoint {
            self.base = pending.metadata;
            self.delete_old();
        }
    }

    fn abort(&mut self, id: u64, failure: &CheckpointFailure) {
        let pending = self.pending.remove(&id);
        self.tell_all(&Notice::Aborted(id));
        if let Some(Pending { asked: Some(asked), folder, .. }) = pending {
            return self.asked_for_nothing(asked, folder, failure);
        }
        if !matches!(failure, CheckpointFailure::Subsumed(_)) {
            tracing::warn!(checkpoint = id, %failure, "a checkpoint has failed");
            self.connections.board.checkpoint_failed(id, failure.to_string());
        }
    }

    /// Deletes what is older than what is kept, also what is left of checkpoints that were given up. What those under
    /// way build on stays. One at a time: on slow storage they would pile up.
    fn delete_old(&mut self) {
        if self.deletion != Deletion::None {
            self.deletion = Deletion::WantedAgain;
            return;
        }
        self.deletion = Deletion::UnderWay;
        let (run, keep) = (self.options.run.clone(), self.options.retain);
        let bases: Vec<_> = self.pending.values().filter_map(|pending| pending.base.clone()).collect();
        self.work.spawn(async move {
            let bases: Vec<&SnapshotMetadata> = bases.iter().map(AsRef::as_ref).collect();
            Work::Deleted(run.retain(keep, &bases).await)
        });
    }

    fn tell_all(&self, notice: &Notice) {
        // Those that have gone hear nothing; their end is reported elsewhere.
        self.connections.notices.iter().for_each(|to| drop(to.send(notice.clone())));
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

//! The participants of checkpoints that are in one process: they are told what becomes of checkpoints, and what they take
//! is stored from here, so that state goes from where it is to its storage and nowhere else.
//!
//! Whoever coordinates says when a checkpoint is triggered and where it goes; a barrier can be faster than that, when it
//! comes from another process.

use std::{collections::BTreeMap, sync::Arc};

use millstream_storage::SnapshotFolder;
use millstream_task::{CheckpointReport, Mail, TaskSnapshot};
use millstream_types::{Barrier, BarrierKind};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    collect::Layout,
    store::{Base, StoreError, Stored, store_snapshot},
};

/// What the participants of a process are told.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A checkpoint has been triggered.
    Triggered {
        /// Its barrier.
        barrier: Barrier,
        /// Where it goes.
        folder: SnapshotFolder,
    },
    /// A checkpoint is complete.
    Complete {
        /// The checkpoint.
        checkpoint: u64,
        /// Whether there will be no other.
        last: bool,
    },
    /// A checkpoint has been given up.
    Aborted(u64),
    /// Sources read no further.
    Stop,
}

/// What a participant of checkpoints comes to, told to whoever coordinates them.
#[derive(Debug)]
pub enum Participation {
    /// Its snapshot has been stored.
    Stored {
        /// The checkpoint.
        checkpoint: u64,
        /// Where, by operator.
        stored: Stored,
    },
    /// It cannot take part in a checkpoint, or its snapshot could not be stored.
    Declined {
        /// The checkpoint.
        checkpoint: u64,
        /// Why.
        reason: String,
    },
    /// It has processed the end of its input.
    Ended,
}

/// Participants with what they have stored.
pub(crate) struct ParticipantGroup {
    /// None if the job takes no checkpoints.
    pub(crate) layout: Option<Arc<Layout>>,
    /// The mailboxes of those that are subtasks.
    pub(crate) mails: Vec<mpsc::UnboundedSender<Mail>>,
    pub(crate) notices: mpsc::UnboundedReceiver<Notice>,
    /// What they report, by participant.
    pub(crate) reports: mpsc::UnboundedReceiver<(usize, CheckpointReport)>,
    /// To whoever coordinates.
    pub(crate) participation: mpsc::UnboundedSender<(usize, Participation)>,
    /// Becomes true when the job is given up.
    pub(crate) cancelled: watch::Receiver<bool>,
    pub(crate) stored: StoredSnapshots,
}

/// What participants have stored, by checkpoint and participant, for those that build on it.
pub(crate) type StoredSnapshots = BTreeMap<u64, BTreeMap<usize, Arc<Stored>>>;

/// A checkpoint that has been triggered and not come to its end.
struct Pending {
    folder: SnapshotFolder,
    kind: BarrierKind,
    /// What it may build on, by participant.
    base: Option<(u64, BTreeMap<usize, Arc<Stored>>)>,
}

/// What has been stored, or why it has not.
struct Done {
    checkpoint: u64,
    participant: usize,
    result: Result<Stored, StoreError>,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<u64, Pending>,
    /// The last checkpoint of which there has been word.
    newest: u64,
    /// Snapshots at barriers that were faster than the word of their checkpoint.
    early: BTreeMap<u64, Vec<(usize, TaskSnapshot)>>,
    work: JoinSet<Done>,
}

impl ParticipantGroup {
    /// Works until nobody coordinates any more or the job is given up, and what is being stored then is.
    pub(crate) async fn run(mut self) {
        let mut state = State::default();
        loop {
            tokio::select! {
                biased;
                () = cancelled(&mut self.cancelled) => break,
                notice = self.notices.recv() => match notice {
                    Some(notice) => self.noticed(notice, &mut state),
                    None => break,
                },
                Some((participant, report)) = self.reports.recv() => self.reported(participant, report, &mut state),
                Some(done) = state.work.join_next() => {
                    // A panic of such work has been printed. The checkpoint runs into its limit then.
                    if let Ok(done) = done { self.done(done, &state) }
                }
            }
        }
        while let Some(done) = state.work.join_next().await {
            if let Ok(done) = done {
                self.done(done, &state);
            }
        }
    }

    fn noticed(&mut self, notice: Notice, state: &mut State) {
        match notice {
            Notice::Triggered { barrier, folder } => {
                let base = barrier.base.and_then(|id| Some((id, self.stored.get(&id)?.clone())));
                state.newest = state.newest.max(barrier.id);
                state.pending.insert(barrier.id, Pending { folder, kind: barrier.kind, base });
                let (id, early) = (barrier.id, state.early.remove(&barrier.id));
                self.mail_all(&Mail::Checkpoint(barrier));
                for (participant, snapshot) in early.into_iter().flatten() {
                    self.store(id, participant, snapshot, state);
                }
            }
            Notice::Complete { checkpoint, last } => {
                state.pending.remove(&checkpoint);
                // The next ones build on this one. Those under way have what they build on.
                self.stored = self.stored.split_off(&checkpoint);
                self.mail_all(&Mail::Complete { checkpoint, last });
            }
            Notice::Aborted(checkpoint) => {
                state.pending.remove(&checkpoint);
                self.stored.remove(&checkpoint);
                self.mail_all(&Mail::Abort(checkpoint));
            }
            Notice::Stop => self.mail_all(&Mail::Stop),
        }
    }

    fn reported(&mut self, participant: usize, report: CheckpointReport, state: &mut State) {
        match report {
            CheckpointReport::Ended => self.tell(participant, Participation::Ended),
            CheckpointReport::Declined { checkpoint, reason } => {
                self.tell(participant, Participation::Declined { checkpoint, reason });
            }
            CheckpointReport::Snapshot { checkpoint, snapshot } if checkpoint > state.newest => {
                state.early.entry(checkpoint).or_default().push((participant, snapshot));
            }
            CheckpointReport::Snapshot { checkpoint, snapshot } => {
                self.store(checkpoint, participant, snapshot, state);
            }
        }
    }

    /// Stores a snapshot beside everything else, unless it has been given up.
    fn store(&self, checkpoint: u64, participant: usize, snapshot: TaskSnapshot, state: &mut State) {
        let (Some(layout), Some(pending)) = (self.layout.clone(), state.pending.get(&checkpoint)) else {
            return;
        };
        let Pending { folder, kind, base } = pending;
        let own =
            |(id, all): &(u64, BTreeMap<usize, Arc<Stored>>)| Some((*id, all.get(&participant)?.clone()));
        let (folder, kind, base) = (folder.clone(), *kind, Base(base.as_ref().and_then(own)));
        state.work.spawn(async move {
            let result = store_snapshot(&folder, &layout, kind, participant, snapshot, base).await;
            Done { checkpoint, participant, result }
        });
    }

    fn done(&mut self, done: Done, state: &State) {
        let Done { checkpoint, participant, result } = done;
        let stored = match result {
            Ok(stored) => stored,
            Err(error) => {
                let reason = error.in_full();
                return self.tell(participant, Participation::Declined { checkpoint, reason });
            }
        };
        if state.pending.get(&checkpoint).is_some_and(|pending| pending.kind == BarrierKind::Checkpoint) {
            self.stored.entry(checkpoint).or_default().insert(participant, Arc::new(stored.clone()));
        }
        self.tell(participant, Participation::Stored { checkpoint, stored });
    }

    fn tell(&self, participant: usize, participation: Participation) {
        // If nobody coordinates any more, the job is coming to its end.
        self.participation.send((participant, participation)).ok();
    }

    fn mail_all(&self, mail: &Mail) {
        // A subtask that has gone takes no mail; its end is reported elsewhere.
        self.mails.iter().for_each(|to| drop(to.send(mail.clone())));
    }
}

async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    // Whoever could give the job up has gone with it.
    drop(cancel.wait_for(|cancelled| *cancelled).await);
}

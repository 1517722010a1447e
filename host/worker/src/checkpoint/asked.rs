//! Snapshots that somebody asks for: savepoints, and the checkpoint at which a job stops.

use std::time::Duration;

use millstream_protocol::{AskedSnapshot, CheckpointFailure, RequestRefused};
use millstream_storage::{RunStore, SnapshotFolder, StorageError};
use millstream_types::BarrierKind;

use super::{CheckpointService, Notice, Work};
use crate::{
    SnapshotError, SnapshotTaken,
    control::{Reply, SnapshotOrder, Then, Wanted},
    status::millis,
};

/// A snapshot that somebody waits for.
pub(super) struct Asked {
    pub(super) place: Place,
    then: Then,
    reply: Reply,
}

/// Where a snapshot goes that was asked for.
pub(super) enum Place {
    /// A folder for a savepoint.
    Savepoint(SnapshotFolder),
    /// Among the checkpoints of the run.
    Run,
}

impl Asked {
    /// Whether what goes on from the snapshot is another run.
    pub(super) fn ends_run(&self) -> bool {
        self.then != Then::GoOn && matches!(self.place, Place::Savepoint(_))
    }

    /// Tells whoever asked.
    pub(super) fn answer(self, answer: Result<SnapshotTaken, SnapshotError>) {
        // Who does not wait any more has what was asked for all the same.
        self.reply.send(answer).ok();
    }

    pub(super) fn taken(
        &self,
        id: u64,
        kind: BarrierKind,
        folder: &SnapshotFolder,
        took: Duration,
        bytes: u64,
    ) -> SnapshotTaken {
        let savepoint = kind == BarrierKind::Savepoint;
        SnapshotTaken { path: folder.name(), id, savepoint, took_ms: millis(took), bytes }
    }
}

impl CheckpointService {
    /// Finds a place for what is asked for, beside everything else.
    pub(super) fn ordered(&mut self, order: SnapshotOrder) {
        let run = self.options.run.clone();
        self.work.spawn(async move {
            let place = place(&order.what, &run).await;
            Work::Place(order, place)
        });
    }

    /// Has a snapshot taken now that there is a place for it.
    pub(super) fn placed(&mut self, order: SnapshotOrder, place: Result<Place, StorageError>) {
        let SnapshotOrder { what, reply } = order;
        let then = match what {
            Wanted::Savepoint(_, then) => then,
            Wanted::LastCheckpoint => Then::Stop,
        };
        let place = match place {
            Ok(place) => place,
            Err(error) => return drop(reply.send(Err(SnapshotError::Failed(error.in_full())))),
        };
        let kind = match &place {
            Place::Savepoint(_) => BarrierKind::Savepoint,
            Place::Run => BarrierKind::Checkpoint,
        };
        let asked = Asked { place, then, reply };
        if then == Then::Drained {
            return self.drain(asked);
        }
        let request = AskedSnapshot { kind, stop: then == Then::Stop };
        match self.coordinator.handle_request(request, self.started.elapsed()) {
            Ok(id) => drop(self.asked.insert(id, asked)),
            Err(refused) => asked.answer(Err(refused.into())),
        }
    }

    /// Lets the sources end; the savepoint is taken once everybody has.
    fn drain(&mut self, asked: Asked) {
        if self.drained.is_some() || self.pending.values().any(|pending| pending.asked.is_some()) {
            return asked.answer(Err(RequestRefused::Ending.into()));
        }
        self.coordinator.set_last_kind(BarrierKind::Savepoint);
        self.drained = Some(asked);
        self.tell_all(&Notice::Stop);
    }

    /// A snapshot that was asked for has failed: whoever asked is told, unless it is tried again.
    pub(super) fn asked_for_nothing(
        &mut self,
        asked: Asked,
        folder: SnapshotFolder,
        failure: &CheckpointFailure,
    ) {
        tracing::warn!(%failure, folder = folder.name(), "a snapshot that was asked for has failed");
        if asked.then == Then::Drained {
            self.drained = Some(asked);
            return;
        }
        if let Place::Savepoint(_) = asked.place {
            self.work.spawn(async move { Work::Deleted(folder.delete().await) });
        }
        asked.answer(Err(SnapshotError::Failed(failure.to_string())));
    }
}

async fn place(what: &Wanted, run: &RunStore) -> Result<Place, StorageError> {
    Ok(match what {
        Wanted::LastCheckpoint => Place::Run,
        Wanted::Savepoint(Some(folder), _) => Place::Savepoint(SnapshotFolder::named(folder).await?),
        Wanted::Savepoint(None, _) => Place::Savepoint(run.begin_savepoint().await?),
    })
}

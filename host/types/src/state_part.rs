//! State as bytes: what operators hand over at a checkpoint and take back at a restore.
//!
//! A part is one state of one operator subtask. Its chunks are what a restore deals out: keyed state has chunks by key
//! group, which go to whoever owns that; other forms have a chunk an item.
//!
//! A part of keyed state need not have everything: it may build on what a complete checkpoint of the same run has. What a
//! key group has is then its last whole chunk, which may be in an earlier checkpoint, and the changes behind that in order.

//! Keyed state that does not fit into memory is handed over as files of its store, with which nothing has to be read
//! while the subtask waits: a part of the form [`StateForm::Store`] has all keyed states of an operator subtask, in
//! [`StateFiles`], and one chunk that says how they are read.

use crate::{Barrier, BarrierKind, Column, KeyGroup, StateFiles};

/// What a snapshot of an operator is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// The number of the snapshot.
    pub checkpoint: u64,
    /// The complete checkpoint of this run on which the snapshot may build. With none it has everything.
    pub base: Option<u64>,
    /// Whether a later one may build on it.
    pub base_of_later: bool,
}

impl SnapshotRequest {
    /// The snapshot that is taken at a barrier. What a user asks for has everything, and nothing builds on it.
    pub fn at(barrier: &Barrier) -> Self {
        let checkpoint = barrier.kind == BarrierKind::Checkpoint;
        Self { checkpoint: barrier.id, base: barrier.base.filter(|_| checkpoint), base_of_later: checkpoint }
    }

    /// A snapshot that has everything and on which nothing builds.
    pub fn in_full(checkpoint: u64) -> Self {
        Self { checkpoint, base: None, base_of_later: false }
    }
}

/// What a part of a snapshot is. It decides how its bytes are read and to whom they go at another parallelism. The
/// numbers are on disk for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StateForm {
    /// A value a key.
    Value = 1,
    /// A list a key.
    List = 2,
    /// A map a key.
    Map = 3,
    /// The timers of keys on event time.
    EventTimers = 4,
    /// The timers of keys on processing time.
    ProcessingTimers = 5,
    /// Accumulators of windows that all keys share.
    Accumulators = 6,
    /// Rows of windows that all keys share.
    Contents = 7,
    /// Accumulators of sessions.
    SessionAccumulators = 8,
    /// Rows of sessions.
    SessionContents = 9,
    /// When what keys have expires.
    Expiries = 11,
    /// Rows of one of two inputs, with their times, a key.
    TimedRows = 10,
    /// Items of a subtask that are dealt out anew at another parallelism.
    Items = 16,
    /// Items of a subtask of which every subtask gets all at another parallelism.
    UnionItems = 17,
    /// What an operator keeps for itself in a subtask; treated as [`StateForm::UnionItems`].
    Subtask = 18,
    /// A map that is the same in all subtasks.
    Broadcast = 19,
    /// The files of a store that has all keyed states and timers of an operator subtask.
    Store = 20,
    /// Splits that a source subtask is reading; treated as [`StateForm::Items`].
    Splits = 32,
    /// What the enumerator of a source knows. One a source, whatever its parallelism.
    Enumerator = 33,
    /// Rows that an asynchronous function has under way, which it is called with again.
    InFlight = 34,
    /// What a channel had under way when a barrier overtook it: rows with their times, and watermarks.
    Overtaken = 48,
}

/// To whom the chunks of a part go at another parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealing {
    /// To the subtask that owns the chunk's key group.
    ByKeyGroup,
    /// To one subtask each, in turn.
    InTurn,
    /// To every subtask.
    ToAll,
    /// To the subtasks that send over the edge, which deal it out.
    ToSenders,
    /// To every subtask that owns a key group of the one that had it; each takes its groups out of it.
    ByOverlap,
}

impl StateForm {
    /// Every form.
    pub const ALL: [StateForm; 20] = [
        StateForm::Value,
        StateForm::List,
        StateForm::Map,
        StateForm::EventTimers,
        StateForm::ProcessingTimers,
        StateForm::Accumulators,
        StateForm::Contents,
        StateForm::SessionAccumulators,
        StateForm::SessionContents,
        StateForm::TimedRows,
        StateForm::Expiries,
        StateForm::Items,
        StateForm::UnionItems,
        StateForm::Subtask,
        StateForm::Broadcast,
        StateForm::Store,
        StateForm::Splits,
        StateForm::Enumerator,
        StateForm::InFlight,
        StateForm::Overtaken,
    ];

    /// Its number on disk.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            StateForm::Value => "value",
            StateForm::List => "list",
            StateForm::Map => "map",
            StateForm::EventTimers => "event-time timers",
            StateForm::ProcessingTimers => "processing-time timers",
            StateForm::Accumulators => "window accumulators",
            StateForm::Contents => "window rows",
            StateForm::SessionAccumulators => "session accumulators",
            StateForm::SessionContents => "session rows",
            StateForm::Expiries => "expiries",
            StateForm::TimedRows => "rows of an input",
            StateForm::Items => "items",
            StateForm::UnionItems => "union items",
            StateForm::Subtask => "number of the operator",
            StateForm::Broadcast => "broadcast",
            StateForm::Store => "store",
            StateForm::Splits => "splits",
            StateForm::Enumerator => "enumerator",
            StateForm::InFlight => "rows under way",
            StateForm::Overtaken => "rows in channels",
        }
    }

    /// The form with a number, if this version knows it.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.number() == number)
    }

    /// To whom its chunks go at another parallelism.
    pub fn dealing(self) -> Dealing {
        match self {
            StateForm::Items | StateForm::Splits | StateForm::InFlight => Dealing::InTurn,
            StateForm::UnionItems | StateForm::Subtask | StateForm::Broadcast | StateForm::Enumerator => {
                Dealing::ToAll
            }
            StateForm::Overtaken => Dealing::ToSenders,
            StateForm::Store => Dealing::ByOverlap,
            _ => Dealing::ByKeyGroup,
        }
    }
}

/// One state of one operator subtask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatePart {
    /// The state's name, unique in its operator together with the form.
    pub name: String,
    /// What it is.
    pub form: StateForm,
    /// Version of its columns, which a migration is asked with.
    pub version: u32,
    /// The columns of its rows; none where it has no rows.
    pub columns: Vec<Column>,
    /// The checkpoint that it builds on: key groups that have no whole chunk here go on from what they have there. In a
    /// part that is restored: the checkpoint of which it has everything and on which the next one may build.
    pub base: Option<u64>,
    /// Its content; keyed state by key group, ascending.
    pub chunks: Vec<StateChunk>,
    /// Of a store: its files. All other forms have none.
    pub files: Option<StateFiles>,
}

impl StatePart {
    /// A part without columns.
    pub fn plain(name: &str, form: StateForm, chunks: Vec<StateChunk>) -> Self {
        Self { name: name.to_owned(), form, version: 1, columns: Vec::new(), base: None, chunks, files: None }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|c| c.bytes.len()).sum()
    }

    /// Whether it has nothing.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

/// A piece of a part that is dealt out as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChunk {
    /// The key group that it belongs to; none where the part is not keyed.
    pub key_group: Option<KeyGroup>,
    /// Whether it has everything or what has changed.
    pub kind: ChunkKind,
    /// What it has.
    pub bytes: Vec<u8>,
}

impl StateChunk {
    /// A chunk of state that is not keyed.
    pub fn item(bytes: Vec<u8>) -> Self {
        Self { key_group: None, kind: ChunkKind::Whole, bytes }
    }

    /// All that a key group has.
    pub fn whole(key_group: KeyGroup, bytes: Vec<u8>) -> Self {
        Self { key_group: Some(key_group), kind: ChunkKind::Whole, bytes }
    }

    /// What has changed in a key group.
    pub fn changes(key_group: KeyGroup, bytes: Vec<u8>) -> Self {
        Self { key_group: Some(key_group), kind: ChunkKind::Changes, bytes }
    }
}

/// What a chunk has of its key group. The numbers are on disk for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// Everything: what was there before counts no more.
    Whole = 0,
    /// Keys that have gone, and the others that have changed, with all that they have now.
    Changes = 1,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::StateForm;

    #[test]
    fn every_form_has_a_number_of_its_own() {
        let numbers: BTreeSet<u8> = StateForm::ALL.iter().map(|form| form.number()).collect();
        assert_eq!(numbers.len(), StateForm::ALL.len());
        assert!(StateForm::ALL.iter().all(|&form| StateForm::of_number(form.number()) == Some(form)));
        assert_eq!(StateForm::of_number(0), None);
    }
}

//! What travels on a stream besides rows.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Batch;

/// One element of a stream. Order is kept on every channel.
#[derive(Clone, Debug)]
pub enum StreamElement {
    /// Rows.
    Batch(Batch),
    /// No row with an event time at or below this will follow, except late ones.
    Watermark(i64),
    /// The line between what belongs to a snapshot and what does not.
    Barrier(Barrier),
    /// The channel sends nothing for now and does not hold up watermarks.
    Idle,
    /// The channel sends again.
    Active,
    /// Nothing follows. Counts as a watermark at the end of time.
    EndOfInput,
    /// A probe that measures how long an element takes: its name and when it was made, by the clock of its host.
    LatencyMarker {
        /// The source subtask that made it.
        source: u32,
        /// Milliseconds since the epoch.
        emitted: i64,
    },
}

/// A barrier: everything before it is in the snapshot, nothing behind it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// Ascending within a job.
    pub id: u64,
    /// What happens at it.
    pub kind: BarrierKind,
    /// How subtasks with several channels bring it together.
    pub alignment: Alignment,
    /// When it was triggered, milliseconds since the epoch.
    pub triggered: i64,
    /// Whether the job stops at it: nothing follows, unless its snapshot is given up.
    pub stop: bool,
    /// The complete checkpoint of this run on which what is stored may build, if there is one.
    pub base: Option<u64>,
}

impl Barrier {
    /// From when on, in milliseconds since the epoch, it may overtake what is ahead of it; never if there is no such time.
    /// What a user asks for, or what the job stops at, overtakes nothing: whoever goes on from it may be another job.
    pub fn overtakes_at(&self) -> Option<i64> {
        if self.stop || self.kind != BarrierKind::Checkpoint {
            return None;
        }
        match self.alignment {
            Alignment::Aligned | Alignment::AtLeastOnce => None,
            Alignment::AlignedFor(limit) => {
                let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
                Some(self.triggered.saturating_add(limit))
            }
            Alignment::Unaligned => Some(i64::MIN),
        }
    }
}

/// What a subtask does with a channel that has passed a barrier which others have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Alignment {
    /// It reads nothing of that channel until the others have passed the barrier too: each row counts exactly once.
    #[default]
    Aligned,
    /// It reads on: no channel waits, and rows behind the barrier may count twice after a restore.
    AtLeastOnce,
    /// The same as aligned until so long after its trigger, and then unaligned.
    AlignedFor(Duration),
    /// It waits for no channel: the barrier overtakes what is ahead of it, which belongs to the snapshot then. Each row
    /// counts exactly once.
    Unaligned,
}

/// What a barrier is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrierKind {
    /// A periodic snapshot.
    Checkpoint,
    /// A snapshot that a user asked for.
    Savepoint,
    /// The replacement of a module.
    Swap,
}

//! Snapshots of participants into files, or into the metadata itself where they are small.

use std::time::Duration;

use millstream_snapshot::{Location, StateMetadata, SubtaskMetadata};
use millstream_storage::{SnapshotFolder, StorageError};
use millstream_task::TaskSnapshot;
use millstream_types::{OperatorId, StatePart};

/// The snapshot of a participant, stored: by operator.
pub(crate) type Stored = Vec<(OperatorId, SubtaskMetadata)>;

/// State of a participant up to so many bytes goes into the metadata: a file would cost more than it is worth.
const INLINE: usize = 16 << 10;

/// Stores what a participant has.
pub(crate) async fn store_snapshot(
    folder: &SnapshotFolder,
    participant: usize,
    snapshot: TaskSnapshot,
) -> Result<Stored, StorageError> {
    let bytes: usize = parts(&snapshot).map(StatePart::len).sum();
    if bytes <= INLINE {
        return Ok(describe(&snapshot, |part| {
            StateMetadata::of_part(part, Location::Inline(concatenated(part)), 0)
        }));
    }
    // Off this thread, which has to go on: it is a copy of all of the state.
    let packed = tokio::task::spawn_blocking(move || {
        let mut file = Vec::with_capacity(bytes);
        parts(&snapshot).flat_map(|part| &part.chunks).for_each(|chunk| file.extend_from_slice(&chunk.bytes));
        let name = format!("subtask-{participant}");
        let mut offset = 0;
        let stored = describe(&snapshot, |part| {
            let at = offset;
            offset += part.len() as u64;
            StateMetadata::of_part(part, Location::File(name.clone()), at)
        });
        (name, file, stored)
    });
    let (name, file, stored) = packed.await.expect("copying does not panic, and nobody cancels it");
    folder.put_state(&name, file).await?;
    Ok(stored)
}

fn describe(snapshot: &TaskSnapshot, mut describe: impl FnMut(&StatePart) -> StateMetadata) -> Stored {
    let mut operator = |(id, parts): &(OperatorId, Vec<StatePart>)| {
        let states = parts.iter().map(&mut describe).collect();
        let subtask = SubtaskMetadata {
            ended: snapshot.ended,
            alignment_micros: micros(snapshot.alignment),
            pause_micros: micros(snapshot.pause),
            states,
        };
        (id.clone(), subtask)
    };
    snapshot.operators.iter().map(&mut operator).collect()
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn parts(snapshot: &TaskSnapshot) -> impl Iterator<Item = &StatePart> {
    snapshot.operators.iter().flat_map(|(_, parts)| parts)
}

fn concatenated(part: &StatePart) -> Vec<u8> {
    part.chunks.iter().flat_map(|chunk| &chunk.bytes).copied().collect()
}

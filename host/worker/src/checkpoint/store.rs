//! Snapshots of participants into files, or into the metadata itself where they are small.

mod files;
#[cfg(test)]
mod tests;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use millstream_snapshot::{ChainError, Location, StateMetadata, SubtaskMetadata};
use millstream_state::{KEYED_STORE, StateError};
use millstream_storage::{RunStore, SnapshotFolder, StorageError};
use millstream_task::TaskSnapshot;
use millstream_types::{BarrierKind, OperatorId, StateFiles, StatePart};

use super::{collect::Layout, in_flight::with_in_flight};

/// The snapshot of a participant, stored: by operator.
pub type Stored = Vec<(OperatorId, SubtaskMetadata)>;

/// State of a participant up to so many bytes goes into the metadata: a file would cost more than it is worth.
const INLINE: usize = 16 << 10;

/// A snapshot that cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The place does not do what it should.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It does not fit on what it builds on.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// State on disk cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// A file of state on disk cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// What it builds on is not what was asked for.
    #[error("state `{name}` builds on checkpoint {found}, {expected:?} was asked for")]
    OtherBase { name: String, found: u64, expected: Option<u64> },
}

impl StoreError {
    /// The error with all that is behind it, on a line.
    pub(crate) fn in_full(&self) -> String {
        match self {
            StoreError::Storage(error) => error.in_full(),
            other => other.to_string(),
        }
    }
}

/// What a participant's snapshot builds on: what it has of the complete checkpoint that was asked for, with the number of
/// that.
#[derive(Clone, Debug)]
pub(crate) struct Base(pub(crate) Option<(u64, Arc<Stored>)>);

/// Stores what a participant has; rows that were under way are those of `layout`. Of state on disk that is the files if it
/// is for a checkpoint, and chunks that anybody can read if not.
pub(crate) async fn store_snapshot(
    folder: &SnapshotFolder,
    layout: &Arc<Layout>,
    kind: BarrierKind,
    participant: usize,
    mut snapshot: TaskSnapshot,
    base: Base,
) -> Result<Stored, StoreError> {
    if snapshot.in_flight.is_some() {
        let layout = layout.clone();
        let encoded = tokio::task::spawn_blocking(move || with_in_flight(snapshot, &layout.edges)).await;
        snapshot = encoded.expect("encoding does not panic, and nobody cancels it");
    }
    let on_disk = take_on_disk(&mut snapshot);
    let mut stored = store_chunks(folder, participant, snapshot, base.clone()).await?;
    for (operator, part, files) in on_disk {
        let (id, of_operator) = &mut stored[operator];
        let name = match part.name.as_str() {
            KEYED_STORE => format!("subtask-{participant}-{operator}"),
            // An operator may have several of these.
            windows => format!("subtask-{participant}-{operator}-{windows}"),
        };
        let name = folder.file_name(&name);
        let states = match kind {
            BarrierKind::Savepoint => {
                files::as_chunks(folder, name, &part, files, layout.max_parallelism).await?
            }
            _ => files::as_files(folder, &name, &part, &files, base.store(id, &part)).await?,
        };
        of_operator.states.extend(states);
    }
    Ok(stored)
}

/// Takes the parts out that are files, by the position of their operator.
fn take_on_disk(snapshot: &mut TaskSnapshot) -> Vec<(usize, StatePart, StateFiles)> {
    let mut taken = Vec::new();
    for (operator, (_, parts)) in snapshot.operators.iter_mut().enumerate() {
        for mut part in parts.extract_if(.., |part| part.files.is_some()) {
            taken.extend(part.files.take().map(|files| (operator, part, files)));
        }
    }
    taken
}

async fn store_chunks(
    folder: &SnapshotFolder,
    participant: usize,
    snapshot: TaskSnapshot,
    base: Base,
) -> Result<Stored, StoreError> {
    let bytes: usize = parts(&snapshot).map(StatePart::len).sum();
    if bytes + base.inline_bytes(&snapshot) <= INLINE {
        return describe(&snapshot, |id, part| {
            base.completed(id, part, StateMetadata::of_part(part, Location::Inline(concatenated(part)), 0))
        });
    }
    let name = folder.file_name(&format!("subtask-{participant}"));
    // Off this thread, which has to go on: it is a copy of all that is written.
    let packed = tokio::task::spawn_blocking(move || {
        let mut offset = 0;
        let stored = describe(&snapshot, |id, part| {
            let at = offset;
            offset += part.len() as u64;
            base.completed(id, part, StateMetadata::of_part(part, Location::File(name.clone()), at))
        });
        let mut file = Vec::with_capacity(bytes);
        let parts = snapshot.operators.into_iter().flat_map(|(_, parts)| parts);
        // Each chunk goes once it has been copied, so that there are never two of all.
        parts.flat_map(|part| part.chunks).for_each(|chunk| file.extend_from_slice(&chunk.bytes));
        (name, file, stored)
    });
    let (name, file, stored) = packed.await.expect("copying does not panic, and nobody cancels it");
    let stored = stored?;
    if !file.is_empty() {
        folder.put_state(&name, file).await?;
    }
    Ok(stored)
}

impl Base {
    /// All that there is of a state, once what is written now has been described.
    fn completed(
        &self,
        id: &OperatorId,
        part: &StatePart,
        written: StateMetadata,
    ) -> Result<StateMetadata, StoreError> {
        let Some(found) = part.base else { return Ok(written) };
        let Some((_, base)) = self.0.as_ref().filter(|(checkpoint, _)| *checkpoint == found) else {
            let expected = self.0.as_ref().map(|(checkpoint, _)| *checkpoint);
            return Err(StoreError::OtherBase { name: part.name.clone(), found, expected });
        };
        match state(base, id, part) {
            Some(base) => Ok(written.upon(base, |file| RunStore::from_later(found, file))?),
            // It is new.
            None => Ok(written),
        }
    }

    /// The store of the base, with its number, if it has one.
    fn store(&self, id: &OperatorId, part: &StatePart) -> Option<(u64, &StateMetadata)> {
        let (checkpoint, base) = self.0.as_ref()?;
        Some((*checkpoint, state(base, id, part)?))
    }

    /// How much the states on which a snapshot builds have in the metadata.
    fn inline_bytes(&self, snapshot: &TaskSnapshot) -> usize {
        let Some((_, base)) = &self.0 else { return 0 };
        let building = snapshot.operators.iter().flat_map(|(id, parts)| parts.iter().map(move |p| (id, p)));
        let bases =
            building.filter(|(_, part)| part.base.is_some()).filter_map(|(id, part)| state(base, id, part));
        let inline = bases.flat_map(|state| &state.places).map(|place| match place {
            Location::Inline(bytes) => bytes.len(),
            Location::File(_) => 0,
        });
        inline.sum()
    }
}

/// What a stored snapshot has of a state.
fn state<'a>(stored: &'a Stored, id: &OperatorId, part: &StatePart) -> Option<&'a StateMetadata> {
    let (_, subtask) = stored.iter().find(|(operator, _)| operator == id)?;
    subtask.states.iter().find(|state| state.form == part.form && state.name == part.name)
}

fn describe(
    snapshot: &TaskSnapshot,
    mut describe: impl FnMut(&OperatorId, &StatePart) -> Result<StateMetadata, StoreError>,
) -> Result<Stored, StoreError> {
    let mut operator = |(id, parts): &(OperatorId, Vec<StatePart>)| {
        let states = parts.iter().map(|part| describe(id, part)).collect::<Result<_, _>>()?;
        let subtask = SubtaskMetadata {
            ended: snapshot.ended,
            alignment_micros: micros(snapshot.alignment),
            pause_micros: micros(snapshot.pause),
            states,
        };
        Ok((id.clone(), subtask))
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

//! Keyed state, windows and sessions that a checkpoint has as the files of a store.
//!
//! They are fetched as they are, each checked against its length and checksum. An operator that keeps the same states in
//! the same kind of store takes them: all of them at the same parallelism, else the rows of its key groups. For any other,
//! in memory or with other states or columns, they are read as the chunks that they would have been.

use std::fs;

use millstream_snapshot::{Location, OperatorMetadata, StateMetadata, WantedState};
use millstream_state::{StoreHeader, StoredState};
use millstream_task::{PiecesOf, StatePieces};
use millstream_types::{KeyGroupRange, State, StateFiles, StatePart};

use super::{RestoreError, RestorePlan, pieces};
use crate::build::StateBackend;

/// Who restores a store.
pub(super) struct Restorer<'a> {
    /// The position of its operator in the chain.
    pub(super) position: usize,
    /// The states that its operator declares.
    pub(super) states: &'a [State],
    pub(super) backend: &'a StateBackend,
    pub(super) index: u32,
    pub(super) parallelism: u32,
}

/// How a store is restored.
pub(super) enum FromStore {
    Part(StatePart),
    Pieces(PiecesOf),
}

impl RestorePlan {
    pub(super) async fn restore_store(
        &self,
        operator: &OperatorMetadata,
        state: &StateMetadata,
        restorer: &Restorer<'_>,
    ) -> Result<FromStore, RestoreError> {
        let failed = |source| RestoreError::State { operator: operator.id.clone(), source };
        let bytes = header_bytes(state);
        let header = StoreHeader::decode(bytes).map_err(failed)?;
        let (folder, own) = match restorer.backend.folder() {
            Some(folder) => (folder, None),
            None => pieces::folder_of_its_own().map(|(folder, own)| (folder, Some(own)))?,
        };
        fs::create_dir_all(&folder)?;
        // From now on the folder goes, whatever becomes of the rest.
        let whole = StateFiles::new(folder.clone(), Vec::new());
        let files = self.snapshot.fetch(state, &header.files, &folder).await?;
        let files = whole.with(files);
        let same = operator.subtasks.len() == restorer.parallelism as usize;
        let max = self.snapshot.metadata.max_parallelism;
        let groups = KeyGroupRange::of(restorer.index, restorer.parallelism, max).0;
        let fits = match header.windows() {
            Some(windows) => self.keeps(operator, windows),
            None => header.fits(restorer.states),
        };
        if restorer.backend.is_on_disk() && fits {
            let files = if same { files } else { files.of_groups(groups) };
            let chunks = vec![millstream_types::StateChunk::item(bytes.to_vec())];
            let part = StatePart::plain(&state.name, state.form, chunks);
            return Ok(FromStore::Part(StatePart { files: Some(files), ..part }));
        }
        let takeover = |part: &StatePart| {
            let (places, chunks) = (Vec::new(), Vec::new());
            let (name, columns) = (part.name.clone(), part.columns.clone());
            let listed =
                StateMetadata { name, form: part.form, version: part.version, columns, places, chunks };
            self.takeover(operator, &listed)
        };
        let takeovers = header.parts().iter().map(takeover).collect();
        let pieces = pieces::StorePieces::new(&header, files, own, operator, takeovers, groups)?;
        Ok(FromStore::Pieces((restorer.position, Box::new(pieces) as Box<dyn StatePieces>)))
    }
}

impl RestorePlan {
    /// Whether an operator of the job keeps windows or sessions just so.
    fn keeps(&self, operator: &OperatorMetadata, found: &StoredState) -> bool {
        let wanted = self.wanted.iter().find(|wanted| wanted.id == operator.id);
        let is_it = |state: &WantedState| {
            (&state.name, state.form, state.version, &state.columns)
                == (&found.name, found.form, found.version, &found.columns)
        };
        wanted.is_some_and(|wanted| wanted.states.iter().any(is_it))
    }
}

/// The header of a store, which stands in the metadata; nothing if it does not.
pub(super) fn header_bytes(state: &StateMetadata) -> &[u8] {
    match state.places.first() {
        Some(Location::Inline(bytes)) => bytes,
        _ => &[],
    }
}

//! State of a snapshot for whoever looks at it and restores nothing.

use std::{fs, sync::Arc};

use millstream_snapshot::{OperatorMetadata, StateMetadata};
use millstream_state::StoreHeader;
use millstream_storage::StoredSnapshot;
use millstream_task::StatePieces;
use millstream_types::StateFiles;

use super::{
    RestoreError, Takeover,
    pieces::{ChunkPieces, StorePieces, folder_of_its_own},
    store::header_bytes,
};

/// The pieces of a state as they were stored. Those of one that is in a store are read out of that, which is fetched into
/// the system's folder for temporary files.
///
/// # Errors
/// If the store cannot be fetched, or is not what was stored.
pub async fn stored_pieces(
    snapshot: &Arc<StoredSnapshot>,
    operator: &OperatorMetadata,
    state: &StateMetadata,
    store: Option<&StateMetadata>,
) -> Result<Box<dyn StatePieces>, RestoreError> {
    let takeover = Takeover { is_same: true, evolved: None };
    let Some(store) = store.filter(|_| state.chunks.is_empty()) else {
        let (snapshot, operator) = (snapshot.clone(), operator.id.clone());
        return Ok(Box::new(ChunkPieces { snapshot, operator, state: state.clone(), takeover }));
    };
    let failed = |source| RestoreError::State { operator: operator.id.clone(), source };
    let header = StoreHeader::decode(header_bytes(store)).map_err(failed)?;
    let (folder, own) = folder_of_its_own()?;
    fs::create_dir_all(&folder)?;
    let files = StateFiles::new(folder.clone(), Vec::new());
    let files = files.with(snapshot.fetch(store, &header.files, &folder).await?);
    let is_it = |part: &millstream_types::StatePart| part.name == state.name && part.form == state.form;
    let takeovers = header.parts().iter().map(|part| is_it(part).then(|| takeover.clone())).collect();
    let groups = 0..snapshot.metadata.max_parallelism.groups();
    Ok(Box::new(StorePieces::new(&header, files, Some(own), operator, takeovers, groups)?))
}

//! State that is read while it is restored: what comes from a snapshot in chunks, for an operator whose state is on disk,
//! and what lay on disk, for one that keeps it otherwise.

use std::{io, ops::Range, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use millstream_snapshot::{OperatorMetadata, StateMetadata};
use millstream_state::{ImageReader, StoreHeader};
use millstream_state_rocksdb::{OpenImage, RocksMemory, StateFolder};
use millstream_storage::StoredSnapshot;
use millstream_task::StatePieces;
use millstream_types::{KeyGroup, StateFiles, StatePart};

use super::{RestoreError, Takeover};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The chunks of a state, some key groups at a time.
pub(super) struct ChunkPieces {
    pub(super) snapshot: Arc<StoredSnapshot>,
    pub(super) operator: String,
    /// What is left.
    pub(super) state: StateMetadata,
    pub(super) takeover: Takeover,
}

#[async_trait(?Send)]
impl StatePieces for ChunkPieces {
    async fn next(&mut self) -> Result<Option<StatePart>, Failure> {
        let chunks = self.cut();
        if chunks.is_empty() {
            return Ok(None);
        }
        let piece = StateMetadata { chunks, ..self.state.clone() };
        let part = self.snapshot.read(&piece).await?;
        Ok(Some(self.takeover.apply(part, &self.operator)?))
    }
}

impl ChunkPieces {
    /// Takes the next chunks: whole key groups, as long as it is not too much, but at least one.
    fn cut(&mut self) -> Vec<millstream_snapshot::ChunkMetadata> {
        let chunks = &mut self.state.chunks;
        let (mut bytes, mut end) = (0, 0);
        while end < chunks.len() {
            let group = chunks[end].key_group;
            let of_group = chunks[end..].iter().take_while(|chunk| chunk.key_group == group);
            let (count, more) =
                of_group.fold((0, 0), |(count, more), chunk| (count + 1, more + chunk.length));
            if end > 0 && bytes + more > PIECE {
                break;
            }
            (bytes, end) = (bytes + more, end + count);
        }
        chunks.drain(..end).collect()
    }
}

impl std::fmt::Debug for ChunkPieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chunks of `{}` of `{}`", self.state.name, self.operator)
    }
}

/// What some key groups have in the files of a store, which have been fetched: a key group of a state at a time.
pub(super) struct StorePieces {
    reader: ImageReader,
    operator: String,
    /// What becomes of each state; none if it is dropped.
    takeovers: Vec<Option<Takeover>>,
    groups: Range<u16>,
    /// The state and the key group that come next.
    next: (usize, u16),
    /// The folder with the files, if it is nobody else's.
    _folder: Option<StateFolder>,
}

impl StorePieces {
    pub(super) fn new(
        header: &StoreHeader,
        files: StateFiles,
        folder: Option<StateFolder>,
        operator: &OperatorMetadata,
        takeovers: Vec<Option<Takeover>>,
        groups: Range<u16>,
    ) -> Result<Self, RestoreError> {
        let memory = RocksMemory::new(READER_MEMORY, 1);
        let failed = |source| RestoreError::State { operator: operator.id.clone(), source };
        let store = OpenImage::new(files.clone(), &memory).map_err(failed)?;
        let reader = ImageReader::new(header, files, Box::new(store));
        let next = (0, groups.start);
        Ok(Self { reader, operator: operator.id.clone(), takeovers, groups, next, _folder: folder })
    }
}

#[async_trait(?Send)]
impl StatePieces for StorePieces {
    async fn next(&mut self) -> Result<Option<StatePart>, Failure> {
        while let Some(takeover) = self.takeovers.get(self.next.0) {
            let (state, group) = self.next;
            if takeover.is_none() || group >= self.groups.end {
                self.next = (state + 1, self.groups.start);
                continue;
            }
            self.next.1 += 1;
            let piece = self.reader.piece(state, KeyGroup(group))?;
            if let (Some(piece), Some(takeover)) = (piece, takeover) {
                return Ok(Some(takeover.apply(piece, &self.operator)?));
            }
        }
        Ok(None)
    }
}

impl std::fmt::Debug for StorePieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "key groups {:?} of the store of `{}`", self.groups, self.operator)
    }
}

/// A folder for files that are fetched, where none of the job is: it goes with what is returned.
pub(super) fn folder_of_its_own() -> io::Result<(PathBuf, StateFolder)> {
    let folder = StateFolder::create(&std::env::temp_dir())?;
    Ok((folder.next(), folder))
}

/// Bytes of chunks that are read at once, unless a key group has more.
pub(super) const PIECE: u64 = 4 << 20;
/// Memory of a database that is read once from its beginning to its end.
const READER_MEMORY: usize = 8 << 20;

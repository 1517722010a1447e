//! State out of a stored snapshot, every chunk checked.

use std::collections::BTreeMap;

use bytes::Bytes;
use millstream_snapshot::{ChunkMetadata, Location, ModuleMetadata, StateMetadata, checksum};
use millstream_types::{StateChunk, StatePart, crash_point};

use crate::{StorageError, StoredSnapshot, paths};

impl StoredSnapshot {
    /// Reads the chunks of a state.
    pub async fn read(&self, state: &StateMetadata) -> Result<StatePart, StorageError> {
        crash_point("restored-in-part");
        let mut bytes = vec![Bytes::new(); state.chunks.len()];
        for (place, location) in state.places.iter().enumerate() {
            let there = state.chunks.iter().enumerate().filter(|(_, c)| usize::from(c.place) == place);
            let (at, chunks): (Vec<usize>, Vec<ChunkMetadata>) = there.map(|(at, c)| (at, *c)).unzip();
            let read = match location {
                Location::Inline(bytes) => slices(bytes, &chunks),
                Location::File(file) => self.read_file(file, &chunks).await?,
            };
            at.into_iter().zip(read).for_each(|(at, read)| bytes[at] = read);
        }
        let mut chunks = Vec::with_capacity(bytes.len());
        for (described, bytes) in state.chunks.iter().zip(bytes) {
            self.check(state, described, &bytes)?;
            chunks.push(StateChunk {
                key_group: described.key_group,
                kind: described.kind,
                bytes: bytes.into(),
            });
        }
        let (name, columns) = (state.name.clone(), state.columns.clone());
        Ok(StatePart { name, form: state.form, version: state.version, columns, base: None, chunks })
    }

    async fn read_file(&self, file: &str, chunks: &[ChunkMetadata]) -> Result<Vec<Bytes>, StorageError> {
        // Places do not know of empty ranges.
        let some = chunks.iter().filter(|c| c.length > 0);
        let ranges: Vec<_> = some.map(|c| c.offset..c.end()).collect();
        let mut read = self.storage.get_ranges(&self.path(file), &ranges).await?.into_iter();
        let bytes =
            |c: &ChunkMetadata| if c.length > 0 { read.next().unwrap_or_default() } else { Bytes::new() };
        Ok(chunks.iter().map(bytes).collect())
    }

    /// Reads a module of the program.
    pub async fn read_module(&self, module: &ModuleMetadata) -> Result<Bytes, StorageError> {
        let path = self.path(&module.file);
        let problem = match self.storage.get(&path).await? {
            Some(bytes) if module.is(&bytes) => return Ok(bytes),
            Some(_) => format!("the module `{}` is damaged: its bytes do not have its hash", module.name),
            None => "the file is gone".to_owned(),
        };
        Err(StorageError::Damaged { path: self.storage.name_of(&path), problem })
    }

    fn check(&self, state: &StateMetadata, chunk: &ChunkMetadata, bytes: &[u8]) -> Result<(), StorageError> {
        let (length, hash) = (bytes.len() as u64, checksum(bytes));
        if length == chunk.length && hash == chunk.checksum {
            return Ok(());
        }
        let path = match state.places.get(usize::from(chunk.place)) {
            Some(Location::File(file)) => self.storage.name_of(&self.path(file)),
            _ => self.name(),
        };
        let (at, name) = (chunk.offset, &state.name);
        let problem = format!(
            "the state `{name}` is damaged at byte {at}: {length} bytes with checksum {hash:016x} found, {} with {:016x} expected",
            chunk.length, chunk.checksum
        );
        Err(StorageError::Damaged { path, problem })
    }

    /// Checks that every file is as long as the chunks in it need. What the bytes are is checked when they are read.
    pub(crate) async fn check_files(&self) -> Result<(), StorageError> {
        let mut needed: BTreeMap<&str, u64> = BTreeMap::new();
        for state in self.metadata.states() {
            for chunk in &state.chunks {
                let Some(Location::File(file)) = state.places.get(usize::from(chunk.place)) else { continue };
                let needed = needed.entry(file).or_default();
                *needed = chunk.end().max(*needed);
            }
        }
        for module in self.metadata.program.iter().flat_map(|program| &program.modules) {
            needed.insert(&module.file, module.length);
        }
        for (file, needed) in needed {
            let path = self.path(file);
            let problem = match self.storage.size(&path).await? {
                Some(found) if found >= needed => continue,
                Some(found) => format!("the file is cut short: {found} bytes found, {needed} expected"),
                None => "the file is gone".to_owned(),
            };
            return Err(StorageError::Damaged { path: self.storage.name_of(&path), problem });
        }
        Ok(())
    }

    fn path(&self, file: &str) -> String {
        paths::join(&self.folder, file)
    }
}

fn slices(bytes: &[u8], chunks: &[ChunkMetadata]) -> Vec<Bytes> {
    // Decoding has seen to it that they lie within.
    let slice = |c: &ChunkMetadata| bytes.get(c.offset as usize..c.end() as usize);
    chunks.iter().map(|c| Bytes::copy_from_slice(slice(c).unwrap_or_default())).collect()
}

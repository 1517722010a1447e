//! State out of a stored snapshot, every chunk checked.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use millstream_snapshot::{Checksum, ChunkMetadata, Location, ModuleMetadata, StateMetadata};
use millstream_types::{StateChunk, StateFile, StatePart, crash_point};

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
        Ok(StatePart {
            name,
            form: state.form,
            version: state.version,
            columns,
            base: None,
            chunks,
            files: None,
        })
    }

    /// Reads everything and checks it, a chunk at a time.
    pub(crate) async fn verify(&self) -> Result<(), StorageError> {
        for state in self.metadata.states() {
            for chunk in &state.chunks {
                let bytes = match state.places.get(usize::from(chunk.place)) {
                    Some(Location::File(file)) => self.read_file(file, &[*chunk]).await?,
                    Some(Location::Inline(bytes)) => slices(bytes, &[*chunk]),
                    None => Vec::new(),
                };
                self.check(state, chunk, &bytes.concat())?;
            }
        }
        Ok(())
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

    /// Fetches the files of a store, which are all but the first of its chunks, into a folder that is there, and gives them
    /// these names. None of them is in memory as a whole.
    pub async fn fetch(
        &self,
        state: &StateMetadata,
        names: &[String],
        folder: &Path,
    ) -> Result<Vec<StateFile>, StorageError> {
        crash_point("restored-in-part");
        if names.len() + 1 != state.chunks.len() {
            let problem = format!(
                "the state `{}` has {} files, {} expected",
                state.name,
                state.chunks.len().saturating_sub(1),
                names.len()
            );
            return Err(StorageError::Damaged { path: self.name(), problem });
        }
        let mut files = Vec::with_capacity(names.len());
        for (name, chunk) in names.iter().zip(&state.chunks[1..]) {
            let path = folder.join(name);
            let local = |source: io::Error| StorageError::Access {
                path: path.display().to_string(),
                action: "write the file",
                source: Box::new(source),
            };
            let mut file = File::create(&path).map_err(local)?;
            let mut found = Found::default();
            match state.places.get(usize::from(chunk.place)) {
                Some(Location::File(stored)) => {
                    let mut pieces = self.storage.get_pieces(&self.path(stored)).await?;
                    while let Some(piece) = pieces.try_next().await.map_err(|e| self.unread(stored, e))? {
                        found.add(&piece);
                        file.write_all(&piece).map_err(local)?;
                    }
                }
                Some(Location::Inline(bytes)) => {
                    let bytes = slices(bytes, &[*chunk]).concat();
                    found.add(&bytes);
                    file.write_all(&bytes).map_err(local)?;
                }
                None => {}
            }
            self.check_found(state, chunk, &found)?;
            files.push(StateFile { name: name.clone(), length: found.length });
        }
        Ok(files)
    }

    fn unread(&self, file: &str, error: object_store::Error) -> StorageError {
        StorageError::access(self.storage.name_of(&self.path(file)), "read the object", error)
    }

    fn check(&self, state: &StateMetadata, chunk: &ChunkMetadata, bytes: &[u8]) -> Result<(), StorageError> {
        let mut found = Found::default();
        found.add(bytes);
        self.check_found(state, chunk, &found)
    }

    fn check_found(
        &self,
        state: &StateMetadata,
        chunk: &ChunkMetadata,
        found: &Found,
    ) -> Result<(), StorageError> {
        let (length, hash) = (found.length, found.checksum.digest());
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

/// Bytes that have been read.
#[derive(Default)]
struct Found {
    length: u64,
    checksum: Checksum,
}

impl Found {
    fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.checksum.update(bytes);
    }
}

fn slices(bytes: &[u8], chunks: &[ChunkMetadata]) -> Vec<Bytes> {
    // Decoding has seen to it that they lie within.
    let slice = |c: &ChunkMetadata| bytes.get(c.offset as usize..c.end() as usize);
    chunks.iter().map(|c| Bytes::copy_from_slice(slice(c).unwrap_or_default())).collect()
}

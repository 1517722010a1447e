//! State on disk into a snapshot, while its subtask goes on: the files of a store that are new, or its rows as chunks.
//!
//! Neither is ever in memory as a whole. The files are an image that stays as it is, and goes when this is through.

use std::{collections::BTreeMap, fs::File, io::Read};

use millstream_snapshot::{ChainError, Checksum, ChunkMetadata, Location, StateMetadata, checksum};
use millstream_state::{ImageReader, StateError, StoreHeader};
use millstream_state_rocksdb::{OpenImage, RocksMemory};
use millstream_storage::{RunStore, SnapshotFolder, Upload, Uploaded};
use millstream_types::{ChunkKind, KeyGroup, MaxParallelism, StateFile, StateFiles, StatePart};
use tokio::sync::mpsc;

use super::{INLINE, StoreError};

/// Stores those files of an image that the base does not have. The states that are in them are listed without chunks.
pub(super) async fn as_files(
    folder: &SnapshotFolder,
    name: &str,
    part: &StatePart,
    files: &StateFiles,
    base: Option<(u64, &StateMetadata)>,
) -> Result<Vec<StateMetadata>, StoreError> {
    let header = StoreHeader::of(part)?;
    let there = base.map(|base| files_of_base(base, header.lineage)).unwrap_or_default();
    let bytes = part.chunks[0].bytes.clone();
    let chunk = whole(0, bytes.len() as u64, checksum(&bytes));
    let (mut places, mut chunks) = (vec![Location::Inline(bytes)], vec![chunk]);
    for file in files.files() {
        let (place, stored) = match there.get(file) {
            Some((place, stored)) => (place.clone(), *stored),
            None => store_file(folder, format!("{name}-{}", file.name), files, file).await?,
        };
        chunks.push(whole(place_number(part, places.len())?, stored.length, stored.checksum));
        places.push(place);
    }
    let store = StateMetadata { places, chunks, ..listed(part) };
    Ok(header.parts().iter().map(listed).chain([store]).collect())
}

/// Where the files of a base are, if they are of the same lineage.
fn files_of_base(
    (checkpoint, base): (u64, &StateMetadata),
    lineage: u64,
) -> BTreeMap<StateFile, (Location, Uploaded)> {
    let Some(Location::Inline(bytes)) = base.places.first() else { return BTreeMap::new() };
    let Some(header) = StoreHeader::decode(bytes).ok().filter(|header| header.lineage == lineage) else {
        return BTreeMap::new();
    };
    let known = header.files.into_iter().zip(base.chunks.iter().skip(1));
    let file = |(name, chunk): (String, &ChunkMetadata)| match &base.places[usize::from(chunk.place)] {
        Location::File(path) => {
            let place = Location::File(RunStore::from_later(checkpoint, path));
            let stored = Uploaded { length: chunk.length, checksum: chunk.checksum };
            Some((StateFile { name, length: chunk.length }, (place, stored)))
        }
        Location::Inline(_) => None,
    };
    known.filter_map(file).collect()
}

/// Stores a file; a small one in the metadata.
async fn store_file(
    folder: &SnapshotFolder,
    name: String,
    files: &StateFiles,
    file: &StateFile,
) -> Result<(Location, Uploaded), StoreError> {
    let path = files.path(file);
    let mut blocks = blocks_of(files.clone(), file.clone());
    if file.length <= INLINE as u64 {
        let mut bytes = Vec::new();
        while let Some(block) = blocks.recv().await {
            bytes.extend(block.map_err(|source| StoreError::File { path: path.clone(), source })?);
        }
        let stored = Uploaded { length: bytes.len() as u64, checksum: checksum(&bytes) };
        return Ok((Location::Inline(bytes), stored));
    }
    let mut upload = folder.upload(&name);
    while let Some(block) = blocks.recv().await {
        let written = match block {
            Ok(block) => upload.write(&block).await.map_err(StoreError::from),
            Err(source) => Err(StoreError::File { path: path.clone(), source }),
        };
        if let Err(error) = written {
            upload.abort().await;
            return Err(error);
        }
    }
    Ok((Location::File(name), folder.finish(upload).await?))
}

/// A file, block by block, read where waiting for a disk holds nobody up.
fn blocks_of(files: StateFiles, file: StateFile) -> mpsc::Receiver<std::io::Result<Vec<u8>>> {
    let (blocks, receiver) = mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        let read = || -> std::io::Result<()> {
            let mut from = File::open(files.path(&file))?;
            loop {
                let mut block = Vec::with_capacity(BLOCK.min(file.length) as usize);
                from.by_ref().take(BLOCK).read_to_end(&mut block)?;
                // Nobody wants more if the upload has failed.
                if block.is_empty() || blocks.blocking_send(Ok(block)).is_err() {
                    return Ok(());
                }
            }
        };
        if let Err(error) = read() {
            blocks.blocking_send(Err(error)).ok();
        }
    });
    receiver
}

/// Stores the rows of an image as chunks by key group, all in one file.
pub(super) async fn as_chunks(
    folder: &SnapshotFolder,
    name: String,
    part: &StatePart,
    files: StateFiles,
    max: MaxParallelism,
) -> Result<Vec<StateMetadata>, StoreError> {
    let header = StoreHeader::of(part)?;
    let (blocks, mut receiver) = mpsc::channel(1);
    let file = name.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let store = OpenImage::new(files.clone(), &RocksMemory::new(READER_MEMORY, 1))?;
        let reader = ImageReader::new(&header, files, Box::new(store));
        ChunkWriter { reader, blocks, block: Vec::new(), offset: 0 }.write(&file, max)
    });
    let mut upload: Option<Upload> = None;
    while let Some(block) = receiver.recv().await {
        let to = upload.get_or_insert_with(|| folder.upload(&name));
        if let Err(error) = to.write(&block).await {
            drop(receiver);
            if let Some(upload) = upload {
                upload.abort().await;
            }
            return Err(error.into());
        }
    }
    let written = writing.await.expect("reading does not panic, and nobody cancels it");
    match (written, upload) {
        (Ok(states), Some(upload)) => {
            folder.finish(upload).await?;
            Ok(states)
        }
        (Ok(states), None) => Ok(states),
        (Err(error), upload) => {
            if let Some(upload) = upload {
                upload.abort().await;
            }
            Err(error)
        }
    }
}

/// Writes chunks one behind the other, and describes them.
struct ChunkWriter {
    reader: ImageReader,
    blocks: mpsc::Sender<Vec<u8>>,
    /// What has not been sent yet.
    block: Vec<u8>,
    offset: u64,
}

impl ChunkWriter {
    fn write(mut self, file: &str, max: MaxParallelism) -> Result<Vec<StateMetadata>, StoreError> {
        let mut states: Vec<StateMetadata> = self.reader.parts().map(listed).collect();
        for (at, state) in states.iter_mut().enumerate() {
            for group in (0..max.groups()).map(KeyGroup) {
                state.chunks.extend(self.write_chunk(at, group)?);
            }
            if !state.chunks.is_empty() {
                state.places.push(Location::File(file.to_owned()));
            }
        }
        self.send()?;
        Ok(states)
    }

    fn write_chunk(&mut self, part: usize, group: KeyGroup) -> Result<Option<ChunkMetadata>, StateError> {
        let (mut length, mut checksum) = (0, Checksum::default());
        let Self { reader, blocks, block, offset } = self;
        reader.write_chunk(part, group, &mut |bytes| {
            length += bytes.len() as u64;
            checksum.update(bytes);
            block.extend_from_slice(bytes);
            if block.len() as u64 >= BLOCK { send(blocks, block) } else { Ok(()) }
        })?;
        let at = *offset;
        *offset += length;
        let chunk =
            ChunkMetadata { key_group: Some(group), offset: at, ..whole(0, length, checksum.digest()) };
        Ok((length > 0).then_some(chunk))
    }

    fn send(&mut self) -> Result<(), StateError> {
        if self.block.is_empty() { Ok(()) } else { send(&self.blocks, &mut self.block) }
    }
}

fn send(blocks: &mpsc::Sender<Vec<u8>>, block: &mut Vec<u8>) -> Result<(), StateError> {
    let sent = blocks.blocking_send(std::mem::take(block));
    // Whoever takes them says why he does not.
    sent.map_err(|_| StateError::Store {
        path: String::new(),
        action: "stored",
        cause: "the snapshot has been given up".to_owned(),
    })
}

/// A part as it is listed, without chunks.
fn listed(part: &StatePart) -> StateMetadata {
    let (name, columns) = (part.name.clone(), part.columns.clone());
    let (places, chunks) = (Vec::new(), Vec::new());
    StateMetadata { name, form: part.form, version: part.version, columns, places, chunks }
}

fn whole(place: u16, length: u64, checksum: u64) -> ChunkMetadata {
    ChunkMetadata { key_group: None, kind: ChunkKind::Whole, place, offset: 0, length, checksum }
}

fn place_number(part: &StatePart, places: usize) -> Result<u16, ChainError> {
    let number = u16::try_from(places).ok().filter(|&number| number < u16::MAX);
    number.ok_or_else(|| ChainError::TooManyPlaces { name: part.name.clone(), places })
}

/// Bytes that are read, or gathered, before they are sent on.
const BLOCK: u64 = 64 << 10;
/// Memory of a database that is read once from its beginning to its end.
const READER_MEMORY: usize = 8 << 20;

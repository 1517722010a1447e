//! One instance of RocksDB: a table of the store is a column family.

mod image;

use std::{
    fs,
    path::{Path, PathBuf},
};

use millstream_state::{BackingStore, ByteRows, Found, ReadTables, StateError, Table, Visit};
use millstream_types::{State, StateFiles, StateKind};
use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, ReadOptions, WriteBatch, WriteOptions};

use crate::RocksMemory;
pub use image::OpenImage;

/// The state of one operator subtask in RocksDB, which is opened when something is written for the first time: that may
/// be never.
pub struct RocksStore {
    folder: PathBuf,
    memory: RocksMemory,
    /// Dropped before the folder is removed.
    db: Option<DB>,
    /// Why it could not be opened, to be told by the next call that can.
    refused: Option<StateError>,
    /// The names of the column families of map states, by state.
    maps: Vec<Option<String>>,
    staged: WriteBatch,
    writes: WriteOptions,
    /// How many images there have been.
    images: u64,
}

impl RocksStore {
    /// An empty store for these states in a folder of its own, which must not exist and is removed in the end.
    pub fn new(folder: PathBuf, states: &[State], memory: &RocksMemory) -> Self {
        let name = |(at, state): (usize, &State)| (state.kind == StateKind::Map).then(|| map_name(at));
        let maps = states.iter().enumerate().map(name).collect();
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        writes.set_memtable_insert_hint_per_batch(true);
        let (memory, staged) = (memory.clone(), WriteBatch::default());
        Self { folder, memory, db: None, refused: None, maps, staged, writes, images: 0 }
    }

    fn open_database(&self) -> Result<DB, StateError> {
        fs::create_dir_all(&self.folder).map_err(|e| failed(&self.folder, "created", &e))?;
        let names = [KEYS, TIMERS].into_iter().chain(self.maps.iter().flatten().map(String::as_str));
        let families = names.map(|name| ColumnFamilyDescriptor::new(name, self.memory.table()));
        DB::open_cf_descriptors(&self.memory.database(), &self.folder, families)
            .map_err(|e| self.failed("opened", &e))
    }

    /// What is staged, with the family of a table, once the database is open; none if it cannot be opened.
    fn staged(&mut self, table: Table) -> Option<(&mut WriteBatch, &ColumnFamily)> {
        if self.db.is_none() && self.refused.is_none() {
            match self.open_database() {
                Ok(db) => self.db = Some(db),
                Err(error) => self.refused = Some(error),
            }
        }
        Some((&mut self.staged, family(self.db.as_ref()?, &self.maps, table)))
    }

    fn failed(&self, action: &'static str, error: &rocksdb::Error) -> StateError {
        failed(&self.folder, action, error)
    }
}

impl ReadTables for RocksStore {
    fn read(&mut self, table: Table, keys: &ByteRows, found: &mut Found<'_>) -> Result<(), StateError> {
        let Some(db) = &self.db else { return Ok(()) };
        let read = read(db, family(db, &self.maps, table), keys, found);
        read.map_err(|e| e.in_folder(&self.folder))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        until: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StateError> {
        let Some(db) = &self.db else { return Ok(()) };
        let scanned = scan(db, family(db, &self.maps, table), (from, until), visit);
        scanned.map_err(|e| e.in_folder(&self.folder))
    }
}

impl BackingStore for RocksStore {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        if let Some((staged, family)) = self.staged(table) {
            staged.put_cf(family, key, value);
        }
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        if let Some((staged, family)) = self.staged(table) {
            staged.delete_cf(family, key);
        }
    }

    fn delete_range(&mut self, table: Table, from: &[u8], until: &[u8]) {
        if let Some((staged, family)) = self.staged(table) {
            staged.delete_range_cf(family, from, until);
        }
    }

    fn apply(&mut self) -> Result<(), StateError> {
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let staged = std::mem::take(&mut self.staged);
        match &self.db {
            Some(db) if !staged.is_empty() => {
                db.write_opt(staged, &self.writes).map_err(|e| self.failed("written", &e))
            }
            _ => Ok(()),
        }
    }

    fn image(&mut self) -> Result<StateFiles, StateError> {
        self.images += 1;
        let db = match self.db.take() {
            Some(db) => db,
            // Nothing has been written, as all that was evicted had gone.
            None => self.open_database()?,
        };
        let db = self.db.insert(db);
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        // Beside the store, which may be gone before the image is stored.
        let folder = self.folder.with_file_name(format!("{name}-image-{}", self.images));
        image::create(db, folder)
    }

    fn adopt(&mut self, files: &StateFiles) -> Result<(), StateError> {
        image::link(files, &self.folder).map_err(|e| failed(&self.folder, "taken up", &e))?;
        self.db = Some(self.open_database()?);
        Ok(())
    }

    fn open(&self, files: &StateFiles) -> Result<Box<dyn ReadTables>, StateError> {
        Ok(Box::new(OpenImage::new(files.clone(), &self.memory)?))
    }
}

/// A read that has not gone well.
enum ReadError {
    Rocks(rocksdb::Error),
    /// What whoever takes the rows says.
    Taken(StateError),
}

impl ReadError {
    fn in_folder(self, folder: &Path) -> StateError {
        match self {
            ReadError::Rocks(error) => failed(folder, "read", &error),
            ReadError::Taken(error) => error,
        }
    }
}

fn read(db: &DB, family: &ColumnFamily, keys: &ByteRows, found: &mut Found<'_>) -> Result<(), ReadError> {
    let options = ReadOptions::default();
    let all: Vec<&[u8]> = keys.iter().collect();
    for (at, keys) in all.chunks(READ_AT_ONCE).enumerate() {
        let values = db.batched_multi_get_cf_opt(family, keys.iter().copied(), true, &options);
        for (i, value) in values.into_iter().enumerate() {
            if let Some(value) = value.map_err(ReadError::Rocks)? {
                found(at * READ_AT_ONCE + i, &value).map_err(ReadError::Taken)?;
            }
        }
    }
    Ok(())
}

fn scan(
    db: &DB,
    family: &ColumnFamily,
    (from, until): (&[u8], Option<&[u8]>),
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let mut options = ReadOptions::default();
    match until {
        Some(until) => options.set_iterate_upper_bound(until),
        // All of a table would push out what is read again.
        None => options.fill_cache(false),
    }
    let mut rows = db.raw_iterator_cf_opt(family, options);
    rows.seek(from);
    while let Some((key, value)) = rows.item() {
        if visit(key, value).map_err(ReadError::Taken)?.is_break() {
            return Ok(());
        }
        rows.next();
    }
    rows.status().map_err(ReadError::Rocks)
}

impl Drop for RocksStore {
    fn drop(&mut self) {
        let Some(db) = self.db.take() else { return };
        db.cancel_all_background_work(true);
        drop(db);
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "state on disk that is not needed any more cannot be removed");
        }
    }
}

fn family<'a>(db: &'a DB, maps: &[Option<String>], table: Table) -> &'a ColumnFamily {
    let name = match table {
        Table::Keys => KEYS,
        Table::Timers => TIMERS,
        Table::Map(state) => maps[state].as_deref().expect("only maps have entries"),
    };
    db.cf_handle(name).expect("every table was opened with the store")
}

/// The column family of a map state.
fn map_name(state: usize) -> String {
    format!("map-{state}")
}

fn failed(folder: &Path, action: &'static str, error: &dyn std::fmt::Display) -> StateError {
    StateError::Store { path: folder.display().to_string(), action, cause: error.to_string() }
}

const KEYS: &str = "keys";
const TIMERS: &str = "timers";
/// Keys that are read by one call.
const READ_AT_ONCE: usize = 1024;

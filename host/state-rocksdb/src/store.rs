//! One instance of RocksDB: a table of the store is a column family.

use std::{
    fs,
    path::{Path, PathBuf},
};

use millstream_state::{BackingStore, ByteRows, Found, StateError, Table, Visit};
use millstream_types::{State, StateKind};
use rocksdb::{ColumnFamily, ColumnFamilyDescriptor, DB, ReadOptions, WriteBatch, WriteOptions};

use crate::RocksMemory;

/// The state of one operator subtask in RocksDB.
pub struct RocksStore {
    folder: PathBuf,
    /// Dropped before the folder is removed.
    db: Option<DB>,
    /// The names of the column families of map states, by state.
    maps: Vec<String>,
    staged: WriteBatch,
    writes: WriteOptions,
}

impl RocksStore {
    /// An empty store for these states in a folder of its own, which must not exist and is removed in the end.
    pub fn create(folder: PathBuf, states: &[State], memory: &RocksMemory) -> Result<Self, StateError> {
        fs::create_dir_all(&folder).map_err(|e| failed(&folder, "created", &e))?;
        let maps: Vec<String> = (0..states.len()).map(|state| format!("map-{state}")).collect();
        let families = [KEYS, TIMERS].into_iter().chain(
            states.iter().zip(&maps).filter(|(state, _)| state.kind == StateKind::Map).map(|(_, n)| &**n),
        );
        let families: Vec<_> =
            families.map(|name| ColumnFamilyDescriptor::new(name, memory.table())).collect();
        let db = DB::open_cf_descriptors(&memory.database(), &folder, families)
            .map_err(|e| failed(&folder, "opened", &e))?;
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        writes.set_memtable_insert_hint_per_batch(true);
        Ok(Self { folder, db: Some(db), maps, staged: WriteBatch::default(), writes })
    }

    fn db(&self) -> &DB {
        self.db.as_ref().expect("it is there until the store is dropped")
    }

    fn failed(&self, action: &'static str, error: &rocksdb::Error) -> StateError {
        failed(&self.folder, action, error)
    }
}

impl BackingStore for RocksStore {
    fn read(&mut self, table: Table, keys: &ByteRows, found: &mut Found<'_>) -> Result<(), StateError> {
        let (db, family) = (self.db(), family(self.db(), &self.maps, table));
        let options = ReadOptions::default();
        let all: Vec<&[u8]> = keys.iter().collect();
        for (at, keys) in all.chunks(READ_AT_ONCE).enumerate() {
            let values = db.batched_multi_get_cf_opt(family, keys.iter().copied(), true, &options);
            for (i, value) in values.into_iter().enumerate() {
                if let Some(value) = value.map_err(|e| self.failed("read", &e))? {
                    found(at * READ_AT_ONCE + i, &value)?;
                }
            }
        }
        Ok(())
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        until: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StateError> {
        let mut options = ReadOptions::default();
        match until {
            Some(until) => options.set_iterate_upper_bound(until),
            // All of a table would push out what is read again.
            None => options.fill_cache(false),
        }
        let mut rows = self.db().raw_iterator_cf_opt(family(self.db(), &self.maps, table), options);
        rows.seek(from);
        while let Some((key, value)) = rows.item() {
            if visit(key, value)?.is_break() {
                return Ok(());
            }
            rows.next();
        }
        rows.status().map_err(|e| self.failed("read", &e))
    }

    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        let db = self.db.as_ref().expect(OPEN);
        self.staged.put_cf(family(db, &self.maps, table), key, value);
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        let db = self.db.as_ref().expect(OPEN);
        self.staged.delete_cf(family(db, &self.maps, table), key);
    }

    fn delete_range(&mut self, table: Table, from: &[u8], until: &[u8]) {
        let db = self.db.as_ref().expect(OPEN);
        self.staged.delete_range_cf(family(db, &self.maps, table), from, until);
    }

    fn apply(&mut self) -> Result<(), StateError> {
        let staged = std::mem::take(&mut self.staged);
        if staged.is_empty() {
            return Ok(());
        }
        self.db().write_opt(staged, &self.writes).map_err(|e| self.failed("written", &e))
    }
}

impl Drop for RocksStore {
    fn drop(&mut self) {
        if let Some(db) = self.db.take() {
            db.cancel_all_background_work(true);
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "state on disk that is not needed any more cannot be removed");
        }
    }
}

fn family<'a>(db: &'a DB, maps: &[String], table: Table) -> &'a ColumnFamily {
    let name = match table {
        Table::Keys => KEYS,
        Table::Timers => TIMERS,
        Table::Map(state) => &maps[state],
    };
    db.cf_handle(name).expect("every table was opened with the store")
}

fn failed(folder: &Path, action: &'static str, error: &dyn std::fmt::Display) -> StateError {
    StateError::Store { path: folder.display().to_string(), action, cause: error.to_string() }
}

const KEYS: &str = "keys";
const TIMERS: &str = "timers";
const OPEN: &str = "it is there until the store is dropped";
/// Keys that are read by one call.
const READ_AT_ONCE: usize = 1024;

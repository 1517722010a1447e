//! A store that is no disk: what the cache is tested with.

use std::{
    collections::BTreeMap,
    fs,
    ops::Bound::{Excluded, Included, Unbounded},
    sync::atomic::{AtomicU64, Ordering},
};

use millstream_types::{StateFile, StateFiles};

use super::{BackingStore, ByteRows, Found, ReadTables, Table, Visit};
use crate::{
    StateError,
    snapshot::{put_bytes, put_u32, take_bytes, take_u32},
};

/// Ordered tables in memory.
#[derive(Clone, Debug, Default)]
pub struct InMemoryStore {
    tables: BTreeMap<Table, BTreeMap<Vec<u8>, Vec<u8>>>,
    staged: Vec<Staged>,
}

#[derive(Clone, Debug)]
enum Staged {
    Put(Table, Vec<u8>, Vec<u8>),
    Delete(Table, Vec<u8>),
    DeleteRange(Table, Vec<u8>, Vec<u8>),
}

impl ReadTables for InMemoryStore {
    fn read(&mut self, table: Table, keys: &ByteRows, found: &mut Found<'_>) -> Result<(), StateError> {
        let Some(table) = self.tables.get(&table) else { return Ok(()) };
        keys.iter()
            .enumerate()
            .try_for_each(|(i, key)| table.get(key).map_or(Ok(()), |value| found(i, value)))
    }

    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        until: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StateError> {
        let Some(table) = self.tables.get(&table) else { return Ok(()) };
        for (key, value) in table.range::<[u8], _>((Included(from), until.map_or(Unbounded, Excluded))) {
            if visit(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl BackingStore for InMemoryStore {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.staged.push(Staged::Put(table, key.to_vec(), value.to_vec()));
    }

    fn delete(&mut self, table: Table, key: &[u8]) {
        self.staged.push(Staged::Delete(table, key.to_vec()));
    }

    fn delete_range(&mut self, table: Table, from: &[u8], until: &[u8]) {
        self.staged.push(Staged::DeleteRange(table, from.to_vec(), until.to_vec()));
    }

    fn apply(&mut self) -> Result<(), StateError> {
        for staged in self.staged.drain(..) {
            match staged {
                Staged::Put(table, key, value) => {
                    self.tables.entry(table).or_default().insert(key, value);
                }
                Staged::Delete(table, key) => {
                    self.tables.entry(table).or_default().remove(&key);
                }
                Staged::DeleteRange(table, from, until) => {
                    self.tables.entry(table).or_default().retain(|key, _| *key < from || *key >= until);
                }
            }
        }
        Ok(())
    }
    /// One file, with all that there is.
    fn image(&mut self) -> Result<StateFiles, StateError> {
        static IMAGES: AtomicU64 = AtomicU64::new(0);
        let number = IMAGES.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("millstream-image-{}-{number}", std::process::id()));
        let mut bytes = Vec::new();
        for (table, rows) in &self.tables {
            for (key, value) in rows {
                put_u32(number_of(*table), &mut bytes);
                put_bytes(key, &mut bytes);
                put_bytes(value, &mut bytes);
            }
        }
        let file = StateFile { name: format!("{number}.rows"), length: bytes.len() as u64 };
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(&file.name), bytes));
        written.map_err(|e| failed(&folder, "written", &e))?;
        Ok(StateFiles::new(folder, vec![file]))
    }

    fn adopt(&mut self, files: &StateFiles) -> Result<(), StateError> {
        self.tables = Self::of(files)?.tables;
        Ok(())
    }

    fn open(&self, files: &StateFiles) -> Result<Box<dyn ReadTables>, StateError> {
        Ok(Box::new(Self::of(files)?))
    }
}

impl InMemoryStore {
    /// What an image has.
    pub fn of(files: &StateFiles) -> Result<Self, StateError> {
        let mut store = Self::default();
        for file in files.files() {
            let read = fs::read(files.path(file)).map_err(|e| failed(files.folder(), "read", &e))?;
            let mut bytes = &read[..];
            while !bytes.is_empty() {
                let table = table_of(take_u32(&mut bytes)?);
                let (key, value) = (take_bytes(&mut bytes)?.to_vec(), take_bytes(&mut bytes)?.to_vec());
                store.tables.entry(table).or_default().insert(key, value);
            }
        }
        Ok(store)
    }
}

fn failed(folder: &std::path::Path, action: &'static str, error: &std::io::Error) -> StateError {
    StateError::Store { path: folder.display().to_string(), action, cause: error.to_string() }
}

fn number_of(table: Table) -> u32 {
    match table {
        Table::Keys => 0,
        Table::Timers => 1,
        Table::Map(state) => 2 + state as u32,
    }
}

fn table_of(number: u32) -> Table {
    match number {
        0 => Table::Keys,
        1 => Table::Timers,
        map => Table::Map(map as usize - 2),
    }
}

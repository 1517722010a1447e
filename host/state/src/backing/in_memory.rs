//! A store that is no disk: what the cache is tested with.

use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Included, Unbounded},
};

use super::{BackingStore, ByteRows, Found, Table, Visit};
use crate::StateError;

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

impl BackingStore for InMemoryStore {
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
}

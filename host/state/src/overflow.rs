//! A place for windows and sessions that memory has no room for: a store that takes what has been evicted.
//!
//! Unlike the one behind the cache of keyed state it has no copies: what is in memory is not in the store, and the other way
//! round. A key of a window that is read is nearly always written, so that a copy would hardly ever save writing it, and what
//! a window still has in memory when it ends need not be written for that. A snapshot is what memory has, as chunks, and an
//! image of the store beside it; together they have everything once.

pub(crate) mod rows;

use std::hash::{BuildHasher, RandomState};

use millstream_types::{Column, MaxParallelism, StateForm, StatePart};

use crate::{BackingStore, CacheOptions, StateError, StoreHeader, StoredState, Table};

/// Where the windows or sessions of one operator subtask go that have no room in memory.
pub struct Overflow {
    pub(crate) store: Box<dyn BackingStore>,
    pub(crate) max: MaxParallelism,
    /// Bytes of memory, which the keys of the current call may go beyond.
    pub(crate) memory: usize,
    /// Of the images of the store: what [`StoreHeader`] says.
    pub(crate) lineage: u64,
    staged: usize,
}

/// Makes a place for each state that an operator keeps; none where everything stays in memory.
pub type Overflows<'a> = dyn Fn() -> Option<Overflow> + 'a;

impl Overflow {
    /// An empty store with two tables, [`Table::Keys`] and [`Table::Timers`]. Half of the memory is for what is kept there,
    /// and half for the copy of it that a checkpoint has until it is stored.
    pub fn new(store: Box<dyn BackingStore>, options: CacheOptions) -> Self {
        let lineage = RandomState::new().hash_one(());
        Self { store, max: options.max, memory: options.memory / 2, lineage, staged: 0 }
    }

    /// Stages a value, and applies what has been staged if it is much.
    pub(crate) fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.store.put(table, key, value);
        self.staged += key.len() + value.len();
        if self.staged > STAGED_AT_ONCE { self.apply() } else { Ok(()) }
    }

    /// Applies what has been staged.
    pub(crate) fn apply(&mut self) -> Result<(), StateError> {
        self.staged = 0;
        self.store.apply()
    }

    /// An image of the store as a part of a snapshot, which has the name of the state.
    pub(crate) fn image(
        &mut self,
        state: StoredState,
        keys: u64,
        timers: u64,
    ) -> Result<StatePart, StateError> {
        let files = self.store.image()?;
        let name = state.name.clone();
        let header = StoreHeader {
            lineage: self.lineage,
            keys,
            timers: [timers, 0, 0],
            states: vec![state],
            files: files.files().iter().map(|file| file.name.clone()).collect(),
        };
        Ok(header.into_part(&name, files))
    }
}

/// The header of an image of the only state of a store, which has to be of this form and these columns.
pub(crate) fn header_of(
    part: &StatePart,
    form: StateForm,
    columns: &[Column],
) -> Result<StoreHeader, StateError> {
    let header = StoreHeader::of(part)?;
    match &header.states[..] {
        [state] if state.form == form && state.columns == columns => Ok(header),
        _ => Err(StateError::NotDeclared { name: part.name.clone() }),
    }
}

/// Bytes that are staged before they are applied.
const STAGED_AT_ONCE: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InMemoryStore, ReadTables, conformance};

    fn make(memory: usize) -> Overflow {
        let max = MaxParallelism::new(8).expect("in range");
        Overflow::new(Box::<InMemoryStore>::default(), CacheOptions { max, memory })
    }

    fn open(files: &millstream_types::StateFiles) -> Box<dyn ReadTables> {
        Box::new(InMemoryStore::of(files).expect("its own image"))
    }

    #[test]
    fn windows_are_what_they_are_in_memory() {
        conformance::run_windows(&make, open);
    }

    #[test]
    fn sessions_are_what_they_are_in_memory() {
        conformance::run_sessions(&make, open);
    }
}

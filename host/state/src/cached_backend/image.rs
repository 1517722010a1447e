//! Snapshots of what does not fit into memory: an image of the store.

use std::ops::{ControlFlow, Range};

use millstream_types::{Clock, StateFiles, StateKind, StatePart};

use super::{
    CachedBackend, Elsewhere,
    key_row::{Layout, index_of, put_timer_key, split_timer_key, take_times},
};
use crate::{
    BackingStore, KEYED_STORE, KeyedBackend, StateError, StoreHeader, StoredState, Table,
    memory_backend::CLOCKS,
};

impl CachedBackend {
    /// Everything as an image, once the store has all of it.
    pub(super) fn image_part(&mut self) -> Result<Vec<StatePart>, StateError> {
        self.write_all_back()?;
        let files = self.store.image()?;
        let header = StoreHeader {
            lineage: self.lineage,
            keys: self.key_count() as u64,
            timers: CLOCKS.map(|clock| self.pending_timers(clock)),
            states: StoredState::declared(&self.layout.states),
            files: files.files().iter().map(|file| file.name.clone()).collect(),
        };
        Ok(vec![header.into_part(KEYED_STORE, files)])
    }

    /// Takes up an image of a store with the same states: all of it into an empty store as it is, some key groups, or what
    /// another subtask had, row by row.
    pub(super) fn restore_image(&mut self, part: &StatePart) -> Result<(), StateError> {
        let header = StoreHeader::of(part)?;
        let Some(files) = part.files.as_ref().filter(|_| header.fits(&self.layout.states)) else {
            return Err(StateError::NotDeclared { name: part.name.clone() });
        };
        let is_empty = !self.elsewhere.used && self.cache.keys.is_empty();
        match files.groups() {
            None if is_empty => self.adopt(&header, files),
            groups => self.copy(files, groups.unwrap_or(0..self.layout.max.groups())),
        }
    }

    fn adopt(&mut self, header: &StoreHeader, files: &StateFiles) -> Result<(), StateError> {
        self.store.adopt(files)?;
        self.lineage = header.lineage;
        let mut next = [None; CLOCKS.len()];
        for clock in CLOCKS {
            let from = [index_of(clock) as u8];
            let until = [from[0] + 1];
            self.store.scan(Table::Timers, &from, Some(&until), &mut |key, _| {
                next[index_of(clock)] = Some(split_timer_key(key)?.0);
                Ok(ControlFlow::Break(()))
            })?;
        }
        self.elsewhere = Elsewhere { used: true, keys: header.keys as usize, timers: header.timers, next };
        Ok(())
    }

    /// Copies the rows of some key groups.
    fn copy(&mut self, files: &StateFiles, groups: Range<u16>) -> Result<(), StateError> {
        let mut from = self.store.open(files)?;
        self.elsewhere.used = true;
        let (start, end) = (groups.start.to_be_bytes(), groups.end.to_be_bytes());
        let Self { store, layout, elsewhere, .. } = self;
        let mut batch = Batch { store: &mut **store, bytes: 0 };
        from.scan(Table::Keys, &start, Some(&end), &mut |row_key, row| {
            elsewhere.keys += 1;
            copy_timers(layout, row_key, row, elsewhere, &mut batch)?;
            batch.put(Table::Keys, row_key, row)?;
            Ok(ControlFlow::Continue(()))
        })?;
        let maps = layout.states.iter().enumerate().filter(|(_, state)| state.kind == StateKind::Map);
        for (state, _) in maps {
            let table = Table::Map(state);
            from.scan(table, &start, Some(&end), &mut |key, row| {
                batch.put(table, key, row)?;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        self.store.apply()
    }
}

/// Puts a key with its earliest timers into the table of timers.
fn copy_timers(
    layout: &Layout,
    row_key: &[u8],
    row: &[u8],
    elsewhere: &mut Elsewhere,
    batch: &mut Batch<'_>,
) -> Result<(), StateError> {
    let mut earliest = [None; CLOCKS.len()];
    let times = |clock: Clock, mut times: &[u8]| {
        let of_clock = &mut earliest[index_of(clock)];
        let count =
            take_times(&mut times, |time| *of_clock = Some(of_clock.map_or(time, |t: i64| t.min(time))))?;
        elsewhere.timers[index_of(clock)] += u64::from(count);
        Ok(())
    };
    layout.parse(row, |_, _| Ok(()), times)?;
    let mut key = Vec::new();
    for clock in CLOCKS {
        let Some(time) = earliest[index_of(clock)] else { continue };
        let next = &mut elsewhere.next[index_of(clock)];
        *next = Some(next.map_or(time, |next| next.min(time)));
        key.clear();
        put_timer_key(clock, time, row_key, &mut key);
        batch.put(Table::Timers, &key, &[])?;
    }
    Ok(())
}

/// Rows on their way into a store, which takes so many at once.
struct Batch<'a> {
    store: &'a mut dyn BackingStore,
    bytes: usize,
}

impl Batch<'_> {
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.store.put(table, key, value);
        self.bytes += key.len() + value.len();
        if self.bytes > COPIED_AT_ONCE {
            self.bytes = 0;
            self.store.apply()?;
        }
        Ok(())
    }
}

/// Bytes that are copied at once.
const COPIED_AT_ONCE: usize = 4 << 20;

//! Keyed state in memory with a store behind it, for more keys than memory has room for.
//!
//! The memory backend is the cache: a key that is in its table has all that it has there, but for entries of maps. What
//! a call writes stays in memory until its key is evicted, so state that fits costs what it costs in memory, and the
//! store is not even asked before the first eviction.
//!
//! - Starting a call reads the keys that are not in the table, all at once and in order.
//! - Ending a call evicts keys while the cache takes more than its budget: those that no call has named for the longest
//!   time, roughly ([`sweep`]), written as one batch if they have changed.
//! - Maps are not read as a whole: of a key that was read its entries are read as they are asked for ([`maps`]).
//! - Timers of keys that are in the table are in the wheel. Of the others the earliest timer of each is in a table in
//!   order of time, and a round starts with reading the keys that are due by that ([`due`]).
//! - A snapshot is the memory backend's until a key has been evicted. After that what has changed is written to the store,
//!   and an image of its files is the snapshot ([`image`]).
//!
//! Invariants: a slot is `kept` if the store has a row of its key, and `changed` if that row is not what the cache has; a
//! key that is not in the table is in the store as it is, and only such keys are counted in [`Elsewhere`].

mod due;
mod image;
pub(crate) mod key_row;
mod maps;
mod marks;
mod read;
mod restore;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
mod write;

use std::hash::{BuildHasher, RandomState};

use millstream_types::{
    Cells, Clock, EncodedKeys, Entries, MaxParallelism, Runs, SnapshotRequest, State, StatePart,
};

use self::{
    key_row::{Layout, index_of},
    maps::{MapChange, MapMarks},
    marks::Marks,
    sweep::Sweep,
};
use crate::{
    BackingStore, Grouping, KeyedBackend, MapKeys, StateError,
    memory_backend::{CLOCKS, MemoryBackend},
};

/// What a cache may take.
#[derive(Clone, Copy, Debug)]
pub struct CacheOptions {
    /// How keys are divided, which decides in what order they are stored.
    pub max: MaxParallelism,
    /// Bytes of memory, which the keys of the current call may go beyond.
    pub memory: usize,
}

/// Keyed state and timers in memory as far as it has room, and in a store behind it.
pub struct CachedBackend {
    cache: MemoryBackend,
    store: Box<dyn BackingStore>,
    layout: Layout,
    memory: usize,
    marks: Marks,
    /// By state; empty for those that are no maps.
    maps: Vec<MapMarks>,
    /// Groups of the current call that have been written.
    written: Vec<u32>,
    map_changes: Vec<MapChange>,
    elsewhere: Elsewhere,
    sweep: Sweep,
    /// Of the images of the store: what [`StoreHeader`](crate::StoreHeader) says.
    lineage: u64,
}

/// What is in the store and not in the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Elsewhere {
    /// Whether anything has ever been written there.
    used: bool,
    keys: usize,
    /// By clock.
    timers: [u64; CLOCKS.len()],
    /// By clock, a time before which the table of timers has nothing.
    next: [Option<i64>; CLOCKS.len()],
}

impl CachedBackend {
    /// A backend for these states in front of an empty store.
    pub fn new(states: &[State], store: Box<dyn BackingStore>, options: CacheOptions) -> Self {
        Self {
            cache: MemoryBackend::new(states),
            store,
            layout: Layout::new(states, options.max),
            memory: options.memory,
            marks: Marks::default(),
            maps: states.iter().map(|_| MapMarks::default()).collect(),
            written: Vec::new(),
            map_changes: Vec::new(),
            elsewhere: Elsewhere::default(),
            sweep: Sweep::default(),
            lineage: RandomState::new().hash_one(()),
        }
    }

    /// The bytes of memory that the cache takes for the keys that it has.
    fn taken(&self) -> usize {
        self.cache.keys.len() * self.bytes_per_slot() + self.cache.bytes_elsewhere()
    }

    fn bytes_per_slot(&self) -> usize {
        self.cache.bytes_per_slot() + self.marks.bytes_per_slot()
    }

    /// A call that nobody has ended has failed.
    fn drop_open_call(&mut self) {
        if self.cache.grouping.groups() > 0 {
            self.rollback();
        }
    }

    /// Evicts keys until the rest fits. Not during a call.
    fn make_room(&mut self) -> Result<(), StateError> {
        if self.taken() <= self.memory {
            return Ok(());
        }
        // Some more than is needed, so that it is a batch.
        let target = self.memory - self.memory / EVICTED_AT_ONCE;
        loop {
            let excess = self.taken().saturating_sub(target);
            let average = self.taken() / self.cache.keys.len().max(1);
            let victims = self.sweep.choose(&self.cache.keys, excess.div_ceil(average.max(1)));
            if victims.is_empty() || excess == 0 {
                return Ok(());
            }
            self.write_back(&victims)?;
            self.forget(&victims);
        }
    }

    /// Takes keys that have been written back out of the cache.
    fn forget(&mut self, slots: &[u32]) {
        self.elsewhere.used = true;
        for &slot in slots {
            // Keys that had nothing any more have gone with being written.
            if !self.cache.keys.is_occupied(slot) {
                continue;
            }
            for clock in CLOCKS {
                let timers = self.cache.timers(clock);
                let earliest = timers.earliest(slot);
                let next = &mut self.elsewhere.next[index_of(clock)];
                *next = [*next, earliest].into_iter().flatten().min();
                self.elsewhere.timers[index_of(clock)] += timers.remove_all(slot);
            }
            self.elsewhere.keys += usize::from(self.cache.kept.set(slot, false));
            self.cache.forget(slot);
            self.maps.iter_mut().for_each(|marks| marks.reset(slot));
        }
    }

    /// Marks what the call has written. Before it is applied, as that may give slots up.
    fn mark_written(&mut self) {
        let slot_of_group = &self.cache.grouping.slot_of_group;
        if !self.cache.fired_times().is_empty() {
            slot_of_group.iter().for_each(|&slot| self.marks.changed(slot));
        }
        self.written.drain(..).for_each(|group| self.marks.changed(slot_of_group[group as usize]));
    }
}

impl KeyedBackend for CachedBackend {
    fn begin(&mut self, keys: &EncodedKeys) -> Result<(), StateError> {
        self.drop_open_call();
        self.cache.begin(keys)?;
        let created = self.cache.grouping.created_slots();
        let read = self.enter(&created);
        if read.is_err() {
            self.cache.rollback();
        }
        read
    }

    fn begin_timers(&mut self, clock: Clock, now: i64, limit: usize) -> Result<usize, StateError> {
        self.drop_open_call();
        loop {
            let due = self.read_due(clock, now, limit)?;
            let count = self.cache.begin_timers(clock, due.until, limit)?;
            // What was read may have lost its timers in the cache, and others are due all the same.
            if count > 0 || !due.more {
                return Ok(count);
            }
        }
    }

    fn grouping(&self) -> &Grouping {
        self.cache.grouping()
    }

    fn keys(&self) -> Vec<&[u8]> {
        self.cache.keys()
    }

    fn fired_times(&self) -> &[i64] {
        self.cache.fired_times()
    }

    fn read_values(&mut self, state: usize, keys: &[u32]) -> Result<Cells, StateError> {
        self.cache.read_values(state, keys)
    }

    fn write_values(&mut self, state: usize, keys: &[u32], cells: Cells) -> Result<(), StateError> {
        self.written.extend_from_slice(keys);
        self.cache.write_values(state, keys, cells)
    }

    fn read_lists(&mut self, state: usize, keys: &[u32]) -> Result<Runs, StateError> {
        self.cache.read_lists(state, keys)
    }

    fn append_lists(&mut self, state: usize, keys: &[u32], runs: Runs) -> Result<(), StateError> {
        self.written.extend_from_slice(keys);
        self.cache.append_lists(state, keys, runs)
    }

    fn clear_lists(&mut self, state: usize, keys: &[u32]) -> Result<(), StateError> {
        self.written.extend_from_slice(keys);
        self.cache.clear_lists(state, keys)
    }

    fn read_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        map_keys: MapKeys<'_>,
    ) -> Result<Cells, StateError> {
        self.fetch_entries(state, keys, map_keys)?;
        self.cache.read_entries(state, keys, map_keys)
    }

    fn write_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        map_keys: MapKeys<'_>,
        cells: Cells,
    ) -> Result<(), StateError> {
        // What is there decides how many entries the map has afterwards.
        self.fetch_entries(state, keys, map_keys)?;
        self.written.extend_from_slice(keys);
        let change = |(i, &group)| MapChange { state, group, map_key: Some(map_keys.get(i).into()) };
        self.map_changes.extend(keys.iter().enumerate().map(change));
        self.cache.write_entries(state, keys, map_keys, cells)
    }

    fn scan_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        start: Option<&[u8]>,
        limit: u32,
    ) -> Result<Entries, StateError> {
        self.fetch_ranges(state, keys, start, limit)?;
        self.cache.scan_entries(state, keys, start, limit)
    }

    fn clear_maps(&mut self, state: usize, keys: &[u32]) -> Result<(), StateError> {
        self.written.extend_from_slice(keys);
        self.map_changes.extend(keys.iter().map(|&group| MapChange { state, group, map_key: None }));
        self.cache.clear_maps(state, keys)
    }

    fn set_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        self.written.extend_from_slice(keys);
        self.cache.set_timers(clock, keys, times)
    }

    fn clear_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        self.written.extend_from_slice(keys);
        self.cache.clear_timers(clock, keys, times)
    }

    fn keep_until(&mut self, time: i64, slack: i64) {
        let expiry = self.cache.timers_of(Clock::Expiry);
        let is_kept = |slot| expiry.earliest(slot).is_some_and(|found| found >= time.saturating_sub(slack));
        let groups = (0..).zip(&self.cache.grouping.slot_of_group);
        self.written.extend(groups.filter(|&(_, &slot)| !is_kept(slot)).map(|(group, _)| group));
        self.cache.keep_until(time, slack);
    }

    fn commit(&mut self) -> Result<(), StateError> {
        let maps = self.take_map_changes();
        self.mark_written();
        self.cache.commit()?;
        self.note_map_changes(maps);
        self.make_room()
    }

    fn rollback(&mut self) {
        self.written.clear();
        self.map_changes.clear();
        self.cache.rollback();
    }

    fn next_timer(&self, clock: Clock) -> Option<i64> {
        let elsewhere = self.elsewhere.next[index_of(clock)].filter(|_| self.pending_timers(clock) > 0);
        [elsewhere, self.cache.next_timer(clock)].into_iter().flatten().min()
    }

    fn pending_timers(&self, clock: Clock) -> u64 {
        self.cache.pending_timers(clock) + self.elsewhere.timers[index_of(clock)]
    }

    fn drop_timers(&mut self, clock: Clock) -> Result<u64, StateError> {
        self.drop_open_call();
        self.drop_all_timers(clock)
    }

    fn key_count(&self) -> usize {
        self.elsewhere.keys + self.cache.keys.occupied().filter(|&slot| self.is_live(slot)).count()
    }

    fn snapshot(
        &mut self,
        states: &[State],
        max: MaxParallelism,
        request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError> {
        self.drop_open_call();
        if self.elsewhere.used { self.image_part() } else { self.cache.snapshot(states, max, request) }
    }

    fn restore(&mut self, states: &[State], part: &StatePart) -> Result<(), StateError> {
        self.drop_open_call();
        self.restore_part(states, part)
    }
}

/// How small a part of the cache is evicted at once.
const EVICTED_AT_ONCE: usize = 128;

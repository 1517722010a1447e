//! Entries of maps: read as they are asked for.
//!
//! Of each key in the cache is known how many entries its maps have. When all are in the cache the store is not asked.
//! Else an entry is looked for in the cache, among those that have changed since the key was written, and then in the
//! store; one that is found there comes into the cache.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::ControlFlow,
};

use super::{CachedBackend, key_row::end_of_prefix};
use crate::{
    ByteRows, MapKeys, StateError, Table,
    map_state::MapState,
    memory_backend::{MemoryBackend, Store},
};

/// What is known of the maps of one state, by slot.
#[derive(Debug, Default)]
pub(super) struct MapMarks {
    /// How many entries there are. Empty until there is any.
    entries: Vec<u32>,
    changed: HashMap<u32, ChangedMap>,
}

/// How the store's map differs from what it is to be.
#[derive(Debug, Default)]
pub(super) struct ChangedMap {
    /// Whether what is stored no longer counts.
    pub(super) cleared: bool,
    /// The entries that differ: those that are not in the cache have gone.
    pub(super) map_keys: BTreeSet<Box<[u8]>>,
}

/// A change that the current call makes.
#[derive(Debug)]
pub(super) struct MapChange {
    pub(super) state: usize,
    pub(super) group: u32,
    /// None clears the map.
    pub(super) map_key: Option<Box<[u8]>>,
}

/// Changes that are about to be applied, by state and slot.
#[derive(Debug, Default)]
pub(super) struct PendingMaps {
    changes: Vec<SlotChange>,
    /// How many entries of a map stay that are not in the cache.
    uncached: BTreeMap<(usize, u32), u32>,
}

/// A change of a state at a slot; without a map key that of all entries.
type SlotChange = (usize, u32, Option<Box<[u8]>>);

impl MapMarks {
    pub(super) fn reset(&mut self, slot: u32) {
        self.set_entries(slot, 0);
        self.changed.remove(&slot);
    }

    /// How many entries the map of a slot has.
    pub(super) fn entries(&self, slot: u32) -> u32 {
        self.entries.get(slot as usize).copied().unwrap_or(0)
    }

    pub(super) fn set_entries(&mut self, slot: u32, entries: u32) {
        if self.entries.len() <= slot as usize {
            if entries == 0 {
                return;
            }
            self.entries.resize(slot as usize + 1, 0);
        }
        self.entries[slot as usize] = entries;
    }

    /// How the map of a slot differs from the stored one.
    pub(super) fn changes(&self, slot: u32) -> Option<&ChangedMap> {
        self.changed.get(&slot)
    }

    /// The store has what the cache has.
    pub(super) fn written(&mut self, slot: u32) {
        self.changed.remove(&slot);
    }

    fn has_changed(&self, slot: u32, map_key: &[u8]) -> bool {
        self.changed.get(&slot).is_some_and(|changed| changed.map_keys.contains(map_key))
    }

    /// Notes a change; without a map key that of all entries.
    pub(super) fn add(&mut self, slot: u32, map_key: Option<Box<[u8]>>) {
        let changed = self.changed.entry(slot).or_default();
        match map_key {
            Some(map_key) => _ = changed.map_keys.insert(map_key),
            None => *changed = ChangedMap { cleared: true, map_keys: BTreeSet::new() },
        }
    }
}

impl CachedBackend {
    /// Brings the entries of pairs (group, map key) into the cache.
    pub(super) fn fetch_entries(
        &mut self,
        state: usize,
        groups: &[u32],
        map_keys: MapKeys<'_>,
    ) -> Result<(), StateError> {
        let (mut rows, mut wanted) = (ByteRows::new(), Vec::new());
        for (i, &group) in groups.iter().enumerate() {
            let slot = self.cache.grouping.slot_of_group[group as usize];
            let map_key = map_keys.get(i);
            let map = map_of(&self.cache, state);
            if self.has_all_entries(state, slot)
                || map.stored_row(slot, map_key).is_some()
                || self.maps[state].has_changed(slot, map_key)
            {
                continue;
            }
            rows.push_with(|out| {
                self.layout.put_map_prefix(self.cache.keys.key(slot), out);
                out.extend_from_slice(map_key);
            });
            wanted.push((slot, i));
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let order = rows.order();
        let map = map_of_mut(&mut self.cache, state);
        self.store.read(Table::Map(state), &rows.picked(&order), &mut |at, row| {
            let (slot, i) = wanted[order[at] as usize];
            map.put(slot, map_keys.get(i), row);
            Ok(())
        })
    }

    /// Brings so many entries from `start` on into the cache that the first `limit` of each group are among them.
    pub(super) fn fetch_ranges(
        &mut self,
        state: usize,
        groups: &[u32],
        start: Option<&[u8]>,
        limit: u32,
    ) -> Result<(), StateError> {
        for &group in groups {
            let slot = self.cache.grouping.slot_of_group[group as usize];
            if self.has_all_entries(state, slot) {
                continue;
            }
            let wanted = limit as usize + map_of(&self.cache, state).removed_in_call(group);
            self.fetch_range(state, slot, start.unwrap_or_default(), wanted)?;
        }
        Ok(())
    }

    /// Brings up to `wanted` stored entries of a map, from `start` on, into the cache.
    fn fetch_range(
        &mut self,
        state: usize,
        slot: u32,
        start: &[u8],
        wanted: usize,
    ) -> Result<(), StateError> {
        let mut prefix = Vec::new();
        self.layout.put_map_prefix(self.cache.keys.key(slot), &mut prefix);
        let from = [&prefix[..], start].concat();
        let (marks, map) = (&self.maps[state], map_of_mut(&mut self.cache, state));
        let mut found = 0;
        self.store.scan(Table::Map(state), &from, end_of_prefix(&prefix).as_deref(), &mut |key, row| {
            let map_key = &key[prefix.len()..];
            if !marks.has_changed(slot, map_key) {
                if found == wanted {
                    return Ok(ControlFlow::Break(()));
                }
                found += 1;
                if map.stored_row(slot, map_key).is_none() {
                    map.put(slot, map_key, row);
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Takes the changes of maps out of the call, before they are applied.
    pub(super) fn take_map_changes(&mut self) -> PendingMaps {
        let mut pending = PendingMaps::default();
        for MapChange { state, group, map_key } in self.map_changes.drain(..) {
            let slot = self.cache.grouping.slot_of_group[group as usize];
            let cached = map_of(&self.cache, state).len(slot) as u32;
            let uncached = || self.maps[state].entries(slot).saturating_sub(cached);
            let left = pending.uncached.entry((state, slot)).or_insert_with(uncached);
            if map_key.is_none() {
                *left = 0;
            }
            pending.changes.push((state, slot, map_key));
        }
        pending
    }

    /// Notes how the maps differ from the stored ones, once the changes have been applied.
    pub(super) fn note_map_changes(&mut self, pending: PendingMaps) {
        for (state, slot, map_key) in pending.changes {
            if self.cache.keys.is_occupied(slot) {
                self.maps[state].add(slot, map_key);
            }
        }
        for ((state, slot), uncached) in pending.uncached {
            let cached = map_of(&self.cache, state).len(slot) as u32;
            self.maps[state].set_entries(slot, uncached + cached);
        }
    }

    /// Stages what has changed in the maps of some slots.
    pub(super) fn stage_maps(&mut self, slots: &[u32]) {
        let mut key = Vec::new();
        for (state, marks) in self.maps.iter().enumerate() {
            for &slot in slots {
                let Some(changes) = marks.changes(slot) else { continue };
                key.clear();
                self.layout.put_map_prefix(self.cache.keys.key(slot), &mut key);
                let prefix = key.len();
                let end = end_of_prefix(&key).filter(|_| changes.cleared && self.cache.kept.get(slot));
                if let Some(end) = end {
                    self.store.delete_range(Table::Map(state), &key, &end);
                }
                for map_key in &changes.map_keys {
                    key.truncate(prefix);
                    key.extend_from_slice(map_key);
                    match map_of(&self.cache, state).stored_row(slot, map_key) {
                        Some(row) => self.store.put(Table::Map(state), &key, row),
                        None => self.store.delete(Table::Map(state), &key),
                    }
                }
            }
        }
    }

    fn has_all_entries(&self, state: usize, slot: u32) -> bool {
        map_of(&self.cache, state).len(slot) == self.maps[state].entries(slot) as usize
    }
}

pub(super) fn map_of(cache: &MemoryBackend, state: usize) -> &MapState {
    let Store::Map(map) = &cache.states[state] else { unreachable!("the kind was checked") };
    map
}

pub(super) fn map_of_mut(cache: &mut MemoryBackend, state: usize) -> &mut MapState {
    let Store::Map(map) = &mut cache.states[state] else { unreachable!("the kind was checked") };
    map
}

//! A list a key.

use super::{Handle, all_keys, batch_of, rows_of, spec_of};
use crate::column::check_runs;
use crate::host::{ListHandle, Runs};
use crate::manifest::{StateKind, StateSpec};
use crate::row::State;

/// Keyed state of a list. Appending reads nothing; the first look reads the lists of all of the call's keys.
///
/// All methods are about the current key.
pub struct ListState<T: State> {
    name: String,
    host: ListHandle,
    slots: Vec<Slot<T>>,
    loaded: bool,
    changed: Vec<u32>,
    keys: usize,
    current: usize,
}

/// What is known of one key's list: `items` are the stored ones, once loaded, and those appended by the call.
struct Slot<T> {
    items: Vec<T>,
    /// How many of `items` the host has.
    stored: usize,
    /// Whether the host's list has to go.
    cleared: bool,
    changed: bool,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { items: Vec::new(), stored: 0, cleared: false, changed: false }
    }
}

impl<T: State> ListState<T> {
    /// The items, in the order in which they were added.
    pub fn get(&mut self) -> &[T] {
        self.ensure_loaded();
        &self.slots[self.current].items
    }

    /// Appends an item.
    pub fn add(&mut self, item: T) {
        self.changing().items.push(item);
    }

    /// Appends items.
    pub fn add_all(&mut self, items: impl IntoIterator<Item = T>) {
        self.changing().items.extend(items);
    }

    /// Puts these items in the place of the list.
    pub fn set(&mut self, items: Vec<T>) {
        let slot = self.changing();
        *slot = Slot { items, stored: 0, cleared: true, changed: true };
    }

    /// Takes the list out: it is empty afterwards.
    pub fn take(&mut self) -> Vec<T> {
        self.ensure_loaded();
        let slot = self.changing();
        slot.cleared = true;
        slot.stored = 0;
        std::mem::take(&mut slot.items)
    }

    /// Keeps the items for which `keep` says so.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.ensure_loaded();
        let before = self.slots[self.current].items.len();
        self.slots[self.current].items.retain(keep);
        if self.slots[self.current].items.len() != before {
            let slot = self.changing();
            slot.cleared = true;
            slot.stored = 0;
        }
    }

    /// Empties the list.
    pub fn clear(&mut self) {
        self.set(Vec::new());
    }

    fn changing(&mut self) -> &mut Slot<T> {
        self.ensure_slots();
        let slot = &mut self.slots[self.current];
        if !slot.changed {
            slot.changed = true;
            self.changed.push(self.current as u32);
        }
        slot
    }

    fn ensure_slots(&mut self) {
        if self.slots.is_empty() {
            self.slots.resize_with(self.keys, Slot::default);
        }
    }

    fn ensure_loaded(&mut self) {
        if !self.loaded {
            self.load();
        }
    }

    #[cold]
    fn load(&mut self) {
        self.ensure_slots();
        let runs = self.host.read(&all_keys(self.keys));
        if let Err(mismatch) = check_runs(&runs.offsets, self.keys, runs.items.rows) {
            panic!("state `{}`: {mismatch}", self.name);
        }
        let mut items = rows_of::<T>(&runs.items, &self.name).into_iter();
        for (slot, run) in self.slots.iter_mut().zip(runs.offsets.windows(2)) {
            let stored = items.by_ref().take((run[1] - run[0]) as usize);
            match slot.cleared {
                true => stored.for_each(drop),
                false => {
                    let appended = std::mem::replace(&mut slot.items, stored.collect());
                    slot.stored = slot.items.len();
                    slot.items.extend(appended);
                }
            }
        }
        self.loaded = true;
    }
}

impl<T: State> Handle for ListState<T> {
    fn spec(name: &str) -> StateSpec {
        spec_of::<T>(name, StateKind::List)
    }

    fn open(name: &str) -> Result<Self, String> {
        let host = ListHandle::open(name)?;
        let name = name.to_owned();
        Ok(Self { name, host, slots: Vec::new(), loaded: false, changed: Vec::new(), keys: 0, current: 0 })
    }

    fn begin(&mut self, keys: usize) {
        self.slots.clear();
        self.changed.clear();
        self.loaded = false;
        self.keys = keys;
    }

    #[inline(always)]
    fn select(&mut self, key: usize) {
        self.current = key;
    }

    fn flush(&mut self) {
        let cleared: Vec<u32> =
            self.changed.iter().copied().filter(|&key| self.slots[key as usize].cleared).collect();
        if !cleared.is_empty() {
            self.host.clear(&cleared);
        }
        let (mut keys, mut offsets, mut items) = (Vec::new(), vec![0], Vec::new());
        for &key in &self.changed {
            let slot = &mut self.slots[key as usize];
            if slot.items.len() > slot.stored {
                items.extend(slot.items.drain(slot.stored..));
                keys.push(key);
                offsets.push(items.len() as u32);
            }
        }
        if !keys.is_empty() {
            self.host.append(&keys, Runs { offsets, items: batch_of(items.into_iter()) });
        }
        self.begin(self.keys);
    }
}

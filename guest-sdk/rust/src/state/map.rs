//! A map a key.
//!
//! Which entries a row will look at is not known before its code runs, so the cache is filled by scans: the
//! first look reads the first entries of the maps of all of the call's keys. A map that is longer than that is
//! known up to the last entry read; behind it, a look asks the host, once an entry and call.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::marker::PhantomData;

use super::{Handle, all_keys, rows_of, spec_of};
use crate::bits::{BitBuilder, is_set};
use crate::column::{Batch, VarValues, check_runs};
use crate::host::{Cells, Entries, MapHandle};
use crate::manifest::{StateKind, StateSpec};
use crate::row::State;

use super::map_key::MapKey;

/// Entries of a map that the first look reads.
const FIRST: u32 = 256;

/// Keyed state of a map, in the order of its keys. Maps of up to 256 entries cost one call of the host for a
/// whole batch; each look behind that in a longer one costs a call.
///
/// All methods are about the current key.
pub struct MapState<K: MapKey, V: State> {
    name: String,
    host: MapHandle,
    slots: Vec<Slot<V>>,
    loaded: bool,
    changed: Vec<u32>,
    keys: usize,
    current: usize,
    types: PhantomData<fn() -> K>,
}

struct Slot<V> {
    entries: BTreeMap<Vec<u8>, Cached<V>>,
    /// What of the host's map is in `entries`.
    known: Known,
    cleared: bool,
    changed: bool,
}

struct Cached<V> {
    value: Option<V>,
    written: bool,
}

enum Known {
    Nothing,
    UpTo(Vec<u8>),
    All,
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), known: Known::Nothing, cleared: false, changed: false }
    }
}

impl<V> Slot<V> {
    fn knows(&self, map_key: &[u8]) -> bool {
        self.entries.contains_key(map_key)
            || match &self.known {
                Known::Nothing => false,
                Known::UpTo(last) => map_key <= last.as_slice(),
                Known::All => true,
            }
    }

    fn learn(&mut self, map_key: Vec<u8>, value: Option<V>) {
        if let Entry::Vacant(vacant) = self.entries.entry(map_key) {
            vacant.insert(Cached { value, written: false });
        }
    }
}

impl<K: MapKey, V: State> MapState<K, V> {
    /// The value of an entry.
    pub fn get(&mut self, map_key: &K) -> Option<&V> {
        let bytes = map_key.to_bytes();
        self.ensure_known(&bytes);
        self.slots[self.current].entries.get(&bytes).and_then(|cached| cached.value.as_ref())
    }

    /// Whether there is an entry.
    pub fn contains(&mut self, map_key: &K) -> bool {
        self.get(map_key).is_some()
    }

    /// Sets an entry.
    pub fn insert(&mut self, map_key: &K, value: V) {
        self.write(map_key.to_bytes(), Some(value));
    }

    /// Removes an entry.
    pub fn remove(&mut self, map_key: &K) {
        self.write(map_key.to_bytes(), None);
    }

    /// All entries, in the order of their keys. Reads the whole map.
    pub fn entries(&mut self) -> impl Iterator<Item = (K, &V)> {
        self.know_all();
        let name = &self.name;
        self.slots[self.current].entries.iter().filter_map(move |(map_key, cached)| {
            let value = cached.value.as_ref()?;
            match K::from_bytes(map_key) {
                Some(map_key) => Some((map_key, value)),
                None => panic!("state `{name}`: the map key {map_key:?} is of another type"),
            }
        })
    }

    /// Empties the map.
    pub fn clear(&mut self) {
        let slot = self.changing();
        slot.entries.clear();
        slot.known = Known::All;
        slot.cleared = true;
    }

    fn write(&mut self, map_key: Vec<u8>, value: Option<V>) {
        self.changing().entries.insert(map_key, Cached { value, written: true });
    }

    fn changing(&mut self) -> &mut Slot<V> {
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

    fn ensure_known(&mut self, map_key: &[u8]) {
        self.ensure_slots();
        if !self.loaded && !self.slots[self.current].knows(map_key) {
            self.load();
        }
        if !self.slots[self.current].knows(map_key) {
            self.ask(map_key);
        }
    }

    /// Reads the first entries of every key of the call.
    #[cold]
    fn load(&mut self) {
        let keys = all_keys(self.keys);
        self.scan(&keys, None, FIRST);
        self.loaded = true;
    }

    /// Reads one entry of the current key.
    #[cold]
    fn ask(&mut self, map_key: &[u8]) {
        let mut pair = VarValues::default();
        pair.push(map_key);
        let cells = self.host.read(&[self.current as u32], pair);
        let value = rows_of::<V>(&cells.values, &self.name).pop().filter(|_| is_set(&cells.present, 0));
        self.slots[self.current].learn(map_key.to_vec(), value);
    }

    fn know_all(&mut self) {
        self.ensure_slots();
        if !self.loaded {
            self.load();
        }
        if let Known::UpTo(last) = &self.slots[self.current].known {
            // The smallest key behind the last one known.
            let start = [last.as_slice(), &[0]].concat();
            self.scan(&[self.current as u32], Some(&start), u32::MAX);
        }
    }

    fn scan(&mut self, keys: &[u32], start: Option<&[u8]>, limit: u32) {
        let Entries { offsets, map_keys, values } = self.host.scan(keys, start, limit);
        if let Err(mismatch) =
            check_runs(&offsets, keys.len(), values.rows).and_then(|()| map_keys.check(values.rows))
        {
            panic!("state `{}`: {mismatch}", self.name);
        }
        let mut values = rows_of::<V>(&values, &self.name).into_iter();
        for (&key, run) in keys.iter().zip(offsets.windows(2)) {
            let slot = &mut self.slots[key as usize];
            let entries = run[0] as usize..run[1] as usize;
            let last = entries.clone().last().map(|last| map_keys.row(last).to_vec());
            let read = values.by_ref().take(entries.len()).zip(entries.clone());
            if slot.cleared {
                read.for_each(drop);
                continue;
            }
            read.for_each(|(value, at)| slot.learn(map_keys.row(at).to_vec(), Some(value)));
            slot.known = match last {
                Some(last) if entries.len() as u32 == limit => Known::UpTo(last),
                _ => Known::All,
            };
        }
    }
}

impl<K: MapKey, V: State> Handle for MapState<K, V> {
    fn spec(name: &str) -> StateSpec {
        spec_of::<V>(name, StateKind::Map)
    }

    fn open(name: &str) -> Result<Self, String> {
        let (host, name) = (MapHandle::open(name)?, name.to_owned());
        let (slots, changed) = (Vec::new(), Vec::new());
        Ok(Self { name, host, slots, loaded: false, changed, keys: 0, current: 0, types: PhantomData })
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
        let mut writes = Writes::<V>::default();
        for &key in &self.changed {
            let entries = std::mem::take(&mut self.slots[key as usize].entries);
            let written = entries.into_iter().filter(|(_, cached)| cached.written);
            written.for_each(|(map_key, cached)| writes.add(key, &map_key, cached.value));
        }
        if !writes.keys.is_empty() {
            writes.send(&self.host);
        }
        self.begin(self.keys);
    }
}

/// Entries to be written in one call.
struct Writes<V> {
    keys: Vec<u32>,
    map_keys: VarValues,
    values: Vec<Option<V>>,
}

impl<V> Default for Writes<V> {
    fn default() -> Self {
        Self { keys: Vec::new(), map_keys: VarValues::default(), values: Vec::new() }
    }
}

impl<V: State> Writes<V> {
    fn add(&mut self, key: u32, map_key: &[u8], value: Option<V>) {
        self.keys.push(key);
        self.map_keys.push(map_key);
        self.values.push(value);
    }

    fn send(self, host: &MapHandle) {
        let rows = self.values.len();
        let (mut present, mut builder) = (BitBuilder::with_capacity(rows), V::builder(rows));
        for value in self.values {
            present.push(value.is_some());
            match value {
                Some(value) => value.append_to(&mut builder),
                None => V::push_absent(&mut builder),
            }
        }
        let values = Batch { rows, columns: V::finish(builder) };
        host.write(&self.keys, self.map_keys, Cells { present: present.finish(), values });
    }
}

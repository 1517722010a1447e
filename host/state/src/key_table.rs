//! Keys to slots: the one probe that all states and timers of an operator share.
//!
//! A slot is a small dense number. Whatever is kept for a key lies at its slot in arrays, so that reading or
//! writing a state for the keys of a batch is a gather or a scatter. Two arrays make the table:
//!
//! - the directory, open addressing with linear probing: eight bytes an entry, the upper half of the key's hash (its
//!   tag) and the slot. The tag's top bits are the entry's home, so that growing is a walk from front to back;
//! - the records by slot: the key itself, up to [`INLINE`] bytes in place, and the mark of the call that touched it
//!   last with the group that it has there. So the distinct keys of a call need no other table.
//!
//! Invariants: a directory entry's slot has a record with the entry's tag; the directory is at most half full;
//! between an entry and its home no entry is empty (removal moves entries back, there are no tombstones).

use millstream_types::EncodedKeys;

use crate::{Grouping, prefetch::prefetch};

/// A set of keys, each with a slot.
#[derive(Clone, Debug)]
pub struct KeyTable {
    directory: Vec<Entry>,
    /// Moves a tag's top bits down to a position in the directory.
    shift: u32,
    records: Vec<Record>,
    free: Vec<u32>,
    long_keys: LongKeys,
    call: u32,
}

impl Default for KeyTable {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyTable {
    /// A table without keys.
    pub fn new() -> Self {
        let directory = vec![Entry::EMPTY; SMALLEST];
        let shift = u32::BITS - SMALLEST.trailing_zeros();
        Self {
            directory,
            shift,
            records: Vec::new(),
            free: Vec::new(),
            long_keys: LongKeys::default(),
            call: 0,
        }
    }

    /// How many keys it holds.
    pub fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Whether it holds no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every slot is below this: the length that arrays by slot need.
    pub fn slots(&self) -> usize {
        self.records.len()
    }

    /// Whether every slot holds a key, so that arrays by slot have no gaps.
    pub fn is_dense(&self) -> bool {
        self.free.is_empty()
    }

    /// Whether a slot holds a key.
    pub fn is_occupied(&self, slot: u32) -> bool {
        self.records.get(slot as usize).is_some_and(|r| r.length != VACANT)
    }

    /// The slots that hold keys, ascending.
    pub fn occupied(&self) -> impl Iterator<Item = u32> {
        self.records.iter().enumerate().filter(|(_, r)| r.length != VACANT).map(|(slot, _)| slot as u32)
    }

    /// The key of an occupied slot.
    pub fn key(&self, slot: u32) -> &[u8] {
        let record = &self.records[slot as usize];
        match record.length as usize {
            length @ 0..=INLINE => &record.key[..length],
            _ => self.long_keys.read(record),
        }
    }

    /// The hash by which the table knows the key of an occupied slot: its upper half is the key's, the lower is zero.
    pub fn table_hash(&self, slot: u32) -> u64 {
        u64::from(self.records[slot as usize].tag) << u32::BITS
    }

    /// Finds or makes the slot of each key, and groups rows of the same key. `grouping` has been started for as many
    /// rows as there are keys.
    pub fn resolve(&mut self, keys: &EncodedKeys, grouping: &mut Grouping) {
        self.resolve_each(keys, keys.len(), |i| i, grouping);
    }

    /// [`KeyTable::resolve`] for some of the rows. New groups are added behind those that `grouping` has.
    pub fn resolve_rows(&mut self, keys: &EncodedKeys, rows: &[u32], grouping: &mut Grouping) {
        self.resolve_each(keys, rows.len(), |i| rows[i] as usize, grouping);
    }

    fn resolve_each(
        &mut self,
        keys: &EncodedKeys,
        count: usize,
        row_at: impl Fn(usize) -> usize,
        grouping: &mut Grouping,
    ) {
        self.start_call();
        let mut candidates = [EMPTY_SLOT; STRIDE];
        let mut start = 0;
        while start < count {
            let end = (start + STRIDE).min(count);
            self.reserve(STRIDE);
            for i in start..end {
                prefetch(&self.directory, self.home(tag_of(keys.hash(row_at(i)))));
            }
            for (candidate, i) in candidates.iter_mut().zip(start..end) {
                *candidate = self.candidate(tag_of(keys.hash(row_at(i))));
                prefetch(&self.records, *candidate as usize);
            }
            for (&candidate, i) in candidates.iter().zip(start..end) {
                let row = row_at(i);
                self.resolve_one(keys.key(row), tag_of(keys.hash(row)), candidate, row, grouping);
            }
            start = end;
        }
    }

    /// Gives a row its group. `candidate` is a slot of the key's tag, or none if there was none.
    #[inline]
    fn resolve_one(&mut self, key: &[u8], tag: u32, candidate: u32, row: usize, grouping: &mut Grouping) {
        let probe = Probe::new(key, tag);
        let known = candidate != EMPTY_SLOT && self.holds(candidate, &probe);
        let (slot, new) = if known { (candidate, false) } else { self.find_or_insert(&probe) };
        let record = &mut self.records[slot as usize];
        if record.call != self.call {
            record.call = self.call;
            record.group = grouping.slot_of_group.len() as u32;
            if new {
                grouping.created.push(record.group);
            }
            grouping.slot_of_group.push(slot);
            grouping.first_row_of_group.push(row as u32);
        }
        grouping.group_of_row[row] = record.group;
    }

    /// The slot of a key, if it is there. `hash` is the key's, or at least its upper half.
    pub fn find(&self, key: &[u8], hash: u64) -> Option<u32> {
        self.probe(&Probe::new(key, tag_of(hash))).ok()
    }

    /// The slot of a key, new if the second value says so.
    pub fn insert(&mut self, key: &[u8], hash: u64) -> (u32, bool) {
        self.reserve(1);
        self.find_or_insert(&Probe::new(key, tag_of(hash)))
    }

    /// Removes the key of an occupied slot; the slot is given to the next new key.
    pub fn remove(&mut self, slot: u32) {
        let tag = self.records[slot as usize].tag;
        let mut hole = self.home(tag);
        while self.directory[hole].slot() != slot {
            hole = self.next(hole);
        }
        self.close_gap(hole);
        let record = &mut self.records[slot as usize];
        if record.length as usize > INLINE {
            self.long_keys.remove(record);
        }
        *record = Record::FREE;
        self.free.push(slot);
    }

    /// Moves the entries behind a removed one back, so that no probe ends early.
    fn close_gap(&mut self, mut hole: usize) {
        let mask = self.directory.len() - 1;
        let mut at = hole;
        loop {
            at = self.next(at);
            let entry = self.directory[at];
            if entry == Entry::EMPTY {
                break;
            }
            let from_home = at.wrapping_sub(self.home(entry.tag())) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.directory[hole] = entry;
                hole = at;
            }
        }
        self.directory[hole] = Entry::EMPTY;
    }

    fn start_call(&mut self) {
        self.call = self.call.wrapping_add(1);
        if self.call == 0 {
            self.records.iter_mut().for_each(|r| r.call = 0);
            self.call = 1;
        }
    }

    /// The first slot with this tag on its way, which all but once in thousands is the key's.
    #[inline]
    fn candidate(&self, tag: u32) -> u32 {
        let mut at = self.home(tag);
        loop {
            let entry = self.directory[at];
            if entry.tag() == tag || entry == Entry::EMPTY {
                return entry.slot();
            }
            at = self.next(at);
        }
    }

    /// The slot of a key, or the free position in the directory where it belongs.
    fn probe(&self, probe: &Probe<'_>) -> Result<u32, usize> {
        let mut at = self.home(probe.tag);
        loop {
            let entry = self.directory[at];
            if entry == Entry::EMPTY {
                return Err(at);
            }
            if entry.tag() == probe.tag && self.holds(entry.slot(), probe) {
                return Ok(entry.slot());
            }
            at = self.next(at);
        }
    }

    #[inline]
    fn holds(&self, slot: u32, probe: &Probe<'_>) -> bool {
        let record = &self.records[slot as usize];
        if record.length as usize != probe.key.len() {
            return false;
        }
        if probe.key.len() <= INLINE {
            u128::from_le_bytes(record.key) == probe.padded
        } else {
            self.long_keys.read(record) == probe.key
        }
    }

    #[cold]
    #[inline(never)]
    fn find_or_insert(&mut self, probe: &Probe<'_>) -> (u32, bool) {
        let at = match self.probe(probe) {
            Ok(slot) => return (slot, false),
            Err(at) => at,
        };
        let mut record = Record { length: probe.key.len() as u32, tag: probe.tag, ..Record::FREE };
        if probe.key.len() <= INLINE {
            record.key = probe.padded.to_le_bytes();
        } else {
            self.long_keys.insert(&mut record, probe.key);
        }
        let slot = self.place(record);
        self.directory[at] = Entry::new(probe.tag, slot);
        (slot, true)
    }

    fn place(&mut self, record: Record) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.records[slot as usize] = record;
            return slot;
        }
        let slot = u32::try_from(self.records.len()).ok().filter(|&s| s != EMPTY_SLOT);
        self.records.push(record);
        slot.expect("a table of four billion keys does not fit into memory")
    }

    /// Makes room in the directory for `more` keys.
    fn reserve(&mut self, more: usize) {
        let wanted = (self.len() + more) * 2;
        if wanted <= self.directory.len() {
            return;
        }
        let grown = vec![Entry::EMPTY; wanted.next_power_of_two()];
        let entries = std::mem::replace(&mut self.directory, grown);
        self.shift = u32::BITS - self.directory.len().trailing_zeros();
        for entry in entries.into_iter().filter(|&e| e != Entry::EMPTY) {
            let mut at = self.home(entry.tag());
            while self.directory[at] != Entry::EMPTY {
                at = self.next(at);
            }
            self.directory[at] = entry;
        }
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        (tag >> self.shift) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.directory.len() - 1)
    }
}

/// A directory entry: tag and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    const EMPTY: Entry = Entry(u64::MAX);

    fn new(tag: u32, slot: u32) -> Self {
        Self(u64::from(tag) << u32::BITS | u64::from(slot))
    }

    fn tag(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }

    fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// A key at its slot: half a cache line.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Record {
    /// The key padded with zeros, or in the first four bytes where a long one is.
    key: [u8; INLINE],
    length: u32,
    tag: u32,
    call: u32,
    group: u32,
}

impl Record {
    const FREE: Record = Record { key: [0; INLINE], length: VACANT, tag: 0, call: 0, group: 0 };
}

/// A key that is looked for.
struct Probe<'a> {
    key: &'a [u8],
    tag: u32,
    /// A short key as a number, padded with zeros behind.
    padded: u128,
}

impl<'a> Probe<'a> {
    #[inline]
    fn new(key: &'a [u8], tag: u32) -> Self {
        Self { key, tag, padded: pad(key) }
    }
}

/// A key of up to [`INLINE`] bytes as a little-endian number. Two loads that overlap cover any length from 8 to 16,
/// where a copy of unknown length would be a call.
#[inline]
fn pad(key: &[u8]) -> u128 {
    if let (Some(front), Some(back)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        let shift = 8 * (key.len() - 8).min(8);
        return u128::from(u64::from_le_bytes(*front)) | u128::from(u64::from_le_bytes(*back)) << shift;
    }
    if let (Some(front), Some(back)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let back = u64::from(u32::from_le_bytes(*back)) << (8 * (key.len() - 4));
        return u128::from(u64::from(u32::from_le_bytes(*front)) | back);
    }
    key.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

#[inline]
fn tag_of(hash: u64) -> u32 {
    (hash >> u32::BITS) as u32
}

/// Keys that do not fit into a record.
#[derive(Clone, Debug, Default)]
struct LongKeys {
    keys: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

impl LongKeys {
    fn insert(&mut self, record: &mut Record, key: &[u8]) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.keys.push(Box::default());
            self.keys.len() as u32 - 1
        });
        self.keys[index as usize] = key.into();
        record.key[..4].copy_from_slice(&index.to_le_bytes());
    }

    fn read(&self, record: &Record) -> &[u8] {
        &self.keys[Self::index(record) as usize]
    }

    fn remove(&mut self, record: &Record) {
        let index = Self::index(record);
        self.keys[index as usize] = Box::default();
        self.free.push(index);
    }

    fn index(record: &Record) -> u32 {
        let [a, b, c, d, ..] = record.key;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Longest key that lies in its record.
const INLINE: usize = 16;
/// Length of a record without a key.
const VACANT: u32 = u32::MAX;
/// The slot of an empty directory entry.
const EMPTY_SLOT: u32 = u32::MAX;
/// Directory entries of an empty table.
const SMALLEST: usize = 16;
/// Rows whose memory is asked for at once.
const STRIDE: usize = 32;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use millstream_types::hash_key;
    use proptest::prelude::*;

    use super::*;

    fn encoded<K: AsRef<[u8]>>(keys: &[K]) -> EncodedKeys {
        let mut all = EncodedKeys::new();
        keys.iter().for_each(|k| all.push(k.as_ref(), hash_key(k.as_ref())));
        all
    }

    fn resolve(table: &mut KeyTable, keys: &EncodedKeys) -> Grouping {
        let mut grouping = Grouping::default();
        grouping.start(keys.len());
        table.resolve(keys, &mut grouping);
        grouping
    }

    #[test]
    fn rows_of_a_key_are_one_group_in_order_of_first_appearance() {
        let mut table = KeyTable::new();
        let first = resolve(&mut table, &encoded(&["b", "a", "b", "c"]));
        assert_eq!(first.group_of_row, [0, 1, 0, 2]);
        assert_eq!(first.first_row_of_group, [0, 1, 3]);
        assert_eq!(first.created, [0, 1, 2]);
        let second = resolve(&mut table, &encoded(&["c", "d", "b"]));
        assert_eq!(second.slot_of_group, [2, 3, 0]);
        assert_eq!(second.created, [1]);
    }

    #[test]
    fn groups_of_several_tables_follow_one_another() {
        let keys = encoded(&["a", "b", "a", "b"]);
        let (mut one, mut two) = (KeyTable::new(), KeyTable::new());
        let mut grouping = Grouping::default();
        grouping.start(keys.len());
        one.resolve_rows(&keys, &[0, 1], &mut grouping);
        two.resolve_rows(&keys, &[3], &mut grouping);
        assert_eq!(grouping.group_of_row, [0, 1, Grouping::NONE, 2]);
        assert_eq!(grouping.slot_of_group, [0, 1, 0]);
        assert_eq!(grouping.first_row_of_group, [0, 1, 3]);
    }

    #[test]
    fn keys_of_every_length_are_told_apart_and_read_back() {
        let lengths = (0..64).chain([1000, 65_536]);
        let keys: Vec<Vec<u8>> = lengths.flat_map(|n| [vec![0; n], vec![7; n]]).skip(1).collect();
        let mut table = KeyTable::new();
        let grouping = resolve(&mut table, &encoded(&keys));
        assert_eq!(table.len(), keys.len());
        for (key, &slot) in keys.iter().zip(&grouping.slot_of_group) {
            assert_eq!(table.key(slot), key);
        }
    }

    #[test]
    fn keys_with_the_same_tag_do_not_meet() {
        let mut table = KeyTable::new();
        let mut keys = EncodedKeys::new();
        (0..1000u32).for_each(|i| keys.push(&i.to_be_bytes(), u64::from(i % 3)));
        let grouping = resolve(&mut table, &keys);
        assert_eq!(grouping.groups(), 1000);
        let again = resolve(&mut table, &keys);
        assert_eq!(again.slot_of_group, grouping.slot_of_group);
        assert!(again.created.is_empty());
    }

    #[test]
    fn the_mark_of_a_call_survives_its_overflow() {
        let mut table = KeyTable::new();
        let keys = encoded(&["a", "b"]);
        resolve(&mut table, &keys);
        table.call = u32::MAX;
        let after = resolve(&mut table, &keys);
        assert_eq!(after.group_of_row, [0, 1]);
    }

    #[test]
    fn removed_keys_leave_no_memory_behind() {
        let mut table = KeyTable::new();
        for round in 0..200u32 {
            let keys: Vec<String> =
                (0..100).map(|i| format!("a key that is a long one {round} {i}")).collect();
            let grouping = resolve(&mut table, &encoded(&keys));
            grouping.slot_of_group.iter().for_each(|&s| table.remove(s));
        }
        assert!(table.is_empty());
        assert_eq!((table.slots(), table.long_keys.keys.len(), table.directory.len()), (100, 100, 256));
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(calls in prop::collection::vec(
            (prop::collection::vec(0u16..300, 0..80), prop::collection::vec(0u16..300, 0..40)), 1..20,
        )) {
            // Few hash values, so that probes run into each other and around the end of the directory.
            let hash = |key: u16| u64::from(key % 7).wrapping_mul(0x2555_5555_5555_5555);
            let bytes = |key: u16| vec![key as u8; usize::from(key % 24) + 2 + usize::from(key >> 8)];
            let mut table = KeyTable::new();
            let mut model: HashMap<Vec<u8>, u32> = HashMap::new();
            for (touched, removed) in calls {
                let mut keys = EncodedKeys::new();
                touched.iter().for_each(|&k| keys.push(&bytes(k), hash(k)));
                let grouping = resolve(&mut table, &keys);
                for (row, &key) in touched.iter().enumerate() {
                    let slot = grouping.slot_of_group[grouping.group_of_row[row] as usize];
                    prop_assert_eq!(*model.entry(bytes(key)).or_insert(slot), slot);
                    prop_assert_eq!(table.key(slot), &bytes(key)[..]);
                }
                for key in removed {
                    let found = table.find(&bytes(key), hash(key));
                    prop_assert_eq!(found, model.remove(&bytes(key)));
                    found.into_iter().for_each(|slot| table.remove(slot));
                }
                prop_assert_eq!(table.len(), model.len());
                prop_assert_eq!(table.occupied().count(), model.len());
            }
        }
    }
}

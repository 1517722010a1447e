//! Keys to slots: the one probe that all states and timers of an operator share.
//!
//! A slot is a small dense number. Whatever is kept for a key lies at its slot in arrays, so that reading or
//! writing a state for the keys of a batch is a gather or a scatter. Two arrays make the table:
//!
//! - the [`Directory`] from the upper half of a key's hash, its tag, to slots;
//! - the records by slot: the key itself, short ones in place, and the mark of the call that touched it last with the
//!   group that it has there. So the distinct keys of a call need no other table.
//!
//! Invariant: a directory entry's slot has a record with the entry's tag.

mod directory;
mod record;
mod sought;
#[cfg(test)]
mod tests;

use millstream_types::EncodedKeys;
use smallvec::SmallVec;

use self::{
    directory::{Directory, EMPTY_SLOT},
    record::{LongKeys, Probe, Record},
    sought::{OfRows, OfSlots, Sought, tag_of},
};
use crate::{Grouping, prefetch::prefetch};

/// A set of keys, each with a slot.
#[derive(Clone, Debug)]
pub struct KeyTable {
    directory: Directory,
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
        Self {
            directory: Directory::new(),
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
        self.records.get(slot as usize).is_some_and(Record::is_occupied)
    }

    /// The slots that hold keys, ascending.
    pub fn occupied(&self) -> impl Iterator<Item = u32> {
        self.records.iter().enumerate().filter(|(_, r)| r.is_occupied()).map(|(slot, _)| slot as u32)
    }

    /// Asks for the memory of some slots' keys, which are about to be looked at.
    pub(crate) fn prefetch(&self, slots: &[u32]) {
        slots.iter().for_each(|&slot| prefetch(&self.records, slot as usize));
    }

    /// The key of an occupied slot.
    pub fn key(&self, slot: u32) -> &[u8] {
        self.records[slot as usize].key(&self.long_keys)
    }

    /// The hash by which the table knows the key of an occupied slot: its upper half is the key's, the lower is zero.
    pub fn table_hash(&self, slot: u32) -> u64 {
        u64::from(self.records[slot as usize].tag) << u32::BITS
    }

    /// Finds or makes the slot of each key, and groups rows of the same key. `grouping` has been started for as many
    /// rows as there are keys.
    pub fn resolve(&mut self, keys: &EncodedKeys, grouping: &mut Grouping) {
        self.resolve_each(keys, grouping);
    }

    /// [`KeyTable::resolve`] for some of the rows. New groups are added behind those that `grouping` has.
    pub fn resolve_rows(&mut self, keys: &EncodedKeys, rows: &[u32], grouping: &mut Grouping) {
        self.resolve_each(&OfRows(keys, rows), grouping);
    }

    /// [`KeyTable::resolve`] for the keys at some slots of another table, each of which is a row.
    pub(crate) fn resolve_slots(&mut self, keys: &KeyTable, slots: &[u32], grouping: &mut Grouping) {
        self.resolve_each(&OfSlots(keys, slots), grouping);
    }

    /// Goes over the rows in strides: asks for the lines of the directory a stride ahead, finds the slots that the keys
    /// most likely have and asks for their records, and then looks at these.
    fn resolve_each(&mut self, keys: &impl Sought, grouping: &mut Grouping) {
        self.start_call();
        let count = keys.len();
        let mut groups = grouping.groups();
        grouping.slot_of_group.resize(groups + count, 0);
        grouping.first_row_of_group.resize(groups + count, 0);
        let mut candidates = [EMPTY_SLOT; STRIDE];
        (0..STRIDE.min(count)).for_each(|i| self.directory.prefetch(keys.tag(i)));
        for start in (0..count).step_by(STRIDE) {
            let end = (start + STRIDE).min(count);
            self.directory.reserve(self.len() + STRIDE);
            (end..(end + STRIDE).min(count)).for_each(|i| self.directory.prefetch(keys.tag(i)));
            for (candidate, i) in candidates.iter_mut().zip(start..end) {
                *candidate = self.directory.candidate(keys.tag(i));
                prefetch(&self.records, *candidate as usize);
            }
            for (&candidate, i) in candidates.iter().zip(start..end) {
                let (slot, new) = self.find_near(candidate, &keys.probe(i));
                if new {
                    grouping.created.push(groups as u32);
                }
                // Without a branch: whether a key is new to the call cannot be foreseen.
                let record = &mut self.records[slot as usize];
                let known = record.call == self.call;
                let group = if known { record.group } else { groups as u32 };
                (record.call, record.group) = (self.call, group);
                grouping.slot_of_group[groups] = slot;
                grouping.first_row_of_group[groups] = keys.row(i);
                grouping.group_of_row[keys.row(i) as usize] = group;
                groups += usize::from(!known);
            }
        }
        grouping.slot_of_group.truncate(groups);
        grouping.first_row_of_group.truncate(groups);
    }

    /// The slot of a key, if it is there. `hash` is the key's, or at least its upper half.
    pub fn find(&self, key: &[u8], hash: u64) -> Option<u32> {
        let probe = Probe::new(key, tag_of(hash));
        self.directory.find(probe.tag, |slot| self.holds(slot, &probe)).ok()
    }

    /// The slot of a key, new if the second value says so.
    pub fn insert(&mut self, key: &[u8], hash: u64) -> (u32, bool) {
        self.directory.reserve(self.len() + 1);
        self.find_or_insert(&Probe::new(key, tag_of(hash)))
    }

    /// Removes the key of an occupied slot; the slot is given to the next new key.
    pub fn remove(&mut self, slot: u32) {
        let record = &mut self.records[slot as usize];
        self.directory.remove(record.tag, slot);
        record.free(&mut self.long_keys);
        self.free.push(slot);
    }

    /// Removes the keys of those of some slots that hold one and of which `is_dead` is true.
    pub fn remove_where(&mut self, slots: &[u32], is_dead: impl Fn(u32) -> bool) {
        self.remove_each(slots, is_dead, |_, _| {});
    }

    /// [`KeyTable::remove_where`]; each slot that is given up and its key are shown to `removing` before.
    pub(crate) fn remove_each(
        &mut self,
        slots: &[u32],
        is_dead: impl Fn(u32) -> bool,
        mut removing: impl FnMut(u32, &[u8]),
    ) {
        let mut dead = SmallVec::<[u32; STRIDE]>::new();
        for some in slots.chunks(STRIDE) {
            some.iter().for_each(|&slot| prefetch(&self.records, slot as usize));
            dead.extend(some.iter().copied().filter(|&slot| is_dead(slot)));
            for &slot in &dead {
                self.directory.prefetch(self.records[slot as usize].tag);
            }
            for slot in dead.drain(..) {
                // One that is named twice has gone the first time.
                if self.is_occupied(slot) {
                    removing(slot, self.key(slot));
                    self.remove(slot);
                }
            }
        }
    }

    /// Forgets all keys and keeps the memory.
    pub fn clear(&mut self) {
        self.directory.clear();
        self.records.clear();
        self.free.clear();
        self.long_keys.clear();
    }

    /// Becomes a copy of another table, with the same slots.
    pub fn copy_from(&mut self, other: &Self) {
        self.directory.copy_from(&other.directory);
        self.records.clone_from(&other.records);
        self.free.clone_from(&other.free);
        self.long_keys.clone_from(&other.long_keys);
        self.call = other.call;
    }

    /// Makes room for `keys` keys in all.
    pub fn reserve(&mut self, keys: usize) {
        self.directory.reserve(keys);
        self.records.reserve(keys.saturating_sub(self.records.len()));
    }

    /// The number of keys up to which the table does not grow.
    pub fn capacity(&self) -> usize {
        self.directory.capacity()
    }

    /// The number of the current call, or of the last one. Numbers ascend until they start again.
    pub(crate) fn call(&self) -> u32 {
        self.call
    }

    /// The number of the call that named the key of an occupied slot last; 0 if none has.
    pub(crate) fn touched(&self, slot: u32) -> u32 {
        self.records[slot as usize].call
    }

    /// What a slot takes without the directory.
    pub(crate) const BYTES_PER_SLOT: usize = size_of::<Record>();

    /// The bytes of the directory and of long keys.
    pub(crate) fn bytes_elsewhere(&self) -> usize {
        self.directory.bytes() + self.long_keys.bytes()
    }

    fn start_call(&mut self) {
        self.call = self.call.wrapping_add(1);
        if self.call == 0 {
            self.records.iter_mut().for_each(|r| r.call = 0);
            self.call = 1;
        }
    }

    #[inline]
    fn holds(&self, slot: u32, probe: &Probe<'_>) -> bool {
        self.records[slot as usize].holds(probe, &self.long_keys)
    }

    /// The slot of a key, new if the second value says so. `candidate` is a slot of the key's tag, or none if there was
    /// none.
    #[inline]
    fn find_near(&mut self, candidate: u32, probe: &Probe<'_>) -> (u32, bool) {
        if candidate != EMPTY_SLOT && self.holds(candidate, probe) {
            return (candidate, false);
        }
        self.find_or_insert(probe)
    }

    #[inline(never)]
    fn find_or_insert(&mut self, probe: &Probe<'_>) -> (u32, bool) {
        let at = match self.directory.find(probe.tag, |slot| self.holds(slot, probe)) {
            Ok(slot) => return (slot, false),
            Err(at) => at,
        };
        let record = Record::new(probe, &mut self.long_keys);
        let slot = self.place(record);
        self.directory.put(at, probe.tag, slot);
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
}

/// Rows whose memory is asked for at once.
const STRIDE: usize = 32;

//! What windows have that is not in memory: how it gets there, and back.

use std::{cmp::Reverse, collections::BTreeMap};

use millstream_types::Window;

use super::{ByEnd, Namespace, Namespaces};
use crate::{
    ByteRows, Grouping, Overflow, StateError, Table,
    overflow::rows::{end_of_window, put_window_row, window_key},
    row_codec::RowCodec,
    slot_store::WindowStore,
};

/// The windows of a store.
pub(super) struct Spill {
    pub(super) overflow: Overflow,
    /// How many entries each window has there; none that has none.
    pub(super) stored: BTreeMap<ByEnd, u64>,
    /// The number of the next piece.
    pub(super) next_piece: u64,
    /// What windows take in memory, as far as they have been looked at.
    bytes: usize,
    /// How many calls there have been.
    calls: u64,
}

impl Spill {
    pub(super) fn new(overflow: Overflow) -> Self {
        Self { overflow, stored: BTreeMap::new(), next_piece: 0, bytes: 0, calls: 0 }
    }

    /// A window takes no memory any more.
    pub(super) fn forget(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }

    /// Counts what a window takes now.
    pub(super) fn account<S: WindowStore>(&mut self, namespace: &mut Namespace<S>) {
        let bytes = namespace.bytes();
        self.bytes = self.bytes + bytes - namespace.bytes;
        (namespace.bytes, namespace.used) = (bytes, self.calls);
    }

    /// Whether memory of windows that have gone may be kept.
    pub(super) fn keeps_spare(&self, bytes: usize) -> bool {
        bytes <= self.overflow.memory / SPARE_PART
    }

    pub(super) fn next_window(&self, from: Option<Window>) -> Option<ByEnd> {
        let found = match from {
            Some(window) => self.stored.range(ByEnd::of(window)..).next(),
            None => self.stored.iter().next(),
        };
        found.map(|(window, _)| *window)
    }

    /// How many entries of a window are in the store.
    pub(super) fn entries(&self, window: Window) -> usize {
        self.stored.get(&ByEnd::of(window)).map_or(0, |&entries| entries as usize)
    }

    /// Drops what the store has of a window.
    pub(super) fn clear(&mut self, window: Window) -> Result<(), StateError> {
        if self.stored.remove(&ByEnd::of(window)).is_none() {
            return Ok(());
        }
        let (from, until) = (window_key(window), end_of_window(window));
        self.overflow.store.delete_range(Table::Keys, &from, &until);
        self.overflow.apply()
    }

    /// Entries of a window have gone from the store.
    pub(super) fn removed(&mut self, window: Window, entries: u64) {
        let key = ByEnd::of(window);
        if let Some(left) = self.stored.get_mut(&key) {
            *left -= entries;
            if *left == 0 {
                self.stored.remove(&key);
            }
        }
    }

    /// A call names keys of a window: those from `first_created` on are new in memory, and what the store has of them
    /// comes there.
    pub(super) fn enter<S: WindowStore>(
        &mut self,
        window: Window,
        namespace: &mut Namespace<S>,
        grouping: &mut Grouping,
        first_created: usize,
        codec: &RowCodec,
    ) -> Result<(), StateError> {
        namespace.used = self.calls;
        let is_stored = !S::IN_PIECES && self.stored.contains_key(&ByEnd::of(window));
        let created = &grouping.created[first_created..];
        if !is_stored || created.is_empty() {
            return Ok(());
        }
        let slots: Vec<u32> = created.iter().map(|&g| grouping.slot_of_group[g as usize]).collect();
        let mut keys = ByteRows::new();
        let max = self.overflow.max;
        slots.iter().for_each(|&slot| {
            keys.push_with(|out| put_window_row(window, namespace.keys.key(slot), max, out));
        });
        let order = keys.order();
        let keys = keys.picked(&order);
        let (mut entries, mut found) = (S::entries(codec), Vec::new());
        self.overflow.store.read(Table::Keys, &keys, &mut |i, mut row| {
            found.push(i);
            S::read(&mut entries, &mut row)
        })?;
        found.iter().for_each(|&i| self.overflow.store.delete(Table::Keys, keys.get(i)));
        self.overflow.apply()?;
        self.removed(window, found.len() as u64);
        let mut is_new = vec![true; slots.len()];
        found.iter().for_each(|&i| is_new[order[i] as usize] = false);
        let found: Vec<u32> = found.iter().map(|&i| slots[order[i] as usize]).collect();
        namespace.store.put(&found, entries);
        let created = grouping.created.split_off(first_created);
        grouping
            .created
            .extend(created.into_iter().zip(is_new).filter(|(_, new)| *new).map(|(group, _)| group));
        Ok(())
    }

    /// Writes what some slots of a window have.
    fn write<S: WindowStore>(
        &mut self,
        window: Window,
        namespace: &Namespace<S>,
        slots: &[u32],
        codec: &RowCodec,
    ) -> Result<(), StateError> {
        let Self { overflow, next_piece, .. } = self;
        for slots in slots.chunks(WRITTEN_AT_ONCE) {
            let mut keys = ByteRows::new();
            for &slot in slots {
                keys.push_with(|out| {
                    put_window_row(window, namespace.keys.key(slot), overflow.max, out);
                    if S::IN_PIECES {
                        out.extend(next_piece.to_be_bytes());
                        *next_piece += 1;
                    }
                });
            }
            let mut row = Vec::new();
            for at in keys.order() {
                row.clear();
                namespace.store.write(&[slots[at as usize]], codec, &mut row, |_, _| {});
                overflow.put(Table::Keys, keys.get(at as usize), &row)?;
            }
        }
        overflow.apply()?;
        if !slots.is_empty() {
            *self.stored.entry(ByEnd::of(window)).or_default() += slots.len() as u64;
        }
        Ok(())
    }
}

impl<S: WindowStore> Namespaces<S> {
    /// Whether the store has anything of a window.
    pub(crate) fn is_stored(&self, window: Window) -> bool {
        self.spill.as_ref().is_some_and(|spill| spill.entries(window) > 0)
    }

    /// Whether a copy of a window would take more memory than there is.
    pub(crate) fn is_large(&self, window: Window) -> bool {
        let bytes = self.get(window).map_or(0, |namespace| namespace.bytes);
        self.spill.as_ref().is_some_and(|spill| bytes > spill.overflow.memory / LARGE_PART)
    }

    /// Brings keys of a window that is out of the others into memory; `grouping` says which of them are new there.
    pub(crate) fn enter(
        &mut self,
        window: Window,
        namespace: &mut Namespace<S>,
        grouping: &mut Grouping,
    ) -> Result<(), StateError> {
        match &mut self.spill {
            Some(spill) => spill.enter(window, namespace, grouping, 0, &self.codec),
            None => Ok(()),
        }
    }

    /// Counts what the windows of the call take.
    pub(super) fn account(&mut self) {
        let Some(spill) = &mut self.spill else { return };
        for part in &self.call {
            if let Some(namespace) = self.windows.get_mut(&ByEnd::of(part.window)) {
                spill.account(namespace);
            }
        }
    }

    /// Evicts until the rest fits, but nothing of `pinned`. Not during a call: slots change.
    pub(crate) fn make_room(&mut self, pinned: Option<Window>) -> Result<(), StateError> {
        self.account();
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let (calls, memory) = (spill.calls, spill.overflow.memory);
        spill.calls += 1;
        if spill.bytes <= memory {
            return Ok(());
        }
        self.spare.clear();
        let pinned = pinned.map(ByEnd::of);
        // Some more than is needed, so that it is a batch.
        let target = memory - memory / EVICTED_AT_ONCE;
        let mut others: Vec<(u64, Reverse<ByEnd>)> = Vec::new();
        let unused = self.windows.iter().filter(|(at, n)| n.used < calls && Some(**at) != pinned);
        others.extend(unused.map(|(at, namespace)| (namespace.used, Reverse(*at))));
        others.sort_unstable();
        for (_, Reverse(at)) in others {
            if self.taken() <= target {
                return Ok(());
            }
            self.evict(at.window())?;
        }
        while self.taken() > target {
            let rest = self.windows.iter().filter(|(at, _)| Some(**at) != pinned);
            let Some((&largest, _)) = rest.max_by_key(|(_, namespace)| namespace.bytes) else { break };
            self.evict_some(largest.window())?;
        }
        Ok(())
    }

    fn taken(&self) -> usize {
        self.spill.as_ref().map_or(0, |spill| spill.bytes)
    }

    /// Takes all of a window out of memory.
    pub(crate) fn evict(&mut self, window: Window) -> Result<(), StateError> {
        let Some(namespace) = self.take(window) else { return Ok(()) };
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let slots: Vec<u32> = namespace.keys.occupied().collect();
        spill.write(window, &namespace, &slots, &self.codec)
    }

    /// Takes those keys of a window out of memory that have not been named for the longest time. The next new keys are given
    /// their slots; once most slots are free, what is left moves to a table that is as small as it needs.
    fn evict_some(&mut self, window: Window) -> Result<(), StateError> {
        let keys = self.get(window).map_or(0, |namespace| namespace.keys.len());
        if keys <= FEW_KEYS {
            return self.evict(window);
        }
        let Some(mut namespace) = self.take(window) else { return Ok(()) };
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let (table, call) = (&namespace.keys, namespace.keys.call());
        let mut slots: Vec<u32> = table.occupied().collect();
        let (cold, _, hot) = slots.select_nth_unstable_by_key(keys / COLD_PART, |&slot| {
            Reverse(call.wrapping_sub(table.touched(slot)))
        });
        spill.write(window, &namespace, cold, &self.codec)?;
        namespace.remove_all(cold);
        if hot.len() * 2 < namespace.keys.slots() {
            let left: Vec<u32> = namespace.keys.occupied().collect();
            namespace = namespace.of_slots(&left, &self.columns, &self.codec)?;
        }
        self.put(window, namespace);
        Ok(())
    }
}

impl<S: WindowStore> Namespace<S> {
    /// A window with some of the keys.
    fn of_slots(
        &self,
        slots: &[u32],
        columns: &[millstream_types::Column],
        codec: &RowCodec,
    ) -> Result<Self, StateError> {
        let mut made = Self::new(columns);
        made.keys.reserve(slots.len());
        let (mut bytes, mut entries) = (Vec::new(), S::entries(codec));
        let insert = |&slot: &u32| made.keys.insert(self.keys.key(slot), self.keys.table_hash(slot)).0;
        let new: Vec<u32> = slots.iter().map(insert).collect();
        made.store.grow(made.keys.slots());
        self.store.write(slots, codec, &mut bytes, |_, _| {});
        let mut bytes = &bytes[..];
        (0..slots.len()).try_for_each(|_| S::read(&mut entries, &mut bytes))?;
        made.store.put(&new, entries);
        Ok(made)
    }
}

/// How small a part of the memory is evicted at once, at least.
const EVICTED_AT_ONCE: usize = 8;
/// How small a part of the memory a window takes whose memory is kept when it has gone.
const SPARE_PART: usize = 64;
/// How small a part of the memory a window takes that may be copied.
const LARGE_PART: usize = 4;
/// How small a part of a window's keys is evicted at once.
const COLD_PART: usize = 4;
/// So many keys are evicted as a whole.
const FEW_KEYS: usize = 64;
/// Rows that are sorted before they are written.
const WRITTEN_AT_ONCE: usize = 2 << 10;

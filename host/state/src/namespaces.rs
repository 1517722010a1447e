//! Windows in memory: a key table and a store by slot for each.
//!
//! Windows come and go, one much like the other. The memory of one that has gone is given to the next new one, as long
//! as it is not large, and was not much larger than what was in it: so windows do not grow from nothing again and again,
//! and what is kept for later is bounded.
//!
//! With an [`Overflow`] what has no room in memory is evicted ([`spill`]): whole windows that have had no rows for the
//! longest time, and of those that have just had some the keys that have had none. A window is read from both ([`read`]).

mod image;
mod read;
mod snapshot;
mod spill;

use std::collections::BTreeMap;

use millstream_types::{Column, EncodedKeys, Window};

use self::spill::Spill;
use crate::{
    CallWindow, Cursor, Grouping, KeyTable, Overflow, StateError, row_codec::RowCodec,
    slot_store::WindowStore,
};

/// Windows with their keys and what is kept for them.
pub(crate) struct Namespaces<S> {
    pub(crate) columns: Vec<Column>,
    codec: RowCodec,
    windows: BTreeMap<ByEnd, Namespace<S>>,
    /// Empty windows.
    spare: Vec<Namespace<S>>,
    pub(crate) grouping: Grouping,
    pub(crate) call: Vec<CallWindow>,
    /// What is not in memory, where there may be any.
    spill: Option<Spill>,
}

/// One window.
pub(crate) struct Namespace<S> {
    pub(crate) keys: KeyTable,
    pub(crate) store: S,
    /// The last call that named it, and what it took in memory then. For what may be evicted.
    used: u64,
    bytes: usize,
}

impl<S: WindowStore> Namespaces<S> {
    pub(crate) fn new(columns: &[Column], overflow: Option<Overflow>) -> Self {
        let (windows, spare, grouping, call) = Default::default();
        let (codec, spill) = (RowCodec::new(columns), overflow.map(Spill::new));
        Self { columns: columns.to_vec(), codec, windows, spare, grouping, call, spill }
    }

    pub(crate) fn begin(&mut self, rows: usize) -> Result<(), StateError> {
        if self.spill.is_some() {
            self.make_room(None)?;
        }
        self.grouping.start(rows);
        self.call.clear();
        Ok(())
    }

    pub(crate) fn resolve(
        &mut self,
        window: Window,
        keys: &EncodedKeys,
        rows: Option<&[u32]>,
    ) -> Result<(), StateError> {
        let first_group = self.grouping.groups() as u32;
        let first_created = self.grouping.created.len();
        let (columns, spare) = (&self.columns, &mut self.spare);
        let new = || spare.pop().unwrap_or_else(|| Namespace::new(columns));
        let namespace = self.windows.entry(ByEnd::of(window)).or_insert_with(new);
        match rows {
            Some(rows) => namespace.keys.resolve_rows(keys, rows, &mut self.grouping),
            None => namespace.keys.resolve(keys, &mut self.grouping),
        }
        namespace.store.grow(namespace.keys.slots());
        let groups = self.grouping.groups() as u32 - first_group;
        self.call.push(CallWindow { window, first_group, groups });
        match &mut self.spill {
            Some(spill) => spill.enter(window, namespace, &mut self.grouping, first_created, &self.codec),
            None => Ok(()),
        }
    }

    /// The windows of the call in turn, each with the range of its groups.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&Namespace<S>, std::ops::Range<usize>)> {
        self.call.iter().filter_map(|part| Some((self.get(part.window)?, groups_of(part))))
    }

    /// Runs `apply` on each window of the call with its groups' range and their slots.
    pub(crate) fn for_each_part(
        &mut self,
        mut apply: impl FnMut(&mut Namespace<S>, std::ops::Range<usize>, &[u32]),
    ) {
        for part in &self.call {
            if let Some(namespace) = self.windows.get_mut(&ByEnd::of(part.window)) {
                let groups = groups_of(part);
                apply(namespace, groups.clone(), &self.grouping.slot_of_group[groups]);
            }
        }
    }

    /// Removes what memory has of these groups of the call, ascending, and windows that have nothing left there.
    pub(crate) fn remove_groups(&mut self, groups: &[u32]) {
        for part in &self.call {
            let key = ByEnd::of(part.window);
            let Some(namespace) = self.windows.get_mut(&key) else { continue };
            let range = groups_of(part);
            let first = groups.partition_point(|&g| (g as usize) < range.start);
            let removed = groups[first..].iter().take_while(|&&g| (g as usize) < range.end);
            let slots: Vec<u32> = removed.map(|&group| self.grouping.slot_of_group[group as usize]).collect();
            namespace.remove_all(&slots);
            if namespace.keys.is_empty() {
                let bytes = self.windows.remove(&key).map_or(0, |namespace| namespace.bytes);
                self.spill.iter_mut().for_each(|spill| spill.forget(bytes));
            }
        }
    }

    /// Ends the call and forgets the keys that are new in it.
    pub(crate) fn rollback(&mut self) {
        let created = std::mem::take(&mut self.grouping.created);
        self.remove_groups(&created);
        self.account();
        self.grouping.start(0);
        self.call.clear();
    }

    pub(crate) fn get(&self, window: Window) -> Option<&Namespace<S>> {
        self.windows.get(&ByEnd::of(window))
    }

    /// The window, out of the others, to be put back.
    pub(crate) fn take(&mut self, window: Window) -> Option<Namespace<S>> {
        let namespace = self.windows.remove(&ByEnd::of(window))?;
        self.spill.iter_mut().for_each(|spill| spill.forget(namespace.bytes));
        Some(namespace)
    }

    /// The window, out of the others, or a new one, to be put there.
    pub(crate) fn take_or_new(&mut self, window: Window) -> Namespace<S> {
        let found = self.take(window).or_else(|| self.spare.pop());
        found.unwrap_or_else(|| Namespace::new(&self.columns))
    }

    /// Puts a window among the others.
    pub(crate) fn put(&mut self, window: Window, mut namespace: Namespace<S>) {
        if let Some(spill) = &mut self.spill {
            namespace.bytes = 0;
            spill.account(&mut namespace);
        }
        self.windows.insert(ByEnd::of(window), namespace);
    }

    /// Drops a window with all that it has; its memory is kept if it is worth that.
    pub(crate) fn clear(&mut self, window: Window) -> Result<(), StateError> {
        if let Some(mut namespace) = self.take(window) {
            let (capacity, keys) = (namespace.keys.capacity(), namespace.keys.len());
            let kept: usize = self.spare.iter().map(|n| n.keys.capacity()).sum();
            let fits = self.spill.as_ref().is_none_or(|spill| spill.keeps_spare(namespace.bytes));
            if fits
                && self.spare.len() < SPARE_WINDOWS
                && kept + capacity <= SPARE_KEYS
                && capacity <= keys * WELL_USED
            {
                namespace.keys.clear();
                namespace.store.clear();
                namespace.bytes = 0;
                self.spare.push(namespace);
            }
        }
        self.spill.as_mut().map_or(Ok(()), |spill| spill.clear(window))
    }

    pub(crate) fn next_window(&self, from: Option<Window>) -> Option<Window> {
        let in_memory = match from {
            Some(window) => self.windows.range(ByEnd::of(window)..).next(),
            None => self.windows.iter().next(),
        };
        let stored = self.spill.as_ref().and_then(|spill| spill.next_window(from));
        let found = in_memory.map(|(key, _)| *key).into_iter().chain(stored).min();
        found.map(|key| key.window())
    }

    /// How many keys a window has in memory and entries in the store.
    pub(crate) fn keys_of(&self, window: Window) -> usize {
        let stored = self.spill.as_ref().map_or(0, |spill| spill.entries(window));
        self.get(window).map_or(0, |n| n.keys.len()) + stored
    }
}

impl<S: WindowStore> Namespace<S> {
    fn new(columns: &[Column]) -> Self {
        Self { keys: KeyTable::new(), store: S::new(columns), used: 0, bytes: 0 }
    }

    /// Becomes a copy of another window.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.keys.copy_from(&other.keys);
        self.store.copy_from(&other.store);
    }

    /// Removes the keys of some slots that have not been removed before.
    fn remove_all(&mut self, slots: &[u32]) {
        slots.iter().filter(|&&slot| self.keys.is_occupied(slot)).for_each(|&slot| self.store.remove(slot));
        self.keys.remove_where(slots, |_| true);
    }

    /// The next occupied slots from `cursor` on, at most `limit`, and where to go on.
    pub(crate) fn slots_from(&self, from: u32, limit: usize) -> (Vec<u32>, Option<Cursor>) {
        let end = self.keys.slots() as u32;
        if self.keys.is_dense() {
            let until = from.saturating_add(u32::try_from(limit).unwrap_or(u32::MAX)).min(end);
            return ((from..until).collect(), (until < end).then_some(Cursor::slot(until)));
        }
        let mut occupied = (from..end).filter(|&slot| self.keys.is_occupied(slot));
        let slots: Vec<u32> = occupied.by_ref().take(limit).collect();
        (slots, occupied.next().map(Cursor::slot))
    }

    /// The bytes of memory that its keys take.
    pub(crate) fn bytes(&self) -> usize {
        let (per_slot, elsewhere) = self.store.bytes();
        self.keys.len() * (KeyTable::BYTES_PER_SLOT + per_slot) + self.keys.bytes_elsewhere() + elsewhere
    }

    /// The keys of some slots.
    pub(crate) fn keys_at(&self, slots: &[u32]) -> EncodedKeys {
        let mut keys = EncodedKeys::new();
        keys.reserve(slots.len(), slots.len() * USUAL_KEY);
        slots.iter().for_each(|&slot| keys.push(self.keys.key(slot), self.keys.table_hash(slot)));
        keys
    }
}

/// How many windows' memory is kept.
const SPARE_WINDOWS: usize = 8;
/// For how many keys memory is kept, in all.
const SPARE_KEYS: usize = 1 << 18;
/// Memory is kept if it is for no more than so many times the keys that were there: emptying it costs what it is for.
const WELL_USED: usize = 8;

/// The bytes of most keys: that of a number, or of a short text.
const USUAL_KEY: usize = 12;

/// A window in the order in which windows end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ByEnd {
    end: i64,
    start: i64,
}

impl ByEnd {
    fn of(window: Window) -> Self {
        Self { end: window.end, start: window.start }
    }

    fn window(self) -> Window {
        Window { start: self.start, end: self.end }
    }
}

fn groups_of(part: &CallWindow) -> std::ops::Range<usize> {
    part.first_group as usize..(part.first_group + part.groups) as usize
}

#[cfg(test)]
mod tests {
    use millstream_types::hash_key;

    use super::*;
    use crate::row_store::RowStore;

    fn keys(count: u32) -> EncodedKeys {
        let mut keys = EncodedKeys::new();
        (0..count).for_each(|i| keys.push(&i.to_be_bytes(), hash_key(&i.to_be_bytes())));
        keys
    }

    fn open(windows: &mut Namespaces<RowStore>, at: i64, count: u32) -> Window {
        let window = Window::new(at, at + 1);
        windows.begin(count as usize).expect("in memory");
        windows.resolve(window, &keys(count), None).expect("in memory");
        window
    }

    #[test]
    fn the_memory_of_a_window_goes_to_the_next() {
        let mut windows = Namespaces::<RowStore>::new(&[], None);
        let first = open(&mut windows, 0, 1000);
        let capacity = windows.get(first).expect("opened").keys.capacity();
        windows.clear(first).expect("in memory");
        let second = open(&mut windows, 1, 10);
        let namespace = windows.get(second).expect("opened");
        assert_eq!((namespace.keys.len(), namespace.keys.capacity()), (10, capacity));
        assert_eq!(windows.grouping.created.len(), 10, "nothing of the first window is there");
        windows.clear(second).expect("in memory");
        assert!(windows.spare.is_empty(), "memory that is hardly used is not kept");
    }

    #[test]
    fn the_memory_that_is_kept_is_bounded() {
        let mut windows = Namespaces::<RowStore>::new(&[], None);
        let opened: Vec<Window> = (0..20).map(|at| open(&mut windows, at, 8)).collect();
        opened.iter().for_each(|&window| windows.clear(window).expect("in memory"));
        assert_eq!(windows.spare.len(), SPARE_WINDOWS);
        let large = open(&mut windows, 0, SPARE_KEYS as u32);
        let spare = windows.spare.len();
        windows.clear(large).expect("in memory");
        assert_eq!(windows.spare.len(), spare);
    }
}

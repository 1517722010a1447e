//! Windows in memory: a key table and a store by slot for each.

use std::collections::BTreeMap;

use millstream_types::{Column, EncodedKeys, Window};

use crate::{CallWindow, Cursor, Grouping, KeyTable};

/// What is kept by slot in a window.
pub(crate) trait SlotStore: Send + Sized {
    /// An empty store of rows of these columns.
    fn new(columns: &[Column]) -> Self;

    /// Makes room for slots below `slots`.
    fn grow(&mut self, slots: usize);

    /// Whether a slot has anything.
    fn is_present(&self, slot: u32) -> bool;

    /// Forgets what a slot has.
    fn remove(&mut self, slot: u32);
}

/// Windows with their keys and what is kept for them.
pub(crate) struct Namespaces<S> {
    columns: Vec<Column>,
    windows: BTreeMap<ByEnd, Namespace<S>>,
    pub(crate) grouping: Grouping,
    pub(crate) call: Vec<CallWindow>,
}

/// One window.
pub(crate) struct Namespace<S> {
    pub(crate) keys: KeyTable,
    pub(crate) store: S,
}

impl<S: SlotStore> Namespaces<S> {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let (windows, grouping, call) = Default::default();
        Self { columns: columns.to_vec(), windows, grouping, call }
    }

    pub(crate) fn begin(&mut self, rows: usize) {
        self.grouping.start(rows);
        self.call.clear();
    }

    pub(crate) fn resolve(&mut self, window: Window, keys: &EncodedKeys, rows: Option<&[u32]>) {
        let first_group = self.grouping.groups() as u32;
        let columns = &self.columns;
        let namespace = self.windows.entry(ByEnd::of(window)).or_insert_with(|| Namespace::new(columns));
        match rows {
            Some(rows) => namespace.keys.resolve_rows(keys, rows, &mut self.grouping),
            None => namespace.keys.resolve(keys, &mut self.grouping),
        }
        namespace.store.grow(namespace.keys.slots());
        let groups = self.grouping.groups() as u32 - first_group;
        self.call.push(CallWindow { window, first_group, groups });
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

    /// Removes the keys of these groups of the call, ascending, and windows that have none left.
    pub(crate) fn remove_groups(&mut self, groups: &[u32]) {
        for part in &self.call {
            let key = ByEnd::of(part.window);
            let Some(namespace) = self.windows.get_mut(&key) else { continue };
            let range = groups_of(part);
            let first = groups.partition_point(|&g| (g as usize) < range.start);
            for &group in groups[first..].iter().take_while(|&&g| (g as usize) < range.end) {
                namespace.remove(self.grouping.slot_of_group[group as usize]);
            }
            if namespace.keys.is_empty() {
                self.windows.remove(&key);
            }
        }
    }

    /// Ends the call and forgets the keys that are new in it.
    pub(crate) fn rollback(&mut self) {
        let created = std::mem::take(&mut self.grouping.created);
        self.remove_groups(&created);
        self.begin(0);
    }

    pub(crate) fn get(&self, window: Window) -> Option<&Namespace<S>> {
        self.windows.get(&ByEnd::of(window))
    }

    pub(crate) fn take(&mut self, window: Window) -> Option<Namespace<S>> {
        self.windows.remove(&ByEnd::of(window))
    }

    /// Puts a window back that was taken, or makes an empty one.
    pub(crate) fn put(&mut self, window: Window, namespace: Namespace<S>) {
        self.windows.insert(ByEnd::of(window), namespace);
    }

    pub(crate) fn take_or_new(&mut self, window: Window) -> Namespace<S> {
        self.take(window).unwrap_or_else(|| Namespace::new(&self.columns))
    }

    pub(crate) fn next_window(&self, from: Option<Window>) -> Option<Window> {
        let found = match from {
            Some(window) => self.windows.range(ByEnd::of(window)..).next(),
            None => self.windows.iter().next(),
        };
        found.map(|(key, _)| Window::new(key.start, key.end))
    }
}

impl<S: SlotStore> Namespace<S> {
    fn new(columns: &[Column]) -> Self {
        Self { keys: KeyTable::new(), store: S::new(columns) }
    }

    fn remove(&mut self, slot: u32) {
        if self.keys.is_occupied(slot) {
            self.store.remove(slot);
            self.keys.remove(slot);
        }
    }

    /// The next occupied slots from `cursor` on, at most `limit`, and where to go on.
    pub(crate) fn slots_from(&self, cursor: Cursor, limit: usize) -> (Vec<u32>, Option<Cursor>) {
        let end = self.keys.slots() as u32;
        let mut occupied = (cursor.0..end).filter(|&slot| self.keys.is_occupied(slot));
        let slots: Vec<u32> = occupied.by_ref().take(limit).collect();
        (slots, occupied.next().map(Cursor))
    }

    /// The keys of some slots.
    pub(crate) fn keys_at(&self, slots: &[u32]) -> EncodedKeys {
        let mut keys = EncodedKeys::new();
        slots.iter().for_each(|&slot| keys.push(self.keys.key(slot), self.keys.table_hash(slot)));
        keys
    }
}

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
}

fn groups_of(part: &CallWindow) -> std::ops::Range<usize> {
    part.first_group as usize..(part.first_group + part.groups) as usize
}

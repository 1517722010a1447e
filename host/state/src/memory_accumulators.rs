//! Accumulators of windows in memory.

use millstream_types::{Cells, Column, Columns, EncodedKeys, Window};

use crate::{
    AccumulatorSlice, CallWindow, Cursor, Grouping, MergeStep, StateError, WindowAccumulators, WindowState,
    cell_store::CellStore,
    join,
    namespaces::{Namespaces, SlotStore},
    shape,
};

/// Accumulators of windows in memory: columns by slot, gathered and scattered.
pub struct MemoryAccumulators {
    columns: Vec<Column>,
    windows: Namespaces<CellStore>,
    /// The window and slots of the last merge step.
    merging: Option<(Window, Vec<u32>)>,
}

impl MemoryAccumulators {
    /// No window yet; accumulators of these columns.
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), windows: Namespaces::new(columns), merging: None }
    }
}

impl WindowState for MemoryAccumulators {
    fn begin(&mut self, rows: usize) {
        self.windows.begin(rows);
    }

    fn resolve(
        &mut self,
        window: Window,
        keys: &EncodedKeys,
        rows: Option<&[u32]>,
    ) -> Result<(), StateError> {
        self.windows.resolve(window, keys, rows);
        Ok(())
    }

    fn grouping(&self) -> &Grouping {
        &self.windows.grouping
    }

    fn call_windows(&self) -> &[CallWindow] {
        &self.windows.call
    }

    fn rollback(&mut self) {
        self.windows.rollback();
    }

    fn next_window(&self, from: Option<Window>) -> Option<Window> {
        self.windows.next_window(from)
    }

    fn keys_of(&self, window: Window) -> usize {
        self.windows.get(window).map_or(0, |n| n.keys.len())
    }

    fn clear(&mut self, window: Window) -> Result<(), StateError> {
        self.windows.take(window);
        Ok(())
    }

    fn remove_groups(&mut self, groups: &[u32]) -> Result<(), StateError> {
        self.windows.remove_groups(groups);
        Ok(())
    }
}

impl WindowAccumulators for MemoryAccumulators {
    fn read(&self) -> Result<Cells, StateError> {
        let slots = &self.windows.grouping.slot_of_group;
        let cells = self.windows.parts().map(|(namespace, groups)| namespace.store.read(&slots[groups]));
        Ok(join::cells(cells.collect()).unwrap_or_else(|| CellStore::new(&self.columns).read(&[])))
    }

    fn write(&mut self, accumulators: &Columns, skipped: &[u32]) -> Result<(), StateError> {
        let groups = self.windows.grouping.groups();
        shape::check(NAME, &self.columns, accumulators, groups)?;
        if skipped.is_empty() {
            self.windows.for_each_part(|namespace, groups, slots| {
                namespace.store.write_values(slots, &accumulators.slice(groups.start, groups.len()));
            });
        } else {
            let kept: Vec<usize> =
                (0..groups).filter(|&g| skipped.binary_search(&(g as u32)).is_err()).collect();
            self.windows.for_each_part(|namespace, groups, slots| {
                let rows = kept.iter().filter(|g| groups.contains(g)).copied();
                let slots: Vec<u32> = rows.clone().map(|g| slots[g - groups.start]).collect();
                namespace.store.write_rows(&slots, accumulators, rows);
            });
            let created = &self.windows.grouping.created;
            let unused: Vec<u32> =
                skipped.iter().filter(|g| created.binary_search(g).is_ok()).copied().collect();
            self.windows.remove_groups(&unused);
        }
        self.windows.grouping.created.clear();
        Ok(())
    }

    fn scan(&self, window: Window, cursor: Cursor, limit: usize) -> Result<AccumulatorSlice, StateError> {
        let Some(namespace) = self.windows.get(window) else {
            let accumulators = CellStore::new(&self.columns).read_values(&[]);
            return Ok(AccumulatorSlice { keys: EncodedKeys::new(), accumulators, next: None });
        };
        let (slots, next) = namespace.slots_from(cursor, limit);
        let accumulators = namespace.store.read_values(&slots);
        Ok(AccumulatorSlice { keys: namespace.keys_at(&slots), accumulators, next })
    }

    fn merge(
        &mut self,
        into: Window,
        from: Window,
        cursor: Cursor,
        limit: usize,
    ) -> Result<MergeStep, StateError> {
        debug_assert!(into != from, "a window merged into itself");
        let mut target = self.windows.take_or_new(into);
        let (mut known, mut others, mut next) = (Vec::new(), Vec::new(), None);
        let mut other = None;
        if let Some(source) = self.windows.get(from) {
            let (slots, rest) = source.slots_from(cursor, limit);
            next = rest;
            let (mut new, mut copied) = (Vec::new(), Vec::new());
            for slot in slots {
                let (at, is_new) = target.keys.insert(source.keys.key(slot), source.keys.table_hash(slot));
                let (to, of) = if is_new { (&mut new, &mut copied) } else { (&mut known, &mut others) };
                to.push(at);
                of.push(slot);
            }
            target.store.grow(target.keys.slots());
            target.store.write_values(&new, &source.store.read_values(&copied));
            other = Some(source.store.read_values(&others));
        }
        let merged = target.store.read_values(&known);
        self.windows.put(into, target);
        self.merging = Some((into, known));
        Ok(MergeStep { other: other.unwrap_or_else(|| merged.clone()), into: merged, next })
    }

    fn finish_merge(&mut self, merged: &Columns) -> Result<(), StateError> {
        let Some((window, slots)) = self.merging.take() else { return Ok(()) };
        shape::check(NAME, &self.columns, merged, slots.len())?;
        if let Some(mut namespace) = self.windows.take(window) {
            namespace.store.write_values(&slots, merged);
            self.windows.put(window, namespace);
        }
        Ok(())
    }
}

impl SlotStore for CellStore {
    fn new(columns: &[Column]) -> Self {
        CellStore::new(columns)
    }

    fn grow(&mut self, slots: usize) {
        CellStore::grow(self, slots);
    }

    fn is_present(&self, slot: u32) -> bool {
        CellStore::is_present(self, slot)
    }

    fn remove(&mut self, slot: u32) {
        CellStore::remove(self, slot);
    }
}

/// How messages name accumulators.
const NAME: &str = "accumulator";

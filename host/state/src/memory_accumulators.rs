//! Accumulators of windows in memory.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use millstream_types::{
    Cells, Column, Columns, EncodedKeys, MaxParallelism, SnapshotRequest, StateForm, StatePart, Window,
};

use crate::{
    AccumulatorSlice, CallWindow, Cursor, Grouping, MergeStep, StateError, WindowAccumulators, WindowState,
    join, namespaces::Namespaces, row_store::RowStore, shape, snapshot,
};

/// Accumulators of windows in memory: rows by slot, gathered and scattered.
///
/// Every key of a window has an accumulator, but for those that are new in the current call.
pub struct MemoryAccumulators {
    columns: Vec<Column>,
    windows: Namespaces<RowStore>,
    /// The window and slots of the last merge step.
    merging: Option<(Window, Vec<u32>)>,
    merge_grouping: Grouping,
}

impl MemoryAccumulators {
    /// No window yet; accumulators of these columns.
    pub fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            windows: Namespaces::new(columns),
            merging: None,
            merge_grouping: Grouping::default(),
        }
    }

    fn no_rows(&self) -> Columns {
        RowStore::new(&self.columns).read(&[])
    }

    /// Which groups of the call are not new in it.
    fn present(&self) -> BooleanBuffer {
        let grouping = &self.windows.grouping;
        if grouping.created.is_empty() {
            return BooleanBuffer::new_set(grouping.groups());
        }
        let mut present = BooleanBufferBuilder::new(grouping.groups());
        present.append_n(grouping.groups(), true);
        grouping.created.iter().for_each(|&group| present.set_bit(group as usize, false));
        present.finish()
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
        self.windows.clear(window);
        Ok(())
    }

    fn remove_groups(&mut self, groups: &[u32]) -> Result<(), StateError> {
        self.windows.remove_groups(groups);
        Ok(())
    }

    fn snapshot(
        &mut self,
        name: &str,
        max: MaxParallelism,
        _request: &SnapshotRequest,
    ) -> Result<StatePart, StateError> {
        Ok(snapshot::part(name, StateForm::Accumulators, &self.columns, self.windows.chunks(max)))
    }

    fn restore(&mut self, part: &StatePart) -> Result<(), StateError> {
        snapshot::check(part, &self.columns)?;
        part.chunks.iter().try_for_each(|chunk| self.windows.restore(&chunk.bytes))
    }
}

impl WindowAccumulators for MemoryAccumulators {
    fn read(&self) -> Result<Cells, StateError> {
        let slots = &self.windows.grouping.slot_of_group;
        let parts: Vec<Columns> =
            self.windows.parts().map(|(namespace, groups)| namespace.store.read(&slots[groups])).collect();
        let values = join::columns(&parts).unwrap_or_else(|| self.no_rows());
        Ok(Cells { present: self.present(), values })
    }

    fn write(&mut self, accumulators: &Columns, skipped: &[u32]) -> Result<(), StateError> {
        let groups = self.windows.grouping.groups();
        shape::check(NAME, &self.columns, accumulators, groups)?;
        if skipped.is_empty() {
            self.windows.for_each_part(|namespace, groups, slots| {
                namespace.store.write_rows(slots, accumulators, groups);
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
            let accumulators = self.no_rows();
            return Ok(AccumulatorSlice { keys: EncodedKeys::new(), accumulators, next: None });
        };
        let (slots, next) = namespace.slots_from(cursor, limit);
        let accumulators = namespace.store.read(&slots);
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
        let mut step = MergeStep { into: self.no_rows(), other: self.no_rows(), next: None };
        let mut merging = Vec::new();
        match self.windows.get(from) {
            Some(source) if target.keys.is_empty() => target.copy_from(source),
            Some(source) => {
                let (slots, next) = source.slots_from(cursor, limit);
                let grouping = &mut self.merge_grouping;
                grouping.start(slots.len());
                target.keys.reserve(source.keys.len());
                target.keys.resolve_slots(&source.keys, &slots, grouping);
                target.store.grow(target.keys.slots());
                // The keys of a table differ, so that each is a group of its own.
                let (of, to) = (pick(&slots, &grouping.created), grouping.created_slots());
                target.store.write(&to, &source.store.read(&of));
                let others: Vec<u32>;
                (merging, others) = grouping.known().map(|g| (grouping.slot_of_group[g], slots[g])).unzip();
                step =
                    MergeStep { into: target.store.read(&merging), other: source.store.read(&others), next };
            }
            None => {}
        }
        self.windows.put(into, target);
        self.merging = Some((into, merging));
        Ok(step)
    }

    fn finish_merge(&mut self, merged: &Columns) -> Result<(), StateError> {
        let Some((window, slots)) = self.merging.take() else { return Ok(()) };
        shape::check(NAME, &self.columns, merged, slots.len())?;
        if let Some(mut namespace) = self.windows.take(window) {
            namespace.store.write(&slots, merged);
            self.windows.put(window, namespace);
        }
        Ok(())
    }
}

/// Values at some positions.
fn pick(values: &[u32], positions: &[u32]) -> Vec<u32> {
    positions.iter().map(|&at| values[at as usize]).collect()
}

/// How messages name accumulators.
const NAME: &str = "accumulator";

//! Accumulators of windows in memory, and what has no room there in a store.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use millstream_types::{
    Cells, Column, Columns, EncodedKeys, MaxParallelism, SnapshotRequest, StateForm, StatePart, Window,
};

use crate::{
    AccumulatorSlice, CallWindow, Cursor, Grouping, MergeStep, Overflow, StateError, StateName,
    WindowAccumulators, WindowState, join, namespaces::Namespaces, row_store::RowStore, shape,
    value_state::interleave_columns, window_state::Place,
};

/// Accumulators of windows: rows by slot, gathered and scattered.
///
/// Every key of a window has an accumulator, but for those that are new in the current call.
pub struct MemoryAccumulators {
    windows: Namespaces<RowStore>,
    merging: Option<Merging>,
    merge_grouping: Grouping,
}

/// The last merge step.
struct Merging {
    into: Window,
    /// The slots of the accumulators that are merged into.
    slots: Vec<u32>,
    /// The window that is not merged to its end.
    from: Option<Window>,
}

impl MemoryAccumulators {
    /// No window yet; accumulators of these columns.
    pub fn new(columns: &[Column]) -> Self {
        Self::with_overflow(columns, None)
    }

    /// The same with a place for what has no room in memory.
    pub fn with_overflow(columns: &[Column], overflow: Option<Overflow>) -> Self {
        let windows = Namespaces::new(columns, overflow);
        Self { windows, merging: None, merge_grouping: Grouping::default() }
    }

    fn no_rows(&self) -> Columns {
        self.windows.no_rows()
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
    fn begin(&mut self, rows: usize) -> Result<(), StateError> {
        self.windows.begin(rows)
    }

    fn resolve(
        &mut self,
        window: Window,
        keys: &EncodedKeys,
        rows: Option<&[u32]>,
    ) -> Result<(), StateError> {
        self.windows.resolve(window, keys, rows)
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
        self.windows.keys_of(window)
    }

    fn clear(&mut self, window: Window) -> Result<(), StateError> {
        self.windows.clear(window)
    }

    fn remove_groups(&mut self, groups: &[u32]) -> Result<(), StateError> {
        self.windows.remove_groups(groups);
        Ok(())
    }

    fn snapshot(
        &mut self,
        name: StateName<'_>,
        max: MaxParallelism,
        _request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError> {
        self.windows.snapshot(name, StateForm::Accumulators, max)
    }

    fn restore(&mut self, part: &StatePart) -> Result<(), StateError> {
        self.windows.restore_part(part, StateForm::Accumulators)
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
        shape::check(NAME, &self.windows.columns, accumulators, groups)?;
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

    fn scan(&mut self, window: Window, cursor: Cursor, limit: usize) -> Result<AccumulatorSlice, StateError> {
        self.windows.scan(window, cursor, limit)
    }

    fn merge(
        &mut self,
        into: Window,
        from: Window,
        cursor: Cursor,
        limit: usize,
    ) -> Result<MergeStep, StateError> {
        debug_assert!(into != from, "a window merged into itself");
        let in_memory = !self.windows.is_stored(into) && !self.windows.is_stored(from);
        match cursor.0 {
            Place::Slot(slot) if in_memory && !self.windows.is_large(from) => {
                Ok(self.merge_in_memory(into, from, slot, limit))
            }
            _ => self.merge_by_key(into, from, cursor, limit),
        }
    }

    fn finish_merge(&mut self, merged: &Columns) -> Result<(), StateError> {
        let Some(Merging { into, slots, from }) = self.merging.take() else { return Ok(()) };
        shape::check(NAME, &self.windows.columns, merged, slots.len())?;
        if let Some(mut namespace) = self.windows.take(into) {
            namespace.store.write(&slots, merged);
            self.windows.put(into, namespace);
        }
        // The next step goes on where this one stopped.
        self.windows.make_room(from)
    }
}

impl MemoryAccumulators {
    fn merge_in_memory(&mut self, into: Window, from: Window, slot: u32, limit: usize) -> MergeStep {
        let mut target = self.windows.take_or_new(into);
        let mut step = MergeStep { into: self.no_rows(), other: self.no_rows(), next: None };
        let mut merging = Vec::new();
        match self.windows.get(from) {
            Some(source) if target.keys.is_empty() => target.copy_from(source),
            Some(source) => {
                let (slots, next) = source.slots_from(slot, limit);
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
        self.merging = Some(Merging { into, slots: merging, from: step.next.is_some().then_some(from) });
        step
    }

    /// The same where one of the windows is not in memory, or only part of it.
    fn merge_by_key(
        &mut self,
        into: Window,
        from: Window,
        cursor: Cursor,
        limit: usize,
    ) -> Result<MergeStep, StateError> {
        let AccumulatorSlice { keys, accumulators, next } = self.windows.scan(from, cursor, limit)?;
        let mut target = self.windows.take_or_new(into);
        let grouping = &mut self.merge_grouping;
        grouping.start(keys.len());
        target.keys.resolve(&keys, grouping);
        target.store.grow(target.keys.slots());
        self.windows.enter(into, &mut target, grouping)?;
        // The keys of a window differ, so that each is a group of its own.
        let new = grouping.created.iter().map(|&group| group as usize);
        target.store.write_rows(&grouping.created_slots(), &accumulators, new);
        let (slots, others): (Vec<u32>, Vec<(usize, usize)>) =
            grouping.known().map(|group| (grouping.slot_of_group[group], (0, group))).unzip();
        let other = interleave_columns(&[&accumulators], &others);
        let step = MergeStep { into: target.store.read(&slots), other, next };
        self.windows.put(into, target);
        self.merging = Some(Merging { into, slots, from: step.next.is_some().then_some(from) });
        Ok(step)
    }
}

/// Values at some positions.
fn pick(values: &[u32], positions: &[u32]) -> Vec<u32> {
    positions.iter().map(|&at| values[at as usize]).collect()
}

/// How messages name accumulators.
const NAME: &str = "accumulator";

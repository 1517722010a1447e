//! A value a key, with what the current call has written.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use arrow_select::interleave::interleave;
use millstream_types::{Cells, Column, Columns};

use crate::{cell_store::CellStore, changes::ChangedSlots};

/// Values by slot, and writes not yet applied.
#[derive(Clone, Debug)]
pub(crate) struct ValueState {
    store: CellStore,
    written: Vec<Write>,
}

/// Row i of the cells is for group `groups[i]` of the call.
#[derive(Clone, Debug)]
struct Write {
    groups: Vec<u32>,
    cells: Cells,
}

impl ValueState {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { store: CellStore::new(columns), written: Vec::new() }
    }

    pub(crate) fn grow(&mut self, slots: usize) {
        self.store.grow(slots);
    }

    pub(crate) fn store(&self) -> &CellStore {
        &self.store
    }

    pub(crate) fn store_mut(&mut self) -> &mut CellStore {
        &mut self.store
    }

    pub(crate) fn is_present(&self, slot: u32) -> bool {
        self.store.is_present(slot)
    }

    /// The values of some groups, as the call sees them.
    pub(crate) fn read(&self, groups: &[u32], slot_of_group: &[u32]) -> Cells {
        let stored = self.store.read(&slots(groups, slot_of_group));
        if self.written.is_empty() { stored } else { self.overlay(groups, stored, slot_of_group.len()) }
    }

    pub(crate) fn write(&mut self, groups: &[u32], cells: Cells) {
        self.written.push(Write { groups: groups.to_vec(), cells });
    }

    /// Applies the writes; slots that are written are marked in `changed`, cleared ones are added to `cleared`.
    pub(crate) fn commit(
        &mut self,
        slot_of_group: &[u32],
        cleared: &mut Vec<u32>,
        changed: &mut ChangedSlots,
    ) {
        for Write { groups, cells } in self.written.drain(..) {
            let slots = slots(&groups, slot_of_group);
            self.store.write(&slots, &cells);
            changed.mark(slots.iter().copied());
            if cells.present.count_set_bits() < slots.len() {
                cleared.extend(
                    slots.iter().zip(&cells.present).filter(|(_, present)| !present).map(|(&s, _)| s),
                );
            }
        }
    }

    pub(crate) fn rollback(&mut self) {
        self.written.clear();
    }

    /// What is stored for `groups`, but for those that have been written: of these the last write.
    fn overlay(&self, groups: &[u32], stored: Cells, all_groups: usize) -> Cells {
        let mut last = vec![None; all_groups];
        for (source, write) in self.written.iter().enumerate() {
            write
                .groups
                .iter()
                .enumerate()
                .for_each(|(row, &group)| last[group as usize] = Some((source + 1, row)));
        }
        let place = |(row, &group): (usize, &u32)| last[group as usize].unwrap_or((0, row));
        let places: Vec<(usize, usize)> = groups.iter().enumerate().map(place).collect();
        let sources: Vec<&Cells> =
            std::iter::once(&stored).chain(self.written.iter().map(|w| &w.cells)).collect();
        let present =
            BooleanBuffer::collect_bool(places.len(), |i| sources[places[i].0].present.value(places[i].1));
        let values: Vec<&Columns> = sources.iter().map(|s| &s.values).collect();
        Cells { present, values: interleave_columns(&values, &places) }
    }
}

/// Rows picked from several sets of columns of the same types: `(set, row)`.
pub(crate) fn interleave_columns(sources: &[&Columns], places: &[(usize, usize)]) -> Columns {
    let column = |i: usize| -> ArrayRef {
        let arrays: Vec<&dyn Array> = sources.iter().map(|s| s.arrays[i].as_ref()).collect();
        interleave(&arrays, places).expect("all have the state's types")
    };
    Columns::new(places.len(), (0..sources[0].arrays.len()).map(column).collect())
}

/// The slots of some groups.
pub(crate) fn slots(groups: &[u32], slot_of_group: &[u32]) -> Vec<u32> {
    groups.iter().map(|&group| slot_of_group[group as usize]).collect()
}

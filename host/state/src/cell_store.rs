//! Values by slot that may be absent: those of a value state, or the accumulators of sessions.

use arrow_buffer::BooleanBuffer;
use millstream_types::{Cells, Column, Columns};

use crate::{
    bits::Bits,
    row_store::RowStore,
    slot_store::{SessionStore, SlotStore},
};

/// A row of columns a slot, or none.
#[derive(Clone, Debug)]
pub(crate) struct CellStore {
    rows: RowStore,
    present: Bits,
}

impl CellStore {
    /// An empty store of these columns.
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { rows: RowStore::new(columns), present: Bits::default() }
    }

    /// Makes room for slots below `slots`; before that none of them may be named.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.rows.grow(slots);
    }

    /// Whether a slot has a value.
    pub(crate) fn is_present(&self, slot: u32) -> bool {
        self.present.get(slot)
    }

    /// What lies at each slot, be there a value or not.
    pub(crate) fn rows(&self) -> &RowStore {
        &self.rows
    }

    /// The values of some slots.
    pub(crate) fn read(&self, slots: &[u32]) -> Cells {
        Cells { present: self.present.gather(slots), values: self.read_values(slots) }
    }

    /// The values of slots that are known to have one.
    pub(crate) fn read_values(&self, slots: &[u32]) -> Columns {
        self.rows.read(slots)
    }

    /// Sets the value of slot `slots[i]` to row `i`, or clears it where that is absent. A slot named twice ends as the
    /// later row says.
    pub(crate) fn write(&mut self, slots: &[u32], cells: &Cells) {
        if cells.present.count_set_bits() == slots.len() {
            return self.write_values(slots, &cells.values);
        }
        slots.iter().zip(&cells.present).for_each(|(&slot, present)| _ = self.present.set(slot, present));
        let rows: Vec<usize> = cells.present.set_indices().collect();
        let written: Vec<u32> = rows.iter().map(|&row| slots[row]).collect();
        self.rows.write_rows(&written, &cells.values, rows.iter().copied());
        absent(&cells.present).for_each(|row| self.release(slots[row]));
    }

    /// Sets the value of slot `slots[i]` to row `i`.
    pub(crate) fn write_values(&mut self, slots: &[u32], values: &Columns) {
        self.present.set_all(slots);
        self.rows.write(slots, values);
    }

    /// Sets the value of slot `slots[i]` to row `rows[i]`.
    pub(crate) fn write_rows(
        &mut self,
        slots: &[u32],
        values: &Columns,
        rows: impl Iterator<Item = usize> + Clone,
    ) {
        self.present.set_all(slots);
        self.rows.write_rows(slots, values, rows);
    }

    /// Clears a slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.present.set(slot, false);
        self.release(slot);
    }

    fn release(&mut self, slot: u32) {
        if !self.present.get(slot) {
            self.rows.remove(slot);
        }
    }
}

impl SlotStore for CellStore {
    fn new(columns: &[Column]) -> Self {
        CellStore::new(columns)
    }

    fn grow(&mut self, slots: usize) {
        CellStore::grow(self, slots);
    }

    fn remove(&mut self, slot: u32) {
        CellStore::remove(self, slot);
    }
}

impl SessionStore for CellStore {
    fn bytes(&self) -> (usize, usize) {
        (self.rows.bytes_per_slot(), self.rows.bytes_elsewhere())
    }

    fn is_present(&self, slot: u32) -> bool {
        CellStore::is_present(self, slot)
    }
}

fn absent(present: &BooleanBuffer) -> impl Iterator<Item = usize> {
    (0..present.len()).filter(|&row| !present.value(row))
}

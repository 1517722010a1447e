//! Windows read from memory and from the store.

use std::ops::ControlFlow;

use millstream_types::{Columns, EncodedKeys, Runs, Window, hash_key};

use super::{ByEnd, Namespaces};
use crate::{
    AccumulatorSlice, ContentSlice, Cursor, StateError, Table,
    list_store::ListStore,
    overflow::rows::{end_of_window, put_window_row, split_window_row, window_key},
    row_codec::RowReader,
    row_store::RowStore,
    snapshot::{take_bytes, take_u32},
    window_state::Place,
};

impl Namespaces<RowStore> {
    /// Keys of a window with their rows: first those in memory, then those in the store.
    pub(crate) fn scan(
        &mut self,
        window: Window,
        cursor: Cursor,
        limit: usize,
    ) -> Result<AccumulatorSlice, StateError> {
        let is_stored = self.is_stored(window);
        let from = match (cursor.0, self.get(window)) {
            (Place::Stored(from), _) => from,
            (Place::Slot(_), None) => Vec::new(),
            (Place::Slot(slot), Some(namespace)) => {
                let (slots, next) = namespace.slots_from(slot, limit);
                let next = next.or_else(|| is_stored.then(|| Cursor::stored(Vec::new())));
                let accumulators = namespace.store.read(&slots);
                return Ok(AccumulatorSlice { keys: namespace.keys_at(&slots), accumulators, next });
            }
        };
        let (mut keys, mut rows, mut next) = (EncodedKeys::new(), self.codec.reader(0), None);
        self.scan_stored(window, from, &mut |row_key, mut row| {
            if keys.len() >= limit.max(1) {
                next = Some(Cursor::stored(row_key.to_vec()));
                return Ok(ControlFlow::Break(()));
            }
            let (key, _) = split_window_row(row_key)?;
            keys.push(key, hash_key(key));
            rows.read(&mut row)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(AccumulatorSlice { keys, accumulators: rows.finish(), next })
    }
}

impl Namespaces<ListStore> {
    /// Keys of a window with their rows. If the store has any of it, it gets the rest first, since a key's rows lie
    /// together there.
    pub(crate) fn scan(
        &mut self,
        window: Window,
        cursor: Cursor,
        limit: usize,
    ) -> Result<ContentSlice, StateError> {
        let is_stored = self.is_stored(window);
        match cursor.0 {
            Place::Stored(from) => self.scan_lists(window, from, limit),
            Place::Slot(_) if is_stored => {
                self.evict(window)?;
                self.scan_lists(window, Vec::new(), limit)
            }
            Place::Slot(slot) => self.scan_memory(window, slot, limit),
        }
    }

    fn scan_memory(&self, window: Window, from: u32, limit: usize) -> Result<ContentSlice, StateError> {
        let Some(namespace) = self.get(window) else {
            let rows = Runs { offsets: vec![0], items: self.no_rows() };
            return Ok(ContentSlice { keys: EncodedKeys::new(), rows, next: None });
        };
        let (mut slots, mut rows) = (Vec::new(), 0);
        let occupied = (from..namespace.keys.slots() as u32).filter(|&s| namespace.keys.is_occupied(s));
        let mut occupied = occupied.peekable();
        while let Some(slot) = occupied.next_if(|_| rows < limit) {
            rows += namespace.store.rows(slot);
            slots.push(slot);
        }
        let next = occupied.next().map(Cursor::slot);
        let rows = namespace.store.read(slots.iter().copied())?;
        Ok(ContentSlice { keys: namespace.keys_at(&slots), rows, next })
    }

    fn scan_lists(
        &mut self,
        window: Window,
        from: Vec<u8>,
        limit: usize,
    ) -> Result<ContentSlice, StateError> {
        let (mut keys, mut rows, mut next) = (EncodedKeys::new(), self.codec.reader(0), None);
        let (mut offsets, mut last) = (Vec::new(), Vec::new());
        self.scan_stored(window, from, &mut |row_key, row| {
            let (key, prefix) = split_window_row(row_key)?;
            if last != row_key[..prefix] {
                if rows.rows() >= limit && !keys.is_empty() {
                    next = Some(Cursor::stored(row_key.to_vec()));
                    return Ok(ControlFlow::Break(()));
                }
                offsets.push(rows.rows() as u32);
                keys.push(key, hash_key(key));
                last.clear();
                last.extend_from_slice(&row_key[..prefix]);
            }
            read_piece(row, &mut rows)?;
            Ok(ControlFlow::Continue(()))
        })?;
        offsets.push(rows.rows() as u32);
        Ok(ContentSlice { keys, rows: Runs { offsets, items: rows.finish() }, next })
    }

    /// How many rows groups of the call have.
    pub(crate) fn rows_of_groups(&mut self, groups: &[u32]) -> Result<Vec<u32>, StateError> {
        let mut counts = Vec::with_capacity(groups.len());
        for &group in groups {
            let (window, slot) = self.place_of(group);
            let mut rows = self.get(window).map_or(0, |namespace| namespace.store.rows(slot) as u32);
            self.pieces_of(window, slot, &mut |_, mut row| {
                rows += take_u32(&mut row)?;
                Ok(())
            })?;
            counts.push(rows);
        }
        Ok(counts)
    }

    /// The rows of groups of the call, those that are in the store before the others, which came later.
    pub(crate) fn read_groups(&mut self, groups: &[u32]) -> Result<ContentSlice, StateError> {
        let (mut keys, mut offsets) = (EncodedKeys::new(), vec![0]);
        let mut rows = self.codec.reader(groups.len());
        for &group in groups {
            let (window, slot) = self.place_of(group);
            self.pieces_of(window, slot, &mut |_, row| read_piece(row, &mut rows))?;
            if let Some(namespace) = self.get(window) {
                keys.push(namespace.keys.key(slot), namespace.keys.table_hash(slot));
                rows.read_all(namespace.store.encoded(slot), namespace.store.rows(slot))?;
            }
            offsets.push(rows.rows() as u32);
        }
        Ok(ContentSlice { keys, rows: Runs { offsets, items: rows.finish() }, next: None })
    }

    /// Removes what the store has of groups of the call.
    pub(crate) fn remove_pieces(&mut self, groups: &[u32]) -> Result<(), StateError> {
        for &group in groups {
            let (window, slot) = self.place_of(group);
            let mut pieces = Vec::new();
            self.pieces_of(window, slot, &mut |row_key, _| {
                pieces.push(row_key.to_vec());
                Ok(())
            })?;
            if let Some(spill) = self.spill.as_mut().filter(|_| !pieces.is_empty()) {
                pieces.iter().for_each(|piece| spill.overflow.store.delete(Table::Keys, piece));
                spill.overflow.apply()?;
                spill.removed(window, pieces.len() as u64);
            }
        }
        Ok(())
    }

    /// The window of a group of the call, and its slot there.
    fn place_of(&self, group: u32) -> (Window, u32) {
        let at = self.call.partition_point(|part| part.first_group + part.groups <= group);
        (self.call[at].window, self.grouping.slot_of_group[group as usize])
    }

    fn pieces_of(&mut self, window: Window, slot: u32, piece: &mut EachPiece<'_>) -> Result<(), StateError> {
        let Self { windows, spill: Some(spill), .. } = self else { return Ok(()) };
        let Some(namespace) = windows.get(&ByEnd::of(window)).filter(|_| spill.entries(window) > 0) else {
            return Ok(());
        };
        let mut prefix = Vec::new();
        put_window_row(window, namespace.keys.key(slot), spill.overflow.max, &mut prefix);
        let mut until = prefix.clone();
        // Behind all numbers of pieces.
        until.extend([u8::MAX; 9]);
        spill.overflow.store.scan(Table::Keys, &prefix, Some(&until), &mut |row_key, row| {
            piece(row_key, row)?;
            Ok(ControlFlow::Continue(()))
        })
    }
}

impl<S: super::WindowStore> Namespaces<S> {
    /// Visits the rows that the store has of a window, from a row key on, or from the first.
    fn scan_stored(
        &mut self,
        window: Window,
        from: Vec<u8>,
        visit: &mut crate::Visit<'_>,
    ) -> Result<(), StateError> {
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let from = if from.is_empty() { window_key(window) } else { from };
        spill.overflow.store.scan(Table::Keys, &from, Some(&end_of_window(window)), visit)
    }

    /// No row.
    pub(crate) fn no_rows(&self) -> Columns {
        self.codec.reader(0).finish()
    }
}

/// Takes the key and the rows of a piece.
type EachPiece<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StateError> + 'a;

/// Reads the rows of a piece.
fn read_piece(mut row: &[u8], rows: &mut RowReader) -> Result<(), StateError> {
    let count = take_u32(&mut row)?;
    rows.read_all(take_bytes(&mut row)?, count as usize)
}

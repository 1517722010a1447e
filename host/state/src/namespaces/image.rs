//! Windows in a snapshot: those in memory as chunks, those in the store as an image of it.

use std::ops::{ControlFlow, Range};

use millstream_types::{MaxParallelism, StateFiles, StateForm, StatePart, Window};

use super::{ByEnd, Namespaces};
use crate::{
    StateError, StateName, StoredState, Table,
    overflow::{
        header_of,
        rows::{end_of_window, group_in_window, put_window, take_window, take_window_value, window_value},
    },
    slot_store::WindowStore,
    snapshot,
};

impl<S: WindowStore> Namespaces<S> {
    /// All windows as parts of a snapshot.
    pub(crate) fn snapshot(
        &mut self,
        name: StateName<'_>,
        form: StateForm,
        max: MaxParallelism,
    ) -> Result<Vec<StatePart>, StateError> {
        if S::IN_PIECES {
            self.evict_what_is_in_both()?;
        }
        let chunks = snapshot::part(name.name, form, &self.columns, self.chunks(max));
        let mut parts = vec![StatePart { version: name.version, ..chunks }];
        if let Some(spill) = self.spill.as_mut().filter(|spill| !spill.stored.is_empty()) {
            // An image says itself of what state it is.
            parts.retain(|part| !part.is_empty());
            spill.overflow.store.delete_range(Table::Timers, &[], &end_of_window(LAST));
            for (window, &entries) in &spill.stored {
                let mut key = Vec::new();
                put_window(window.window(), &mut key);
                let value = window_value(entries, spill.next_piece);
                spill.overflow.put(Table::Timers, &key, &value)?;
            }
            spill.overflow.apply()?;
            let columns = self.columns.clone();
            let state = StoredState { name: name.name.to_owned(), form, version: name.version, columns };
            parts.push(spill.overflow.image(
                state,
                spill.stored.values().sum(),
                spill.stored.len() as u64,
            )?);
        }
        Ok(parts)
    }

    /// A window of which the store has something goes there as a whole: in two parts the order of its rows would be lost.
    fn evict_what_is_in_both(&mut self) -> Result<(), StateError> {
        let in_both = self.windows.keys().map(|at| at.window()).filter(|&window| self.is_stored(window));
        let in_both: Vec<Window> = in_both.collect();
        in_both.into_iter().try_for_each(|window| self.evict(window))
    }

    /// Adds what a part of a snapshot has.
    pub(crate) fn restore_part(&mut self, part: &StatePart, form: StateForm) -> Result<(), StateError> {
        if part.form != StateForm::Store {
            snapshot::check(part, &self.columns)?;
            return part.chunks.iter().try_for_each(|chunk| self.restore(&chunk.bytes));
        }
        let header = header_of(part, form, &self.columns)?;
        let is_empty = self.windows.is_empty();
        let (Some(spill), Some(files)) = (&mut self.spill, &part.files) else {
            return Err(StateError::NotDeclared { name: part.name.clone() });
        };
        match files.groups() {
            None if is_empty && spill.stored.is_empty() => {
                spill.overflow.lineage = header.lineage;
                spill.overflow.store.adopt(files)?;
                spill.adopt_windows()
            }
            groups => spill.copy(files, groups.unwrap_or(0..spill.overflow.max.groups())),
        }
    }
}

impl super::Spill {
    /// Takes up the windows of a store that has been taken up.
    fn adopt_windows(&mut self) -> Result<(), StateError> {
        let Self { overflow, stored, next_piece, .. } = self;
        overflow.store.scan(Table::Timers, &[], None, &mut |mut key, value| {
            let (entries, next) = take_window_value(value)?;
            stored.insert(ByEnd::of(take_window(&mut key)?), entries);
            *next_piece = next.max(*next_piece);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Copies the rows of some key groups.
    fn copy(&mut self, files: &StateFiles, groups: Range<u16>) -> Result<(), StateError> {
        let Self { overflow, stored, next_piece, .. } = self;
        let mut from = overflow.store.open(files)?;
        let mut windows = Vec::new();
        from.scan(Table::Timers, &[], None, &mut |mut key, value| {
            windows.push(take_window(&mut key)?);
            *next_piece = take_window_value(value)?.1.max(*next_piece);
            Ok(ControlFlow::Continue(()))
        })?;
        for window in windows {
            let (start, end) = (group_in_window(window, groups.start), group_in_window(window, groups.end));
            let mut entries = 0;
            from.scan(Table::Keys, &start, Some(&end), &mut |row_key, row| {
                entries += 1;
                overflow.put(Table::Keys, row_key, row)?;
                Ok(ControlFlow::Continue(()))
            })?;
            if entries > 0 {
                *stored.entry(ByEnd::of(window)).or_default() += entries;
            }
        }
        overflow.apply()
    }
}

/// The window behind all others.
const LAST: Window = Window { start: i64::MAX, end: i64::MAX };

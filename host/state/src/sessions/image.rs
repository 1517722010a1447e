//! Sessions in a snapshot: those in memory as chunks, those in the store as an image of it; and those in the store read
//! where they are.

use std::ops::{ControlFlow, Range};

use millstream_types::{EncodedKeys, MaxParallelism, StateFiles, StateForm, StatePart, Window, hash_key};

use super::{Sessions, snapshot::StoredSession, spill::Spill};
use crate::{
    Cursor, StateError, StateName, StoredState, Table,
    overflow::{
        header_of,
        rows::{put_session_timer, split_session_timer, split_sessions},
    },
    slot_store::SessionStore,
    snapshot::{self, take_bytes},
};

/// Sessions of the store: keys, windows, and what they have.
pub(crate) struct StoredSlice<E> {
    pub(crate) keys: EncodedKeys,
    pub(crate) windows: Vec<Window>,
    pub(crate) entries: E,
    pub(crate) next: Option<Cursor>,
}

impl<S: SessionStore> Sessions<S> {
    /// All sessions as parts of a snapshot.
    pub(crate) fn snapshot(
        &mut self,
        name: StateName<'_>,
        form: StateForm,
        max: MaxParallelism,
    ) -> Result<Vec<StatePart>, StateError> {
        let chunks = snapshot::part(name.name, form, &self.columns, self.chunks(max));
        let mut parts = vec![StatePart { version: name.version, ..chunks }];
        if let Some(spill) = self.spill.as_mut().filter(|spill| spill.keys > 0) {
            // An image says itself of what state it is.
            parts.retain(|part| !part.is_empty());
            let columns = self.columns.clone();
            let state = StoredState { name: name.name.to_owned(), form, version: name.version, columns };
            parts.push(spill.overflow.image(state, spill.sessions, spill.keys)?);
        }
        Ok(parts)
    }

    /// Adds what a part of a snapshot has.
    pub(crate) fn restore_part(&mut self, part: &StatePart, form: StateForm) -> Result<(), StateError> {
        if part.form != StateForm::Store {
            snapshot::check(part, &self.columns)?;
            return part.chunks.iter().try_for_each(|chunk| self.restore(&chunk.bytes));
        }
        let header = header_of(part, form, &self.columns)?;
        let is_empty = self.keys.is_empty();
        let (Some(spill), Some(files)) = (&mut self.spill, &part.files) else {
            return Err(StateError::NotDeclared { name: part.name.clone() });
        };
        match files.groups() {
            None if is_empty && spill.keys == 0 => {
                spill.overflow.lineage = header.lineage;
                spill.overflow.store.adopt(files)?;
                (spill.sessions, spill.keys) = (header.keys, header.timers[0]);
                spill.overflow.store.scan(Table::Timers, &[], None, &mut |timer, _| {
                    spill.next = Some(split_session_timer(timer)?.0);
                    Ok(ControlFlow::Break(()))
                })
            }
            groups => spill.copy(files, groups.unwrap_or(0..spill.overflow.max.groups())),
        }
    }

    /// Sessions of the store with something stored from a row key on, until `full` says of what the last one has that
    /// they are enough, and all of the last key.
    pub(crate) fn scan_stored(
        &mut self,
        from: &[u8],
        mut full: impl FnMut(&S::Entries) -> bool,
    ) -> Result<StoredSlice<S::Entries>, StateError> {
        let (keys, windows, entries) = (EncodedKeys::new(), Vec::new(), S::entries(&self.codec));
        let mut slice = StoredSlice { keys, windows, entries, next: None };
        let Some(spill) = &mut self.spill else { return Ok(slice) };
        let mut is_full = false;
        spill.overflow.store.scan(Table::Keys, from, None, &mut |row_key, row| {
            if is_full {
                slice.next = Some(Cursor::stored(row_key.to_vec()));
                return Ok(ControlFlow::Break(()));
            }
            let (_, _, mut sessions) = split_sessions(row)?;
            while !sessions.is_empty() {
                let key = take_bytes(&mut sessions)?;
                let session = StoredSession::take(&mut sessions)?;
                if session.has_content {
                    S::read(&mut slice.entries, &mut sessions)?;
                    slice.keys.push(key, hash_key(key));
                    slice.windows.push(session.window);
                    is_full |= full(&slice.entries);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(slice)
    }
}

impl Spill {
    /// Copies the rows of some key groups.
    fn copy(&mut self, files: &StateFiles, groups: Range<u16>) -> Result<(), StateError> {
        let Self { overflow, keys, sessions, next, .. } = self;
        let mut from = overflow.store.open(files)?;
        let (start, end) = (groups.start.to_be_bytes(), groups.end.to_be_bytes());
        let mut timer = Vec::new();
        from.scan(Table::Keys, &start, Some(&end), &mut |row_key, row| {
            let (time, count, _) = split_sessions(row)?;
            timer.clear();
            put_session_timer(time, row_key, &mut timer);
            overflow.put(Table::Keys, row_key, row)?;
            overflow.put(Table::Timers, &timer, &[])?;
            *next = Some(next.map_or(time, |next| next.min(time)));
            (*keys, *sessions) = (*keys + 1, *sessions + u64::from(count));
            Ok(ControlFlow::Continue(()))
        })?;
        overflow.apply()
    }
}

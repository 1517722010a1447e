//! Windows and sessions of an image, as chunks.

use std::ops::ControlFlow;

use millstream_types::{KeyGroup, StateForm, Window};

use super::WriteChunk;
use crate::{
    ReadTables, StateError, Table,
    overflow::rows::{
        end_of_window, group_in_window, group_start, split_sessions, split_window_row, take_window,
    },
    snapshot::{put_bytes, put_i64, put_u32, take_bytes, take_u32},
};

/// Writes what a key group has of all windows, those that end first before the others. A window with many keys is written
/// in several goes, as one after the other is read.
pub(super) fn write_windows(
    store: &mut dyn ReadTables,
    form: StateForm,
    group: KeyGroup,
    write: &mut WriteChunk<'_>,
) -> Result<(), StateError> {
    let mut windows = Vec::new();
    store.scan(Table::Timers, &[], None, &mut |mut key, _| {
        windows.push(take_window(&mut key)?);
        Ok(ControlFlow::Continue(()))
    })?;
    for window in windows {
        let from = group_in_window(window, group.0);
        let until = group.0.checked_add(1).map_or(end_of_window(window), |g| group_in_window(window, g));
        let mut go = Go { window, in_pieces: form == StateForm::Contents, ..Go::default() };
        store.scan(Table::Keys, &from, Some(&until), &mut |row_key, row| {
            let (key, _) = split_window_row(row_key)?;
            if go.key != key || go.keys == 0 {
                go.end_key();
                if go.bytes.len() >= WRITTEN_AT_ONCE {
                    go.write(write)?;
                }
                go.key = key.to_vec();
                go.keys += 1;
            }
            go.add(row)?;
            Ok(ControlFlow::Continue(()))
        })?;
        go.end_key();
        go.write(write)?;
    }
    Ok(())
}

/// Writes the sessions of a key group.
pub(super) fn write_sessions(
    store: &mut dyn ReadTables,
    group: KeyGroup,
    write: &mut WriteChunk<'_>,
) -> Result<(), StateError> {
    let until = group.0.checked_add(1).map(|next| group_start(KeyGroup(next)));
    let until = until.as_ref().map(|until| &until[..]);
    store.scan(Table::Keys, &group_start(group), until, &mut |_, row| {
        write(split_sessions(row)?.2)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Some keys of a window that are written together.
struct Go {
    window: Window,
    /// Whether a key has several rows, to be put together.
    in_pieces: bool,
    key: Vec<u8>,
    keys: u32,
    /// What the last key has, of so many rows.
    rows: u32,
    content: Vec<u8>,
    /// Keys with what they have.
    bytes: Vec<u8>,
}

impl Default for Go {
    fn default() -> Self {
        let (window, in_pieces, keys, rows) = (Window::GLOBAL, false, 0, 0);
        Self { window, in_pieces, key: Vec::new(), keys, rows, content: Vec::new(), bytes: Vec::new() }
    }
}

impl Go {
    fn add(&mut self, mut row: &[u8]) -> Result<(), StateError> {
        if self.in_pieces {
            self.rows += take_u32(&mut row)?;
            row = take_bytes(&mut row)?;
        }
        self.content.extend_from_slice(row);
        Ok(())
    }

    /// Puts the key whose content is complete, if there is one, behind the others.
    fn end_key(&mut self) {
        if self.keys == 0 {
            return;
        }
        put_bytes(&self.key, &mut self.bytes);
        if self.in_pieces {
            put_u32(self.rows, &mut self.bytes);
            put_bytes(&self.content, &mut self.bytes);
        } else {
            self.bytes.append(&mut self.content);
        }
        self.content.clear();
        self.rows = 0;
    }

    fn write(&mut self, write: &mut WriteChunk<'_>) -> Result<(), StateError> {
        if self.keys == 0 {
            return Ok(());
        }
        let mut header = Vec::new();
        put_i64(self.window.start, &mut header);
        put_i64(self.window.end, &mut header);
        put_u32(self.keys, &mut header);
        write(&header)?;
        write(&self.bytes)?;
        self.bytes.clear();
        self.keys = 0;
        Ok(())
    }
}

/// Bytes of keys of a window that are gathered before they are written.
const WRITTEN_AT_ONCE: usize = 1 << 20;

//! The chunks of an image, as a backend in memory would have written them.

use std::ops::ControlFlow;

use millstream_types::{
    Clock, KeyGroup, MaxParallelism, Redistribution, State, StateFiles, StateForm, StateKind, StatePart,
};

use super::{StoreHeader, header::kind_of, windows};
use crate::{
    ReadTables, StateError, StoredState, Table,
    cached_backend::key_row::{Layout, Piece, key_of, split_map_key},
    memory_backend::CLOCKS,
    snapshot::{put_bytes, put_u32},
};

/// Takes bytes of a chunk, in order, and may say that it takes no more.
pub type WriteChunk<'a> = dyn FnMut(&[u8]) -> Result<(), StateError> + 'a;

/// Reads an image whatever it is to become.
pub struct ImageReader {
    store: Box<dyn ReadTables>,
    layout: Layout,
    parts: Vec<(Source, StatePart)>,
    /// Kept as long as the store is open.
    _files: StateFiles,
}

/// Where the entries of a part are.
#[derive(Clone, Copy, Debug)]
enum Source {
    State(usize),
    Timers(Clock),
    Windows,
    Sessions,
}

impl ImageReader {
    /// A reader of these files, which `store` has open.
    pub fn new(header: &StoreHeader, files: StateFiles, store: Box<dyn ReadTables>) -> Self {
        let keyed = |state: &StoredState| {
            let kind = kind_of(state.form)?;
            let (name, columns) = (state.name.clone(), state.columns.clone());
            let (migrates_from, redistribution) = (Vec::new(), Redistribution::default());
            Some(State { name, kind, columns, version: state.version, migrates_from, redistribution })
        };
        let states: Vec<State> = header.states.iter().filter_map(keyed).collect();
        // How many key groups there are says only where keys are put, which they are already.
        let layout = Layout::new(&states, MaxParallelism::DEFAULT);
        let source = |(at, form): (usize, StateForm)| match form {
            StateForm::Value | StateForm::List | StateForm::Map => Some(Source::State(at)),
            StateForm::Accumulators | StateForm::Contents => Some(Source::Windows),
            StateForm::SessionAccumulators | StateForm::SessionContents => Some(Source::Sessions),
            _ => None,
        };
        let states = header.states.iter().map(|state| state.form).enumerate().filter_map(source);
        let sources = states.chain(CLOCKS.map(Source::Timers));
        let parts = sources.zip(header.parts()).collect();
        Self { store, layout, parts, _files: files }
    }

    /// What there is, without chunks.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &StatePart> {
        self.parts.iter().map(|(_, part)| part)
    }

    /// Writes the chunk that a key group has of a part, by the part's position; nothing if it has none.
    ///
    /// # Errors
    /// If the store cannot be read, or `write` says so.
    pub fn write_chunk(
        &mut self,
        part: usize,
        group: KeyGroup,
        write: &mut WriteChunk<'_>,
    ) -> Result<(), StateError> {
        match self.parts[part].0 {
            Source::State(state) if self.layout.states[state].kind == StateKind::Map => {
                self.write_maps(state, group, write)
            }
            Source::Windows => {
                windows::write_windows(&mut *self.store, self.parts[part].1.form, group, write)
            }
            Source::Sessions => windows::write_sessions(&mut *self.store, group, write),
            source => self.write_rows(source, group, write),
        }
    }

    /// The same as a piece of the part that has nothing else; none if the group has nothing.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn piece(&mut self, part: usize, group: KeyGroup) -> Result<Option<StatePart>, StateError> {
        let mut bytes = Vec::new();
        self.write_chunk(part, group, &mut |more| {
            bytes.extend_from_slice(more);
            Ok(())
        })?;
        let chunks = vec![millstream_types::StateChunk::whole(group, bytes)];
        let is_there = !chunks[0].bytes.is_empty();
        Ok(is_there.then(|| StatePart { chunks, ..self.parts[part].1.clone() }))
    }

    fn write_rows(
        &mut self,
        source: Source,
        group: KeyGroup,
        write: &mut WriteChunk<'_>,
    ) -> Result<(), StateError> {
        let (from, until) = bounds(group);
        let (layout, mut entry) = (&self.layout, Vec::new());
        self.store.scan(Table::Keys, &from, until.as_deref(), &mut |row_key, row| {
            let (_, key) = key_of(row_key)?;
            entry.clear();
            match source {
                Source::State(wanted) => {
                    let piece = |state: usize, piece: Piece<'_>| {
                        if state == wanted {
                            put_piece(key, piece, &mut entry);
                        }
                        Ok(())
                    };
                    layout.parse(row, piece, |_, _| Ok(()))?;
                }
                Source::Timers(wanted) => {
                    let times = |clock: Clock, times: &[u8]| {
                        if clock == wanted {
                            put_bytes(key, &mut entry);
                            entry.extend_from_slice(times);
                        }
                        Ok(())
                    };
                    layout.parse(row, |_, _| Ok(()), times)?;
                }
                // They are read otherwise.
                Source::Windows | Source::Sessions => {}
            }
            if !entry.is_empty() {
                write(&entry)?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The number of entries stands before them, so a map is gathered first.
    fn write_maps(
        &mut self,
        state: usize,
        group: KeyGroup,
        write: &mut WriteChunk<'_>,
    ) -> Result<(), StateError> {
        let (from, until) = bounds(group);
        let mut map = Gathered::default();
        self.store.scan(Table::Map(state), &from, until.as_deref(), &mut |stored, row| {
            let (_, key, map_key) = split_map_key(stored)?;
            let prefix = &stored[..stored.len() - map_key.len()];
            if map.prefix != prefix {
                map.write(write)?;
                map.begin(prefix, key);
            }
            map.entries += 1;
            put_bytes(map_key, &mut map.bytes);
            put_bytes(row, &mut map.bytes);
            Ok(ControlFlow::Continue(()))
        })?;
        map.write(write)
    }
}

/// The map that is being read.
#[derive(Default)]
struct Gathered {
    prefix: Vec<u8>,
    /// Key, number of entries, entries.
    bytes: Vec<u8>,
    count_at: usize,
    entries: u32,
}

impl Gathered {
    fn begin(&mut self, prefix: &[u8], key: &[u8]) {
        self.prefix.clear();
        self.prefix.extend_from_slice(prefix);
        self.bytes.clear();
        put_bytes(key, &mut self.bytes);
        (self.count_at, self.entries) = (self.bytes.len(), 0);
        put_u32(0, &mut self.bytes);
    }

    fn write(&mut self, write: &mut WriteChunk<'_>) -> Result<(), StateError> {
        if self.entries == 0 {
            return Ok(());
        }
        self.bytes[self.count_at..self.count_at + 4].copy_from_slice(&self.entries.to_le_bytes());
        write(&self.bytes)
    }
}

/// Where the rows of a key group begin and end.
pub(crate) fn bounds(group: KeyGroup) -> (Vec<u8>, Option<Vec<u8>>) {
    let until = group.0.checked_add(1).map(|next| next.to_be_bytes().to_vec());
    (group.0.to_be_bytes().to_vec(), until)
}

fn put_piece(key: &[u8], piece: Piece<'_>, out: &mut Vec<u8>) {
    match piece {
        Piece::Value(row) => {
            put_bytes(key, out);
            out.extend_from_slice(row);
        }
        Piece::List { rows, bytes } => {
            put_bytes(key, out);
            put_u32(rows, out);
            put_bytes(bytes, out);
        }
        Piece::Map { .. } => {}
    }
}

impl std::fmt::Debug for ImageReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<(&str, StateForm)> =
            self.parts().map(|part| (part.name.as_str(), part.form)).collect();
        f.debug_struct("ImageReader").field("parts", &parts).finish()
    }
}

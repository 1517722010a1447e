//! State in a store as parts of a snapshot, and back.

use std::ops::ControlFlow;

use millstream_types::{Clock, EncodedKeys, KeyGroup, State, StateChunk, StateForm, StateKind, StatePart};

use super::{
    CachedBackend,
    key_row::{CLOCKS, Loaded, Piece, key_of},
    maps::map_of_mut,
};
use crate::{
    StateError, Table,
    fold::fold,
    memory_backend::restore::declared,
    snapshot::{self, put_bytes, put_u32, take_bytes, take_i64, take_key, take_u32},
};

/// Chunks that are being written, in the order of key groups.
#[derive(Debug, Default)]
struct Chunks(Vec<StateChunk>);

impl Chunks {
    /// The chunk of a key group, which is not before that of the last call.
    fn of(&mut self, group: KeyGroup) -> &mut Vec<u8> {
        if self.0.last().is_none_or(|chunk| chunk.key_group != Some(group)) {
            self.0.push(StateChunk::whole(group, Vec::new()));
        }
        &mut self.0.last_mut().expect("there is one by now").bytes
    }
}

impl CachedBackend {
    /// Everything as parts, those of timers last. The store has all of it afterwards.
    pub(super) fn stored_parts(&mut self) -> Result<Vec<StatePart>, StateError> {
        self.write_all_back()?;
        let mut states: Vec<Chunks> = self.layout.states.iter().map(|_| Chunks::default()).collect();
        let mut timers = [Chunks::default(), Chunks::default()];
        let layout = &self.layout;
        self.store.scan(Table::Keys, &[], None, &mut |row_key, row| {
            let (group, key) = key_of(row_key)?;
            let piece = |state: usize, piece: Piece<'_>| {
                put_piece(key, piece, || states[state].of(group));
                Ok(())
            };
            let times = |clock: Clock, times: &[u8]| {
                let at = CLOCKS.iter().position(|&c| c == clock).expect("it is one of them");
                let out = timers[at].of(group);
                put_bytes(key, out);
                out.extend_from_slice(times);
                Ok(())
            };
            layout.parse(row, piece, times)?;
            Ok(ControlFlow::Continue(()))
        })?;
        for state in 0..self.layout.states.len() {
            if self.layout.states[state].kind == StateKind::Map {
                states[state] = self.map_chunks(state)?;
            }
        }
        let stored = self.layout.states.iter().zip(states);
        let stored = stored.filter_map(|(state, chunks)| part_of(state, chunks.0));
        let [event, processing] = timers.map(|chunks| chunks.0);
        Ok(stored
            .chain([
                snapshot::part("event", StateForm::EventTimers, &[], event),
                snapshot::part("processing", StateForm::ProcessingTimers, &[], processing),
            ])
            .collect())
    }

    fn map_chunks(&mut self, state: usize) -> Result<Chunks, StateError> {
        let mut chunks = Chunks::default();
        // The prefix of the map that is being written, where its number of entries stands, and what that is by now.
        let (mut prefix, mut at, mut entries) = (Vec::new(), 0, 0u32);
        self.store.scan(Table::Map(state), &[], None, &mut |stored, row| {
            let (group, key, map_key) = split_map_key(stored)?;
            let out = chunks.of(group);
            let length = stored.len() - map_key.len();
            if prefix != stored[..length] {
                prefix = stored[..length].to_vec();
                put_bytes(key, out);
                (at, entries) = (out.len(), 0);
                put_u32(0, out);
            }
            entries += 1;
            out[at..at + 4].copy_from_slice(&entries.to_le_bytes());
            put_bytes(map_key, out);
            put_bytes(row, out);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(chunks)
    }

    /// Adds what a part has to the state of its name, or to the timers, and evicts what has no room.
    pub(super) fn restore_part(&mut self, states: &[State], part: &StatePart) -> Result<(), StateError> {
        let part = &fold(part)?;
        let clock = match part.form {
            StateForm::EventTimers => Some(Clock::Event),
            StateForm::ProcessingTimers => Some(Clock::Processing),
            _ => None,
        };
        for chunk in &part.chunks {
            let mut bytes = &chunk.bytes[..];
            match clock {
                Some(clock) => self.restore_timers(clock, &mut bytes)?,
                None => {
                    let state = declared(states, part)?;
                    match states[state].kind {
                        StateKind::Map => self.restore_maps(state, &mut bytes)?,
                        _ => self.restore_rows(state, &mut bytes)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn restore_rows(&mut self, state: usize, bytes: &mut &[u8]) -> Result<(), StateError> {
        let mut keys = EncodedKeys::new();
        while !bytes.is_empty() {
            keys.clear();
            let mut pieces = Vec::new();
            while !bytes.is_empty() && keys.len() < RESTORED_AT_ONCE {
                take_key(bytes, &mut keys)?;
                pieces.push(match self.layout.states[state].kind {
                    StateKind::List => Piece::List { rows: take_u32(bytes)?, bytes: take_bytes(bytes)? },
                    _ => Piece::Value(self.layout.codecs[state].split_row(bytes)?),
                });
            }
            let slots = self.slots_with_state(&keys)?;
            let mut loaded = Loaded::new(&self.layout);
            for (&slot, piece) in slots.iter().zip(pieces) {
                self.marks.changed(slot);
                loaded.add(state, slot, piece)?;
            }
            loaded.put(&mut self.cache);
            self.make_room()?;
        }
        Ok(())
    }

    fn restore_maps(&mut self, state: usize, bytes: &mut &[u8]) -> Result<(), StateError> {
        let mut keys = EncodedKeys::new();
        // Entries that are left of the last key, as a map may be larger than what is restored at once.
        let mut left = 0;
        while left > 0 || !bytes.is_empty() {
            let last = keys.len().checked_sub(1).filter(|_| left > 0).map(|i| keys.key(i).to_vec());
            keys.clear();
            if let Some(key) = last {
                keys.push(&key, millstream_types::hash_key(&key));
            }
            let mut entries = Vec::new();
            while (left > 0 || !bytes.is_empty()) && entries.len() < RESTORED_AT_ONCE {
                if left == 0 {
                    take_key(bytes, &mut keys)?;
                    left = take_u32(bytes)?;
                } else {
                    entries.push((keys.len() - 1, take_bytes(bytes)?, take_bytes(bytes)?));
                    left -= 1;
                }
            }
            let slots = self.slots_with_state(&keys)?;
            for (key, map_key, row) in entries {
                let slot = slots[key];
                self.marks.changed(slot);
                self.maps[state].add(slot, Some(map_key.into()));
                let count = self.maps[state].entries(slot);
                self.maps[state].set_entries(slot, count + 1);
                map_of_mut(&mut self.cache, state).put(slot, map_key, row);
            }
            self.make_room()?;
        }
        Ok(())
    }

    fn restore_timers(&mut self, clock: Clock, bytes: &mut &[u8]) -> Result<(), StateError> {
        let mut keys = EncodedKeys::new();
        while !bytes.is_empty() {
            keys.clear();
            let mut timers = Vec::new();
            while !bytes.is_empty() && timers.len() < RESTORED_AT_ONCE {
                take_key(bytes, &mut keys)?;
                for _ in 0..take_u32(bytes)? {
                    timers.push((keys.len() - 1, take_i64(bytes)?));
                }
            }
            let slots = self.slots_with_state(&keys)?;
            let room = self.cache.keys.slots();
            self.cache.timers(clock).grow(room);
            for (key, time) in timers {
                self.marks.changed(slots[key]);
                self.cache.timers(clock).set(slots[key], time);
            }
            self.make_room()?;
        }
        Ok(())
    }
}

fn put_piece<'a>(key: &[u8], piece: Piece<'_>, chunk: impl FnOnce() -> &'a mut Vec<u8>) {
    match piece {
        Piece::Value(row) => {
            let out = chunk();
            put_bytes(key, out);
            out.extend_from_slice(row);
        }
        Piece::List { rows, bytes } => {
            let out = chunk();
            put_bytes(key, out);
            put_u32(rows, out);
            put_bytes(bytes, out);
        }
        Piece::Map { .. } => {}
    }
}

fn part_of(state: &State, chunks: Vec<StateChunk>) -> Option<StatePart> {
    let form = match state.kind {
        StateKind::Value => StateForm::Value,
        StateKind::List => StateForm::List,
        StateKind::Map => StateForm::Map,
        StateKind::Broadcast | StateKind::Operator => return None,
    };
    let (name, columns) = (state.name.clone(), state.columns.clone());
    Some(StatePart { name, form, version: state.version, columns, base: None, chunks })
}

/// Key group, key and map key of a key of a map's table.
fn split_map_key(stored: &[u8]) -> Result<(KeyGroup, &[u8], &[u8]), StateError> {
    let (group, rest) = key_of(stored)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or(StateError::DamagedRow)?;
    let key = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or(StateError::DamagedRow)?;
    Ok((group, key.0, key.1))
}

/// Entries that are restored at once.
const RESTORED_AT_ONCE: usize = 4096;

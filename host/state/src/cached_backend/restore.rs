//! Chunks of a snapshot into the cache and, as far as it has no room, into the store.

use millstream_types::{Clock, EncodedKeys, State, StateForm, StateKind, StatePart};

use super::{
    CachedBackend,
    key_row::{Loaded, Piece},
    maps::map_of_mut,
};
use crate::{
    StateError,
    fold::fold,
    memory_backend::restore::declared,
    snapshot::{take_bytes, take_i64, take_key, take_u32},
};

impl CachedBackend {
    /// Adds what a part has to the state of its name, or to the timers, and evicts what has no room.
    pub(super) fn restore_part(&mut self, states: &[State], part: &StatePart) -> Result<(), StateError> {
        if part.form == StateForm::Store {
            return self.restore_image(part);
        }
        let part = &fold(part)?;
        let clock = match part.form {
            StateForm::EventTimers => Some(Clock::Event),
            StateForm::ProcessingTimers => Some(Clock::Processing),
            StateForm::Expiries => Some(Clock::Expiry),
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

/// Entries that are restored at once.
const RESTORED_AT_ONCE: usize = 4096;

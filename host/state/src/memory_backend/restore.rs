//! Keyed state and timers out of the parts of a snapshot.

use millstream_types::{
    ChunkKind, Clock, EncodedKeys, State, StateChunk, StateForm, StateKind, StatePart, hash_key,
};

use super::{CLOCKS, MemoryBackend, Store};
use crate::{
    StateError,
    cell_store::CellStore,
    list_store::ListStore,
    map_state::MapState,
    row_codec::RowCodec,
    snapshot::{self, Stored, slots_of, take_bytes, take_i64, take_key, take_u32},
};

impl MemoryBackend {
    /// Adds what a part has to the state of its name, or to the timers.
    pub(super) fn restore_part(&mut self, states: &[State], part: &StatePart) -> Result<(), StateError> {
        let store = self.store_of(states, part)?;
        let tracked = self.is_base(part);
        for chunk in &part.chunks {
            let mut bytes = &chunk.bytes[..];
            if chunk.kind == ChunkKind::Changes {
                self.remove_gone(store, &mut bytes)?;
            } else {
                self.whole_bytes += bytes.len();
            }
            let slots = self.restore_entries(store, part, bytes)?;
            if tracked {
                self.track(chunk, &slots);
            }
        }
        Ok(())
    }

    /// The position of the store that a part is for.
    fn store_of(&self, states: &[State], part: &StatePart) -> Result<usize, StateError> {
        match part.form {
            StateForm::EventTimers => Ok(self.states.len()),
            StateForm::ProcessingTimers => Ok(self.states.len() + 1),
            StateForm::Expiries => Ok(self.states.len() + 2),
            _ => declared(states, part),
        }
    }

    /// Whether the next snapshot may build on the checkpoint that a part is of. If not, it builds on nothing.
    fn is_base(&mut self, part: &StatePart) -> bool {
        let Some(base) = part.base else {
            self.changes.build_on_nothing();
            return false;
        };
        self.rotation.restored(&part.chunks);
        self.changes.restored(base, self.rotation.next)
    }

    /// Notes that a chunk's keys are in a snapshot.
    fn track(&mut self, chunk: &StateChunk, slots: &[u32]) {
        if let Some(group) = chunk.key_group {
            slots.iter().for_each(|&slot| self.key_groups.set(slot, group));
        }
        self.changes.add_stored(slots.iter().copied());
    }

    /// Reads the keys that have gone, and has them go.
    fn remove_gone(&mut self, store: usize, bytes: &mut &[u8]) -> Result<(), StateError> {
        for _ in 0..take_u32(bytes)? {
            let key = take_bytes(bytes)?;
            let Some(slot) = self.keys.find(key, hash_key(key)) else { continue };
            self.clear_slot(store, slot);
            if !self.is_present(slot) {
                self.keys.remove(slot);
                self.key_groups.forget(slot);
                self.changes.forget_stored(slot);
            }
        }
        Ok(())
    }

    /// Forgets what a slot has in one store.
    fn clear_slot(&mut self, store: usize, slot: u32) {
        match store.checked_sub(self.states.len()) {
            None => self.states[store].remove(slot),
            Some(clock) => _ = self.timers(CLOCKS[clock]).remove_all(slot),
        }
    }

    /// Reads entries in the place of what their keys have in a store. Returns their slots.
    fn restore_entries(
        &mut self,
        store: usize,
        part: &StatePart,
        bytes: &[u8],
    ) -> Result<Vec<u32>, StateError> {
        let clock = store.saturating_sub(self.states.len());
        let codec = RowCodec::new(&part.columns);
        let slots = match self.states.get_mut(store) {
            Some(Store::Value(value)) => {
                let (keys, entries) = read_entries::<CellStore>(&codec, bytes)?;
                let slots = slots_of(&keys, &mut self.keys);
                value.grow(self.keys.slots());
                value.store_mut().put(&slots, entries);
                slots
            }
            Some(Store::List(list)) => {
                let (keys, entries) = read_entries::<ListStore>(&codec, bytes)?;
                let slots = slots_of(&keys, &mut self.keys);
                list.grow(self.keys.slots());
                list.store_mut().put(&slots, entries);
                slots
            }
            Some(Store::Map(map)) => each_key(&mut self.keys, bytes, |slot, slots, bytes| {
                map.grow(slots);
                map.remove(slot);
                read_map(map, slot, bytes)
            })?,
            Some(Store::Elsewhere) => return Err(StateError::NotDeclared { name: part.name.clone() }),
            None => {
                let timers = match CLOCKS[clock] {
                    Clock::Event => &mut self.event,
                    Clock::Processing => &mut self.processing,
                    Clock::Expiry => &mut self.expiry,
                };
                each_key(&mut self.keys, bytes, |slot, slots, bytes| {
                    timers.grow(slots);
                    timers.remove_all(slot);
                    (0..take_u32(bytes)?).try_for_each(|_| {
                        timers.set(slot, take_i64(bytes)?);
                        Ok(())
                    })
                })?
            }
        };
        self.grow();
        Ok(slots)
    }
}

/// Reads entries, each behind its key.
fn read_entries<S: Stored>(
    codec: &RowCodec,
    mut bytes: &[u8],
) -> Result<(EncodedKeys, S::Entries), StateError> {
    let (mut keys, mut entries) = (EncodedKeys::new(), S::entries(codec));
    while !bytes.is_empty() {
        take_key(&mut bytes, &mut keys)?;
        S::read(&mut entries, &mut bytes)?;
    }
    Ok((keys, entries))
}

/// Has `read` read what is behind each key; it gets the key's slot and how many slots there are. Returns the slots.
fn each_key(
    table: &mut crate::KeyTable,
    mut bytes: &[u8],
    mut read: impl FnMut(u32, usize, &mut &[u8]) -> Result<(), StateError>,
) -> Result<Vec<u32>, StateError> {
    let (mut keys, mut slots) = (EncodedKeys::new(), Vec::new());
    while !bytes.is_empty() {
        keys.clear();
        take_key(&mut bytes, &mut keys)?;
        let (slot, _) = table.insert(keys.key(0), keys.hash(0));
        read(slot, table.slots(), &mut bytes)?;
        slots.push(slot);
    }
    Ok(slots)
}

fn read_map(map: &mut MapState, slot: u32, bytes: &mut &[u8]) -> Result<(), StateError> {
    for _ in 0..take_u32(bytes)? {
        let map_key = take_bytes(bytes)?;
        map.put(slot, map_key, take_bytes(bytes)?);
    }
    Ok(())
}

/// The position of the state that a part is of, which has its columns.
pub(crate) fn declared(states: &[State], part: &StatePart) -> Result<usize, StateError> {
    let kind = kind_of(part.form);
    let found = states.iter().position(|s| s.name == part.name && Some(s.kind) == kind);
    let index = found.ok_or_else(|| StateError::NotDeclared { name: part.name.clone() })?;
    snapshot::check(part, &states[index].columns)?;
    Ok(index)
}

fn kind_of(form: StateForm) -> Option<StateKind> {
    match form {
        StateForm::Value => Some(StateKind::Value),
        StateForm::List => Some(StateKind::List),
        StateForm::Map => Some(StateKind::Map),
        _ => None,
    }
}

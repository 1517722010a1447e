//! Keyed state and timers in memory as parts of a snapshot.

use millstream_types::{EncodedKeys, MaxParallelism, State, StateChunk, StateForm, StateKind, StatePart};

use super::{MemoryBackend, Store};
use crate::{
    StateError,
    cell_store::CellStore,
    list_store::ListStore,
    map_state::MapState,
    row_codec::RowCodec,
    snapshot::{
        self, EVENT_TIMERS, PROCESSING_TIMERS, SlotsByGroup, Stored, by_group, chunks, put_bytes, put_i64,
        put_u32, slots_of, take_bytes, take_i64, take_key, take_u32,
    },
    timers::Timers,
};

impl MemoryBackend {
    /// Everything as parts, those of timers last. Not during a call.
    pub(super) fn parts(&self, states: &[State], max: MaxParallelism) -> Vec<StatePart> {
        let groups = by_group(&self.keys, max);
        let stored = self.states.iter().zip(states).filter_map(|(store, state)| {
            let (form, chunks) = self.chunks_of(store, state, &groups)?;
            let (name, columns) = (state.name.clone(), state.columns.clone());
            Some(StatePart { name, form, version: state.version, columns, chunks })
        });
        let timers = |name, form, timers| snapshot::part(name, form, &[], self.timer_chunks(timers, &groups));
        stored
            .chain([
                timers(EVENT_TIMERS, StateForm::EventTimers, &self.event),
                timers(PROCESSING_TIMERS, StateForm::ProcessingTimers, &self.processing),
            ])
            .collect()
    }

    fn chunks_of(
        &self,
        store: &Store,
        state: &State,
        groups: &SlotsByGroup,
    ) -> Option<(StateForm, Vec<StateChunk>)> {
        let codec = RowCodec::new(&state.columns);
        let key = |slot, out: &mut Vec<u8>| put_bytes(self.keys.key(slot), out);
        let present = |slot| store.is_present(slot);
        Some(match store {
            Store::Value(value) => {
                let write = |slots: &[u32], out: &mut Vec<u8>| value.store().write(slots, &codec, out, key);
                (StateForm::Value, chunks(groups, present, write))
            }
            Store::List(list) => {
                let write = |slots: &[u32], out: &mut Vec<u8>| list.store().write(slots, &codec, out, key);
                (StateForm::List, chunks(groups, present, write))
            }
            Store::Map(map) => {
                let write = |slots: &[u32], out: &mut Vec<u8>| {
                    for &slot in slots {
                        key(slot, out);
                        write_map(map, slot, out);
                    }
                };
                (StateForm::Map, chunks(groups, present, write))
            }
            Store::Elsewhere => return None,
        })
    }

    fn timer_chunks(&self, timers: &Timers, groups: &SlotsByGroup) -> Vec<StateChunk> {
        let write = |slots: &[u32], out: &mut Vec<u8>| {
            for &slot in slots {
                put_bytes(self.keys.key(slot), out);
                let times: Vec<i64> = timers.times(slot).collect();
                put_u32(times.len() as u32, out);
                times.into_iter().for_each(|time| put_i64(time, out));
            }
        };
        chunks(groups, |slot| timers.has(slot), write)
    }

    /// Adds what a part has to the state of its name, or to the timers.
    pub(super) fn restore_part(&mut self, states: &[State], part: &StatePart) -> Result<(), StateError> {
        for chunk in &part.chunks {
            match part.form {
                StateForm::EventTimers | StateForm::ProcessingTimers => {
                    self.restore_timers(part.form, &chunk.bytes)?;
                }
                _ => self.restore_chunk(states, part, &chunk.bytes)?,
            }
        }
        Ok(())
    }

    fn restore_chunk(
        &mut self,
        states: &[State],
        part: &StatePart,
        mut bytes: &[u8],
    ) -> Result<(), StateError> {
        let index = declared(states, part)?;
        let state = &states[index];
        let codec = RowCodec::new(&state.columns);
        let mut keys = EncodedKeys::new();
        match &mut self.states[index] {
            Store::Value(value) => restore::<CellStore>(&mut keys, &codec, bytes, |keys, entries| {
                let slots = slots_of(keys, &mut self.keys);
                value.grow(self.keys.slots());
                value.store_mut().put(&slots, entries);
            })?,
            Store::List(list) => restore::<ListStore>(&mut keys, &codec, bytes, |keys, entries| {
                let slots = slots_of(keys, &mut self.keys);
                list.grow(self.keys.slots());
                list.store_mut().put(&slots, entries);
            })?,
            Store::Map(map) => {
                while !bytes.is_empty() {
                    keys.clear();
                    take_key(&mut bytes, &mut keys)?;
                    let slot = slots_of(&keys, &mut self.keys)[0];
                    map.grow(self.keys.slots());
                    read_map(map, slot, &mut bytes)?;
                }
            }
            Store::Elsewhere => return Err(StateError::NotDeclared { name: part.name.clone() }),
        }
        self.grow();
        Ok(())
    }

    fn restore_timers(&mut self, form: StateForm, mut bytes: &[u8]) -> Result<(), StateError> {
        let mut keys = EncodedKeys::new();
        while !bytes.is_empty() {
            keys.clear();
            take_key(&mut bytes, &mut keys)?;
            let slot = slots_of(&keys, &mut self.keys)[0];
            let timers = if form == StateForm::EventTimers { &mut self.event } else { &mut self.processing };
            timers.grow(self.keys.slots());
            for _ in 0..take_u32(&mut bytes)? {
                timers.set(slot, take_i64(&mut bytes)?);
            }
        }
        self.grow();
        Ok(())
    }
}

/// Reads entries, each behind its key, and hands them over.
fn restore<E: Stored>(
    keys: &mut EncodedKeys,
    codec: &RowCodec,
    mut bytes: &[u8],
    put: impl FnOnce(&EncodedKeys, E::Entries),
) -> Result<(), StateError> {
    let mut entries = E::entries(codec);
    while !bytes.is_empty() {
        take_key(&mut bytes, keys)?;
        E::read(&mut entries, &mut bytes)?;
    }
    put(keys, entries);
    Ok(())
}

fn write_map(map: &MapState, slot: u32, out: &mut Vec<u8>) {
    let rows: Vec<_> = map.stored(slot).collect();
    put_u32(rows.len() as u32, out);
    for (map_key, row) in rows {
        put_bytes(map_key, out);
        put_bytes(row, out);
    }
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

//! What the stores of a backend keep, as entries.

use millstream_types::{EncodedKeys, State, StateChunk, StateForm, StatePart};

use super::{CLOCKS, MemoryBackend, Store};
use crate::{
    KeyTable,
    list_state::ListState,
    map_state::MapState,
    row_codec::RowCodec,
    snapshot::{self, EVENT_TIMERS, EXPIRIES, PROCESSING_TIMERS, Stored, put_bytes, put_i64, put_u32},
    timers::Timers,
    value_state::ValueState,
};

/// What one store keeps, to be written.
pub(super) struct Content<'a> {
    keys: &'a KeyTable,
    kept: Kept<'a>,
}

enum Kept<'a> {
    Value(&'a ValueState, &'a RowCodec),
    List(&'a ListState, &'a RowCodec),
    Map(&'a MapState),
    Timers(&'a Timers, &'static str, StateForm),
}

impl MemoryBackend {
    /// The states that are kept here, by position, then the timers.
    pub(super) fn contents<'a>(&'a self) -> Vec<Option<Content<'a>>> {
        let of_state = |(store, codec): (&'a Store, &'a RowCodec)| {
            let kept = match store {
                Store::Value(value) => Kept::Value(value, codec),
                Store::List(list) => Kept::List(list, codec),
                Store::Map(map) => Kept::Map(map),
                Store::Elsewhere => return None,
            };
            Some(Content { keys: &self.keys, kept })
        };
        let clocks: [_; CLOCKS.len()] = [
            Kept::Timers(&self.event, EVENT_TIMERS, StateForm::EventTimers),
            Kept::Timers(&self.processing, PROCESSING_TIMERS, StateForm::ProcessingTimers),
            Kept::Timers(&self.expiry, EXPIRIES, StateForm::Expiries),
        ];
        let timers = clocks.map(|kept| Some(Content { keys: &self.keys, kept }));
        self.states.iter().zip(&self.codecs).map(of_state).chain(timers).collect()
    }
}

impl Content<'_> {
    /// Whether a slot has anything.
    pub(super) fn has(&self, slot: u32) -> bool {
        match self.kept {
            Kept::Value(value, _) => value.is_present(slot),
            Kept::List(list, _) => list.is_present(slot),
            Kept::Map(map) => map.is_present(slot),
            Kept::Timers(timers, ..) => timers.has(slot),
        }
    }

    /// Appends the entries of slots, all of which have something.
    pub(super) fn write(&self, slots: &[u32], out: &mut Vec<u8>) {
        let key = |slot, out: &mut Vec<u8>| put_bytes(self.keys.key(slot), out);
        self.keys.prefetch(slots);
        match self.kept {
            Kept::Value(value, codec) => value.store().write(slots, codec, out, key),
            Kept::List(list, codec) => list.store().write(slots, codec, out, key),
            Kept::Map(map) => slots.iter().for_each(|&slot| {
                key(slot, out);
                write_map(map, slot, out);
            }),
            Kept::Timers(timers, ..) => slots.iter().for_each(|&slot| {
                key(slot, out);
                write_timers(timers, slot, out);
            }),
        }
    }

    /// Appends the entries of those slots that have something.
    pub(super) fn write_present(&self, slots: &[u32], out: &mut Vec<u8>) {
        let there: Vec<u32> = slots.iter().copied().filter(|&slot| self.has(slot)).collect();
        self.write(&there, out);
    }

    /// Appends changes: keys that have nothing any more, and the entries of those slots that have something.
    pub(super) fn write_changes(&self, gone: &EncodedKeys, slots: &[u32], out: &mut Vec<u8>) {
        let (there, empty): (Vec<u32>, Vec<u32>) = slots.iter().partition(|&&slot| self.has(slot));
        put_u32((gone.len() + empty.len()) as u32, out);
        gone.iter().for_each(|key| put_bytes(key, out));
        empty.iter().for_each(|&slot| put_bytes(self.keys.key(slot), out));
        self.write(&there, out);
    }

    /// The part of these chunks; `state` is the store's, if it is one of a state.
    pub(super) fn part(
        &self,
        state: Option<&State>,
        base: Option<u64>,
        chunks: Vec<StateChunk>,
    ) -> Option<StatePart> {
        let form = match self.kept {
            Kept::Value(..) => StateForm::Value,
            Kept::List(..) => StateForm::List,
            Kept::Map(_) => StateForm::Map,
            Kept::Timers(_, name, form) => {
                return Some(StatePart { base, ..snapshot::part(name, form, &[], chunks) });
            }
        };
        let state = state?;
        let (name, columns) = (state.name.clone(), state.columns.clone());
        Some(StatePart { name, form, version: state.version, columns, base, chunks, files: None })
    }
}

fn write_map(map: &MapState, slot: u32, out: &mut Vec<u8>) {
    let rows: Vec<_> = map.stored(slot).collect();
    put_u32(rows.len() as u32, out);
    for (map_key, row) in rows {
        put_bytes(map_key, out);
        put_bytes(row, out);
    }
}

fn write_timers(timers: &Timers, slot: u32, out: &mut Vec<u8>) {
    let times: Vec<i64> = timers.times(slot).collect();
    put_u32(times.len() as u32, out);
    times.into_iter().for_each(|time| put_i64(time, out));
}

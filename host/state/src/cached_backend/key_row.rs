//! Rows a key: what a store behind the cache has of a key, but for the entries of its maps.
//!
//! | part | bytes |
//! |---|---|
//! | flags | `u8`: bit 0 if there are timers on event time, bit 1 on processing time, bit 2 if it expires |
//! | presence | one bit a declared state, least significant first; whole bytes |
//! | of each state that is there | value: the row; list: number of rows `u32`, rows as one blob; map: number of entries `u32` |
//! | of each clock with timers | number of timers `u32`, their times `i64`, ascending |
//!
//! All in one row, since a read of a key from a large store costs more than all that is in it. Keys of the tables:
//!
//! | table | key | value |
//! |---|---|---|
//! | keys | key group `u16` big endian, key | the row above |
//! | timers | clock `u8`, time `i64` big endian with its sign bit flipped, key group `u16` big endian, key | nothing |
//! | map | key group `u16` big endian, length of the key `u32` big endian, key, map key | row |

use millstream_types::{Clock, Columns, KeyGroup, MaxParallelism, State, StateKind, hash_key};

use crate::{
    StateError,
    list_store::ListStore,
    memory_backend::{CLOCKS, MemoryBackend, Store},
    row_codec::{RowCodec, RowReader},
    snapshot::{Stored, put_bytes, put_i64, put_u32, take_bytes, take_i64, take_u8, take_u32},
    timers::Timers,
};

/// The states of an operator and how their rows are read.
pub(crate) struct Layout {
    pub(crate) states: Vec<State>,
    pub(crate) codecs: Vec<RowCodec>,
    pub(crate) max: MaxParallelism,
}

/// A part of a row, as it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Value(&'a [u8]),
    List { rows: u32, bytes: &'a [u8] },
    Map { entries: u32 },
}

/// Rows that have been read, by state, before they go to their slots.
pub(crate) struct Loaded {
    values: Vec<RowReader>,
    lists: Vec<<ListStore as Stored>::Entries>,
    slots: Vec<Vec<u32>>,
}

impl Layout {
    pub(crate) fn new(states: &[State], max: MaxParallelism) -> Self {
        let codecs = states.iter().map(|s| RowCodec::new(&s.columns)).collect();
        Self { states: states.to_vec(), codecs, max }
    }

    pub(crate) fn group_of(&self, key: &[u8]) -> KeyGroup {
        self.max.group_of(hash_key(key))
    }

    /// Appends the key that a key's row has.
    pub(crate) fn put_row_key(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend(self.group_of(key).0.to_be_bytes());
        out.extend_from_slice(key);
    }

    /// Appends what all entries of a map of a key start with.
    pub(crate) fn put_map_prefix(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend(self.group_of(key).0.to_be_bytes());
        out.extend((key.len() as u32).to_be_bytes());
        out.extend_from_slice(key);
    }

    /// Appends the rows' bytes for some slots, each handed over with its slot.
    pub(crate) fn write(
        &self,
        cache: &MemoryBackend,
        slots: &[u32],
        map_entries: impl Fn(usize, u32) -> u32,
        mut row: impl FnMut(usize, &[u8]),
    ) {
        let columns: Vec<Option<Columns>> = cache.states.iter().map(|store| values(store, slots)).collect();
        let writers: Vec<_> =
            self.codecs.iter().zip(&columns).map(|(codec, c)| c.as_ref().map(|c| codec.writer(c))).collect();
        let mut bytes = Vec::new();
        for (i, &slot) in slots.iter().enumerate() {
            bytes.clear();
            bytes.resize(1 + self.states.len().div_ceil(8), 0);
            for (state, store) in cache.states.iter().enumerate() {
                let present = match (store, &writers[state]) {
                    (Store::Value(value), Some(writer)) if value.is_present(slot) => {
                        writer.write(i, &mut bytes);
                        true
                    }
                    (Store::List(list), _) if list.is_present(slot) => {
                        put_u32(list.store().rows(slot) as u32, &mut bytes);
                        put_bytes(list.store().encoded(slot), &mut bytes);
                        true
                    }
                    (Store::Map(_), _) if map_entries(state, slot) > 0 => {
                        put_u32(map_entries(state, slot), &mut bytes);
                        true
                    }
                    _ => false,
                };
                bytes[1 + state / 8] |= u8::from(present) << (state % 8);
            }
            for (bit, clock) in CLOCKS.into_iter().enumerate() {
                let timers = cache.timers_of(clock);
                if timers.has(slot) {
                    bytes[0] |= 1 << bit;
                    put_times(timers, slot, &mut bytes);
                }
            }
            row(i, &bytes);
        }
    }

    /// Takes a row apart.
    pub(crate) fn parse<'a>(
        &self,
        mut row: &'a [u8],
        mut piece: impl FnMut(usize, Piece<'a>) -> Result<(), StateError>,
        mut timers: impl FnMut(Clock, &'a [u8]) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let flags = take_u8(&mut row)?;
        let (present, rest) =
            row.split_at_checked(self.states.len().div_ceil(8)).ok_or(StateError::DamagedRow)?;
        row = rest;
        let is_present = |state: &usize| present[state / 8] >> (state % 8) & 1 == 1;
        for state in (0..self.states.len()).filter(is_present) {
            let found = match self.states[state].kind {
                StateKind::Value => Piece::Value(self.codecs[state].split_row(&mut row)?),
                StateKind::List => Piece::List { rows: take_u32(&mut row)?, bytes: take_bytes(&mut row)? },
                StateKind::Map => Piece::Map { entries: take_u32(&mut row)? },
                StateKind::Broadcast | StateKind::Operator => return Err(StateError::DamagedRow),
            };
            piece(state, found)?;
        }
        for (bit, clock) in CLOCKS.into_iter().enumerate() {
            if flags >> bit & 1 == 1 {
                let count = row.first_chunk::<4>().map_or(0, |count| u32::from_le_bytes(*count) as usize);
                let (times, rest) = row.split_at_checked(4 + 8 * count).ok_or(StateError::DamagedRow)?;
                timers(clock, times)?;
                row = rest;
            }
        }
        if row.is_empty() { Ok(()) } else { Err(StateError::DamagedRow) }
    }
}

impl Loaded {
    pub(crate) fn new(layout: &Layout) -> Self {
        let values = layout.codecs.iter().map(|codec| codec.reader(0)).collect();
        let states = layout.states.len();
        Self { values, lists: vec![Vec::new(); states], slots: vec![Vec::new(); states] }
    }

    /// Adds what a row has of a state, for a slot.
    pub(crate) fn add(&mut self, state: usize, slot: u32, piece: Piece<'_>) -> Result<(), StateError> {
        match piece {
            Piece::Value(mut row) => self.values[state].read(&mut row)?,
            Piece::List { rows, bytes } => self.lists[state].push((rows, bytes.to_vec())),
            Piece::Map { .. } => return Ok(()),
        }
        self.slots[state].push(slot);
        Ok(())
    }

    /// Puts everything at its slots.
    pub(crate) fn put(self, cache: &mut MemoryBackend) {
        let all = self.values.into_iter().zip(self.lists).zip(self.slots);
        for (store, ((values, lists), slots)) in cache.states.iter_mut().zip(all) {
            match store {
                Store::Value(value) => value.store_mut().put(&slots, values),
                Store::List(list) => list.store_mut().put(&slots, lists),
                Store::Map(_) | Store::Elsewhere => {}
            }
        }
    }
}

/// Appends the timers of a slot as a snapshot has them.
pub(crate) fn put_times(timers: &Timers, slot: u32, out: &mut Vec<u8>) {
    let at = out.len();
    put_u32(0, out);
    let mut count = 0u32;
    timers.times(slot).for_each(|time| {
        put_i64(time, out);
        count += 1;
    });
    out[at..at + 4].copy_from_slice(&count.to_le_bytes());
}

/// Reads times that [`put_times`] has written.
pub(crate) fn take_times(bytes: &mut &[u8], mut time: impl FnMut(i64)) -> Result<u32, StateError> {
    let count = take_u32(bytes)?;
    (0..count).try_for_each(|_| take_i64(bytes).map(&mut time))?;
    Ok(count)
}

/// Appends the key of an entry of the table of timers, or without `row_key` what those of a time start with.
pub(crate) fn put_timer_key(clock: Clock, time: i64, row_key: &[u8], out: &mut Vec<u8>) {
    out.push(index_of(clock) as u8);
    out.extend((time as u64 ^ 1 << 63).to_be_bytes());
    out.extend_from_slice(row_key);
}

/// The time and the row key of a key of the table of timers.
pub(crate) fn split_timer_key(key: &[u8]) -> Result<(i64, &[u8]), StateError> {
    let (time, row_key) =
        key.get(1..).and_then(|k| k.split_first_chunk::<8>()).ok_or(StateError::DamagedRow)?;
    Ok(((u64::from_be_bytes(*time) ^ 1 << 63) as i64, row_key))
}

/// The key in a row key.
pub(crate) fn key_of(row_key: &[u8]) -> Result<(KeyGroup, &[u8]), StateError> {
    let (group, key) = row_key.split_first_chunk::<2>().ok_or(StateError::DamagedRow)?;
    Ok((KeyGroup(u16::from_be_bytes(*group)), key))
}

/// Key group, key and map key of a key of a map's table.
pub(crate) fn split_map_key(stored: &[u8]) -> Result<(KeyGroup, &[u8], &[u8]), StateError> {
    let (group, rest) = key_of(stored)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or(StateError::DamagedRow)?;
    let key = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or(StateError::DamagedRow)?;
    Ok((group, key.0, key.1))
}

/// The first string of bytes behind all that start with `prefix`; none if there is none.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// The position of a clock in what there is one of for each.
pub(crate) fn index_of(clock: Clock) -> usize {
    match clock {
        Clock::Event => 0,
        Clock::Processing => 1,
        Clock::Expiry => 2,
    }
}

fn values(store: &Store, slots: &[u32]) -> Option<Columns> {
    let Store::Value(value) = store else { return None };
    Some(value.store().read_values(slots))
}

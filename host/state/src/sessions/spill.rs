//! Keys whose sessions are not in memory: how they get to the store, and back.
//!
//! A key is in memory with all its sessions or in the store with all of them. There the table of timers has the time at
//! which the next thing happens to one of them, so that keys that are due are found in order of time.

use std::ops::ControlFlow;

use super::Sessions;
use crate::{
    ByteRows, Cursor, KeyTable, Overflow, StateError, Table,
    cached_backend::sweep::Sweep,
    overflow::rows::{put_session_row, put_session_timer, put_sessions, split_session_timer, split_sessions},
    slot_store::SessionStore,
    timer_wheel::Entry,
};

/// The keys of a store.
pub(super) struct Spill {
    pub(super) overflow: Overflow,
    pub(super) keys: u64,
    pub(super) sessions: u64,
    /// A time before which the table of timers has nothing.
    pub(super) next: Option<i64>,
    sweep: Sweep,
}

/// How far keys that are due are in memory.
pub(super) struct ReadDue {
    /// All that is due until then is.
    pub(super) until: i64,
    /// Whether more is due.
    pub(super) more: bool,
}

impl Spill {
    pub(super) fn new(overflow: Overflow) -> Self {
        Self { overflow, keys: 0, sessions: 0, next: None, sweep: Sweep::default() }
    }

    /// How many sessions the store has.
    pub(super) fn sessions(&self) -> usize {
        self.sessions as usize
    }

    /// A time before which nothing happens to these.
    pub(super) fn next_time(&self) -> Option<i64> {
        self.next.filter(|_| self.keys > 0)
    }

    /// Reads keys, which ascend, and takes them out of the store: their sessions, one key's behind the other's.
    fn take(&mut self, keys: &ByteRows) -> Result<Vec<u8>, StateError> {
        let Self { overflow, keys: count, sessions: all, .. } = self;
        let (mut found, mut taken) = (Vec::new(), Vec::new());
        overflow.store.read(Table::Keys, keys, &mut |i, row| {
            let (time, sessions, bytes) = split_sessions(row)?;
            found.push((i, time));
            *all -= u64::from(sessions);
            taken.extend_from_slice(bytes);
            Ok(())
        })?;
        *count -= found.len() as u64;
        let mut timer = Vec::new();
        for (i, time) in found {
            timer.clear();
            put_session_timer(time, keys.get(i), &mut timer);
            overflow.store.delete(Table::Keys, keys.get(i));
            overflow.store.delete(Table::Timers, &timer);
        }
        overflow.apply()?;
        Ok(taken)
    }
}

impl<S: SessionStore> Sessions<S> {
    /// Brings what the store has of keys that are new in memory there.
    pub(super) fn enter(&mut self, slots: Vec<u32>) -> Result<(), StateError> {
        let Some(spill) = self.spill.as_mut().filter(|spill| spill.keys > 0) else { return Ok(()) };
        let mut keys = ByteRows::new();
        let max = spill.overflow.max;
        slots.iter().for_each(|&slot| keys.push_with(|out| put_session_row(self.keys.key(slot), max, out)));
        let sessions = spill.take(&keys.picked(&keys.order()))?;
        self.add_taken(&sessions)
    }

    fn add_taken(&mut self, mut sessions: &[u8]) -> Result<(), StateError> {
        while !sessions.is_empty() {
            self.restore_some(&mut sessions)?;
        }
        Ok(())
    }

    /// Reads keys that are due at `now`, as far as they are not in memory and not more than is handled at once.
    pub(super) fn read_due(&mut self, now: i64) -> Result<ReadDue, StateError> {
        let Some(spill) = self.spill.as_mut().filter(|spill| spill.next_time().is_some_and(|at| at <= now))
        else {
            return Ok(ReadDue { until: now, more: false });
        };
        let (mut keys, mut last, mut after) = (ByteRows::new(), now, None);
        spill.overflow.store.scan(Table::Timers, &[], None, &mut |timer, _| {
            let (time, row_key) = split_session_timer(timer)?;
            if time > now || keys.len() == READ_AT_ONCE {
                after = Some(time);
                return Ok(ControlFlow::Break(()));
            }
            last = time;
            keys.push_with(|out| out.extend_from_slice(row_key));
            Ok(ControlFlow::Continue(()))
        })?;
        let sessions = spill.take(&keys.picked(&keys.order()))?;
        spill.next = after;
        self.add_taken(&sessions)?;
        let more = after.is_some_and(|time| time <= now);
        Ok(ReadDue { until: if more { last } else { now }, more })
    }

    /// Evicts keys until the rest fits. Not during a call.
    pub(super) fn make_room(&mut self) -> Result<(), StateError> {
        let Some(spill) = &self.spill else { return Ok(()) };
        let memory = spill.overflow.memory;
        if self.taken() <= memory {
            return Ok(());
        }
        // Some more than is needed, so that it is a batch.
        let target = memory - memory / EVICTED_AT_ONCE;
        loop {
            let (taken, keys) = (self.taken(), self.keys.len());
            let excess = taken.saturating_sub(target);
            let count = excess.div_ceil((taken / keys.max(1)).max(1));
            let Some(spill) = &mut self.spill else { return Ok(()) };
            let victims = spill.sweep.choose(&self.keys, count.min(keys));
            if victims.is_empty() || excess == 0 {
                break;
            }
            self.evict(&victims)?;
        }
        self.sweep_wheel();
        Ok(())
    }

    /// The bytes of memory that keys and sessions take.
    fn taken(&self) -> usize {
        let (per_slot, elsewhere) = self.store.bytes();
        let per_session = per_slot + size_of::<super::Session>() + 2 * size_of::<Entry>();
        let per_key = KeyTable::BYTES_PER_SLOT + size_of::<super::Order>();
        let keys = if self.keys.is_empty() { 0 } else { self.keys.bytes_elsewhere() };
        self.keys.len() * per_key + keys + self.in_memory() * per_session + elsewhere
    }

    /// Writes the sessions of keys and forgets them.
    fn evict(&mut self, slots: &[u32]) -> Result<(), StateError> {
        let Some(mut spill) = self.spill.take() else { return Ok(()) };
        let written = self.write_keys(slots, &mut spill);
        self.spill = Some(spill);
        written?;
        for &key in slots {
            for session in std::mem::take(&mut self.of_key[key as usize]) {
                self.store.remove(session);
                self.release(session);
            }
            self.keys.remove(key);
        }
        Ok(())
    }

    fn write_keys(&mut self, slots: &[u32], spill: &mut Spill) -> Result<(), StateError> {
        for slots in slots.chunks(WRITTEN_AT_ONCE) {
            let mut keys = ByteRows::new();
            let max = spill.overflow.max;
            slots.iter().for_each(|&key| keys.push_with(|out| put_session_row(self.keys.key(key), max, out)));
            let (mut row, mut timer) = (Vec::new(), Vec::new());
            for at in keys.order() {
                let row_key = keys.get(at as usize);
                let sessions = &self.of_key[slots[at as usize] as usize];
                let times = sessions.iter().map(|&s| self.sessions[s as usize].next_time(self.lateness));
                let time = times.min().unwrap_or(i64::MAX);
                row.clear();
                put_sessions(time, sessions.len() as u32, &mut row);
                sessions.iter().for_each(|&session| self.write(session, &mut row));
                timer.clear();
                put_session_timer(time, row_key, &mut timer);
                spill.overflow.put(Table::Keys, row_key, &row)?;
                spill.overflow.put(Table::Timers, &timer, &[])?;
                spill.next = Some(spill.next.map_or(time, |next| next.min(time)));
                (spill.keys, spill.sessions) = (spill.keys + 1, spill.sessions + sessions.len() as u64);
            }
        }
        spill.overflow.apply()
    }

    /// Makes the wheel anew when most of it is of sessions that have gone.
    fn sweep_wheel(&mut self) {
        if self.wheel.len() <= 2 * self.in_memory() + FEW_ENTRIES {
            return;
        }
        self.wheel.clear();
        for (slot, session) in self.sessions.iter().enumerate().filter(|(_, session)| session.occupied) {
            if let Some(time) = session.scheduled {
                self.wheel.insert(time, slot as u32);
            }
        }
    }

    /// Where a scan goes on when memory has no more.
    pub(super) fn first_stored(&self) -> Option<Cursor> {
        self.spill.as_ref().filter(|spill| spill.keys > 0).map(|_| Cursor::stored(Vec::new()))
    }
}

/// How small a part of the memory is evicted at once.
const EVICTED_AT_ONCE: usize = 64;
/// Keys that are read at once because they are due.
const READ_AT_ONCE: usize = 4096;
/// Keys that are sorted before they are written.
const WRITTEN_AT_ONCE: usize = 2 << 10;
/// Entries of the wheel that are not worth looking at.
const FEW_ENTRIES: usize = 1024;

//! Timers of keys that are not in the cache.

use std::ops::ControlFlow;

use millstream_types::{Clock, EncodedKeys, hash_key};

use super::{
    CachedBackend,
    key_row::{index_of, key_of, put_timer_key, split_timer_key},
};
use crate::{ByteRows, KeyedBackend, StateError, Table};

/// How far a round can go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// The last time that it can be about.
    pub(super) until: i64,
    /// Whether keys that are not in the cache are due as well.
    pub(super) more: bool,
}

impl CachedBackend {
    /// Reads the keys that a round is about, as far as they are not in the cache and not more than it takes.
    pub(super) fn read_due(&mut self, clock: Clock, now: i64, limit: usize) -> Result<Due, StateError> {
        let Some(next) = self.elsewhere.next[index_of(clock)].filter(|&next| next <= now) else {
            return Ok(Due { until: now, more: false });
        };
        let (mut due, mut last, mut after) = (ByteRows::new(), next, None);
        let mut from = Vec::new();
        put_timer_key(clock, next, &[], &mut from);
        let until = [from[0] + 1];
        self.store.scan(Table::Timers, &from, Some(&until), &mut |key, _| {
            let (time, _) = split_timer_key(key)?;
            if time > now || due.len() == limit.max(1) {
                after = Some(time);
                return Ok(ControlFlow::Break(()));
            }
            last = time;
            due.push_with(|out| out.extend_from_slice(key));
            Ok(ControlFlow::Continue(()))
        })?;
        self.take_due_keys(clock, &due)?;
        self.elsewhere.next[index_of(clock)] = after;
        let more = after.is_some_and(|time| time <= now);
        Ok(Due { until: if more { last } else { now }, more })
    }

    /// Brings keys into the cache and takes them out of the table of timers.
    fn take_due_keys(&mut self, clock: Clock, due: &ByteRows) -> Result<(), StateError> {
        let mut keys = EncodedKeys::new();
        for timer in due.iter() {
            let (_, key) = key_of(split_timer_key(timer)?.1)?;
            keys.push(key, hash_key(key));
        }
        let slots = self.slots_with_state(&keys)?;
        due.iter().for_each(|timer| self.store.delete(Table::Timers, timer));
        self.store.apply()?;
        slots.into_iter().for_each(|slot| self.marks.set_indexed(clock, slot, None));
        Ok(())
    }

    /// Drops all timers of a clock, keys that are not in the cache included.
    pub(super) fn drop_all_timers(&mut self, clock: Clock) -> Result<u64, StateError> {
        let dropped = self.pending_timers(clock);
        loop {
            self.read_due(clock, i64::MAX, DROPPED_AT_ONCE)?;
            let occupied: Vec<u32> = self.cache.keys.occupied().collect();
            for slot in occupied.into_iter().filter(|&slot| self.cache.timers_of(clock).has(slot)) {
                self.marks.changed(slot);
            }
            self.cache.drop_timers(clock)?;
            self.make_room()?;
            let at = index_of(clock);
            if self.elsewhere.timers[at] == 0 || self.elsewhere.next[at].is_none() {
                return Ok(dropped);
            }
        }
    }
}

/// Keys that are read at once to drop their timers.
const DROPPED_AT_ONCE: usize = 8192;

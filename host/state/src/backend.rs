//! What keeps keyed state: the seam between [`crate::KeyedContext`] and a store in memory or on disk.

use millstream_types::{
    Cells, Clock, EncodedKeys, Entries, MaxParallelism, Runs, SnapshotRequest, State, StatePart,
};

use crate::{Grouping, StateError};

/// Map keys of a call, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct MapKeys<'a> {
    /// Positions into `bytes`, one more than there are map keys.
    pub offsets: &'a [u32],
    /// The map keys.
    pub bytes: &'a [u8],
}

impl<'a> MapKeys<'a> {
    /// One map key.
    pub fn get(&self, index: usize) -> &'a [u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

/// Keyed state and timers of one operator subtask.
///
/// States go by their position among those that the backend was made with, keys by their position among the groups
/// of the current call. Whoever calls has checked positions, kinds and shapes. Between `begin` or `begin_timers` and
/// `commit` or `rollback`, reads see what the call has written; until `commit`, nothing else does.
pub trait KeyedBackend: Send {
    /// Starts a call over rows with these keys.
    fn begin(&mut self, keys: &EncodedKeys) -> Result<(), StateError>;

    /// Starts a call over due timers: of up to `limit` keys the earliest that is due at `now`, in order of time. The
    /// timers are gone once the call commits. Returns how many there are; with none, no call has started.
    fn begin_timers(&mut self, clock: Clock, now: i64, limit: usize) -> Result<usize, StateError>;

    /// The keys of the current call.
    fn grouping(&self) -> &Grouping;

    /// The bytes of the current call's keys, in order of groups.
    fn keys(&self) -> Vec<&[u8]>;

    /// The times of the current call's timers, in order of groups.
    fn fired_times(&self) -> &[i64];

    /// Reads values.
    fn read_values(&mut self, state: usize, keys: &[u32]) -> Result<Cells, StateError>;

    /// Writes values; an absent cell clears.
    fn write_values(&mut self, state: usize, keys: &[u32], cells: Cells) -> Result<(), StateError>;

    /// Reads lists.
    fn read_lists(&mut self, state: usize, keys: &[u32]) -> Result<Runs, StateError>;

    /// Appends run i to the list of key i.
    fn append_lists(&mut self, state: usize, keys: &[u32], runs: Runs) -> Result<(), StateError>;

    /// Empties lists.
    fn clear_lists(&mut self, state: usize, keys: &[u32]) -> Result<(), StateError>;

    /// Reads the values of pairs (key, map key).
    fn read_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        map_keys: MapKeys<'_>,
    ) -> Result<Cells, StateError>;

    /// Writes the values of pairs; an absent cell removes.
    fn write_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        map_keys: MapKeys<'_>,
        cells: Cells,
    ) -> Result<(), StateError>;

    /// Reads entries in map-key order from `start` on, at most `limit` a key.
    fn scan_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        start: Option<&[u8]>,
        limit: u32,
    ) -> Result<Entries, StateError>;

    /// Empties maps.
    fn clear_maps(&mut self, state: usize, keys: &[u32]) -> Result<(), StateError>;

    /// Sets timers.
    fn set_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError>;

    /// Clears timers.
    fn clear_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError>;

    /// Has what the keys of the current call have, once it commits, expire at `time`, or up to `slack` before if that is
    /// when it would anyway. Expiries are timers on [`Clock::Expiry`], one a key: a call over those that are due is for
    /// clearing what the keys have, and that nothing else touches it before is up to the caller.
    fn keep_until(&mut self, time: i64, slack: i64);

    /// Applies what the call has written and ends it.
    fn commit(&mut self) -> Result<(), StateError>;

    /// Forgets what the call has written and ends it; timers that it was about are due again.
    fn rollback(&mut self);

    /// A time before which no timer of this clock is due, if there is one.
    fn next_timer(&self, clock: Clock) -> Option<i64>;

    /// How many timers are set on a clock.
    fn pending_timers(&self, clock: Clock) -> u64;

    /// Drops all timers of a clock and says how many they were. Not during a call.
    fn drop_timers(&mut self, clock: Clock) -> Result<u64, StateError>;

    /// How many keys have a state or a timer.
    fn key_count(&self) -> usize;

    /// All states and timers as parts of a snapshot, keys by their group of `max`. `states` are those that it was made
    /// for. Where `request` names a base that the backend knows, a part may have what has changed since that was taken,
    /// whatever became of snapshots in between. Not during a call.
    fn snapshot(
        &mut self,
        states: &[State],
        max: MaxParallelism,
        request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError>;

    /// Adds what a part of a snapshot has. The keys in its whole chunks are new, or were in parts of other states of the
    /// same snapshot; changes come behind what they change. Not during a call.
    fn restore(&mut self, states: &[State], part: &StatePart) -> Result<(), StateError>;
}

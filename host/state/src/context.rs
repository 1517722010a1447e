//! The state of the keys of one call, as functions see it.

use millstream_types::{Cells, Clock, Entries, Runs, StateKind};

use crate::StateError;

/// A state that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateId(pub u32);

/// Keyed state and timers of one operator subtask, narrowed to the keys of the current call.
pub struct KeyedContext {}

#[expect(unused_variables, clippy::needless_pass_by_value, reason = "signatures first")]
impl KeyedContext {
    /// The state of this name and kind.
    pub fn state(&self, kind: StateKind, name: &str) -> Result<StateId, StateError> {
        unimplemented!()
    }

    /// How many distinct keys the current call has.
    pub fn keys(&self) -> usize {
        unimplemented!()
    }

    /// The values of some keys.
    pub fn read_values(&mut self, state: StateId, keys: &[u32]) -> Result<Cells, StateError> {
        unimplemented!()
    }

    /// Sets values; an absent cell clears.
    pub fn write_values(&mut self, state: StateId, keys: &[u32], cells: Cells) -> Result<(), StateError> {
        unimplemented!()
    }

    /// The lists of some keys.
    pub fn read_lists(&mut self, state: StateId, keys: &[u32]) -> Result<Runs, StateError> {
        unimplemented!()
    }

    /// Appends run i to the list of key i.
    pub fn append_lists(&mut self, state: StateId, keys: &[u32], runs: Runs) -> Result<(), StateError> {
        unimplemented!()
    }

    /// Empties lists.
    pub fn clear_lists(&mut self, state: StateId, keys: &[u32]) -> Result<(), StateError> {
        unimplemented!()
    }

    /// The values of pairs (key, map key); map key i is `map_bytes[map_offsets[i]..map_offsets[i + 1]]`.
    pub fn read_entries(
        &mut self,
        state: StateId,
        keys: &[u32],
        map_offsets: &[u32],
        map_bytes: &[u8],
    ) -> Result<Cells, StateError> {
        unimplemented!()
    }

    /// Sets values of pairs; an absent cell removes.
    pub fn write_entries(
        &mut self,
        state: StateId,
        keys: &[u32],
        map_offsets: &[u32],
        map_bytes: &[u8],
        cells: Cells,
    ) -> Result<(), StateError> {
        unimplemented!()
    }

    /// Entries in map-key order from `start` on, at most `limit` a key.
    pub fn scan_entries(
        &mut self,
        state: StateId,
        keys: &[u32],
        start: Option<&[u8]>,
        limit: u32,
    ) -> Result<Entries, StateError> {
        unimplemented!()
    }

    /// Empties maps.
    pub fn clear_maps(&mut self, state: StateId, keys: &[u32]) -> Result<(), StateError> {
        unimplemented!()
    }

    /// Sets a timer for each (key, time); setting one twice fires it once.
    pub fn set_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        unimplemented!()
    }

    /// Clears timers.
    pub fn clear_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        unimplemented!()
    }
}

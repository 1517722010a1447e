//! The state of the keys of one call, as functions see it.
//!
//! What comes here comes from a guest, by way of its host: every position, count and type is checked before it
//! reaches the backend.

use arrow_array::new_null_array;
use arrow_buffer::BooleanBuffer;
use millstream_types::{
    Cells, Clock, Column, Columns, EncodedKeys, Entries, Limits, MaxParallelism, Runs, SnapshotRequest,
    State, StateKind, StatePart,
};

use crate::{Grouping, KeyedBackend, MapKeys, MemoryBackend, StateError, shape};

/// A state that has been opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateId(pub u32);

/// Keyed state and timers of one operator subtask, narrowed to the keys of the current call.
///
/// The operator starts a call with [`KeyedContext::begin`] or [`KeyedContext::begin_timers`], lends the context to the
/// function, and ends the call with [`KeyedContext::commit`] or [`KeyedContext::rollback`].
pub struct KeyedContext {
    states: Vec<State>,
    /// For how many milliseconds what a key has is kept since it was last touched; none for ever.
    ttl: Option<i64>,
    backend: Box<dyn KeyedBackend>,
}

impl KeyedContext {
    /// State of these declarations, kept by a backend that was made for the same ones.
    pub fn new(states: &[State], backend: Box<dyn KeyedBackend>) -> Self {
        Self { states: states.to_vec(), ttl: None, backend }
    }

    /// State of these declarations, kept in memory.
    pub fn in_memory(states: &[State]) -> Self {
        Self::new(states, Box::new(MemoryBackend::new(states)))
    }

    /// Starts a call over rows with these keys, one a row.
    pub fn begin(&mut self, keys: &EncodedKeys) -> Result<(), StateError> {
        self.backend.begin(keys)
    }

    /// Starts a call over due timers: of up to `limit` keys the earliest that is due at `now`, in order of time. Returns
    /// how many there are; with none, no call has started and there is nothing to end.
    pub fn begin_timers(&mut self, clock: Clock, now: i64, limit: usize) -> Result<usize, StateError> {
        self.backend.begin_timers(clock, now, limit)
    }

    /// Has what a key has expire when no call has been about it for so many milliseconds. It stays up to a sixteenth of
    /// that longer, so that not each call has to put it off.
    pub fn set_ttl(&mut self, ttl: Option<i64>) {
        self.ttl = ttl;
    }

    /// Puts off when what the keys of the current call have expires, if it does.
    pub fn touch(&mut self, now: i64) {
        if let Some(ttl) = self.ttl {
            let slack = ttl / SLACK;
            self.backend.keep_until(now.saturating_add(ttl).saturating_add(slack), slack);
        }
    }

    /// Clears what has expired, between calls, and says how many keys had something. Timers of these keys stay.
    pub fn expire(&mut self, now: i64) -> Result<usize, StateError> {
        let mut gone = 0;
        while self.backend.next_timer(Clock::Expiry).is_some_and(|next| next <= now) {
            let keys = self.backend.begin_timers(Clock::Expiry, now, Limits::BATCH_ROWS)?;
            if keys == 0 {
                break;
            }
            self.clear_states(keys)?;
            self.backend.commit()?;
            gone += keys;
        }
        Ok(gone)
    }

    /// Clears all that the keys of a call have.
    fn clear_states(&mut self, keys: usize) -> Result<(), StateError> {
        let groups: Vec<u32> = (0..keys as u32).collect();
        for (at, state) in self.states.iter().enumerate() {
            match state.kind {
                StateKind::Value => {
                    let null = |column: &Column| new_null_array(&column.data_type.to_arrow(), keys);
                    let values = Columns::new(keys, state.columns.iter().map(null).collect());
                    let present = BooleanBuffer::new_unset(keys);
                    self.backend.write_values(at, &groups, Cells { present, values })?;
                }
                StateKind::List => self.backend.clear_lists(at, &groups)?,
                StateKind::Map => self.backend.clear_maps(at, &groups)?,
                StateKind::Broadcast | StateKind::Operator => {}
            }
        }
        Ok(())
    }

    /// The distinct keys of the current call and each row's position among them.
    pub fn grouping(&self) -> &Grouping {
        self.backend.grouping()
    }

    /// The bytes of the current call's keys, by position.
    pub fn call_keys(&self) -> Vec<&[u8]> {
        self.backend.keys()
    }

    /// The times of the timers that the current call is about, by position of their key.
    pub fn fired_times(&self) -> &[i64] {
        self.backend.fired_times()
    }

    /// Applies all that the call has written and ends it.
    pub fn commit(&mut self) -> Result<(), StateError> {
        self.backend.commit()
    }

    /// Discards all that the call has written and ends it; the timers that it was about are due again.
    pub fn rollback(&mut self) {
        self.backend.rollback();
    }

    /// All keyed states and timers as parts of a snapshot, or what has changed of them. Not during a call.
    pub fn snapshot(
        &mut self,
        max: MaxParallelism,
        request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError> {
        self.backend.snapshot(&self.states, max, request)
    }

    /// Adds what a part of a snapshot has.
    pub fn restore(&mut self, part: &StatePart) -> Result<(), StateError> {
        self.backend.restore(&self.states, part)
    }

    /// A time before which no timer of this clock is due, if any is set.
    pub fn next_timer(&self, clock: Clock) -> Option<i64> {
        self.backend.next_timer(clock)
    }

    /// How many timers are set on a clock.
    pub fn pending_timers(&self, clock: Clock) -> u64 {
        self.backend.pending_timers(clock)
    }

    /// Drops all timers of a clock, between calls, and says how many they were.
    pub fn drop_timers(&mut self, clock: Clock) -> Result<u64, StateError> {
        self.backend.drop_timers(clock)
    }

    /// How many keys have a state or a timer.
    pub fn key_count(&self) -> usize {
        self.backend.key_count()
    }

    /// The state of this name and kind.
    pub fn state(&self, kind: StateKind, name: &str) -> Result<StateId, StateError> {
        let found = self.states.iter().position(|s| s.kind == kind && s.name == name);
        found.map(|at| StateId(at as u32)).ok_or_else(|| StateError::Unknown {
            kind: kind_name(kind),
            name: name.to_owned(),
            declared: self.declared(),
        })
    }

    /// How many distinct keys the current call has.
    pub fn keys(&self) -> usize {
        self.backend.grouping().groups()
    }

    /// The values of some keys.
    pub fn read_values(&mut self, state: StateId, keys: &[u32]) -> Result<Cells, StateError> {
        let at = self.opened(state, StateKind::Value, keys)?;
        self.backend.read_values(at, keys)
    }

    /// Sets values; an absent cell clears.
    pub fn write_values(&mut self, state: StateId, keys: &[u32], cells: Cells) -> Result<(), StateError> {
        let at = self.opened(state, StateKind::Value, keys)?;
        self.check_cells(at, &cells, keys.len())?;
        self.backend.write_values(at, keys, cells)
    }

    /// The lists of some keys.
    pub fn read_lists(&mut self, state: StateId, keys: &[u32]) -> Result<Runs, StateError> {
        let at = self.opened(state, StateKind::List, keys)?;
        self.backend.read_lists(at, keys)
    }

    /// Appends run i to the list of key i.
    pub fn append_lists(&mut self, state: StateId, keys: &[u32], runs: Runs) -> Result<(), StateError> {
        let at = self.opened(state, StateKind::List, keys)?;
        self.check_rows(at, &runs.items, runs.items.rows)?;
        self.check_offsets(at, "runs", &runs.offsets, keys.len(), runs.items.rows)?;
        self.backend.append_lists(at, keys, runs)
    }

    /// Empties lists.
    pub fn clear_lists(&mut self, state: StateId, keys: &[u32]) -> Result<(), StateError> {
        let at = self.opened(state, StateKind::List, keys)?;
        self.backend.clear_lists(at, keys)
    }

    /// The values of pairs (key, map key); map key i is `map_bytes[map_offsets[i]..map_offsets[i + 1]]`.
    pub fn read_entries(
        &mut self,
        state: StateId,
        keys: &[u32],
        map_offsets: &[u32],
        map_bytes: &[u8],
    ) -> Result<Cells, StateError> {
        let at = self.opened(state, StateKind::Map, keys)?;
        self.check_offsets(at, "map keys", map_offsets, keys.len(), map_bytes.len())?;
        self.backend.read_entries(at, keys, MapKeys { offsets: map_offsets, bytes: map_bytes })
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
        let at = self.opened(state, StateKind::Map, keys)?;
        self.check_offsets(at, "map keys", map_offsets, keys.len(), map_bytes.len())?;
        self.check_cells(at, &cells, keys.len())?;
        self.backend.write_entries(at, keys, MapKeys { offsets: map_offsets, bytes: map_bytes }, cells)
    }

    /// Entries in map-key order from `start` on, at most `limit` a key.
    pub fn scan_entries(
        &mut self,
        state: StateId,
        keys: &[u32],
        start: Option<&[u8]>,
        limit: u32,
    ) -> Result<Entries, StateError> {
        let at = self.opened(state, StateKind::Map, keys)?;
        self.backend.scan_entries(at, keys, start, limit)
    }

    /// Empties maps.
    pub fn clear_maps(&mut self, state: StateId, keys: &[u32]) -> Result<(), StateError> {
        let at = self.opened(state, StateKind::Map, keys)?;
        self.backend.clear_maps(at, keys)
    }

    /// Sets a timer for each (key, time); setting one twice fires it once.
    pub fn set_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        self.check_timers(keys, times)?;
        self.backend.set_timers(clock, keys, times)
    }

    /// Clears timers.
    pub fn clear_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        self.check_timers(keys, times)?;
        self.backend.clear_timers(clock, keys, times)
    }

    /// The position of an open state of this kind, after a look at the keys.
    fn opened(&self, state: StateId, kind: StateKind, keys: &[u32]) -> Result<usize, StateError> {
        self.check_positions(keys)?;
        let found = self.states.get(state.0 as usize).filter(|s| s.kind == kind);
        found.map(|_| state.0 as usize).ok_or_else(|| StateError::Unknown {
            kind: kind_name(kind),
            name: format!("#{}", state.0),
            declared: self.declared(),
        })
    }

    fn check_positions(&self, keys: &[u32]) -> Result<(), StateError> {
        let there = self.keys();
        match keys.iter().find(|&&position| position as usize >= there) {
            Some(&position) => Err(StateError::NoSuchKey { position, keys: there }),
            None => Ok(()),
        }
    }

    fn check_rows(&self, state: usize, rows: &Columns, expected: usize) -> Result<(), StateError> {
        shape::check(&self.states[state].name, &self.states[state].columns, rows, expected)
    }

    fn check_cells(&self, state: usize, cells: &Cells, rows: usize) -> Result<(), StateError> {
        self.check_rows(state, &cells.values, rows)?;
        let present: &BooleanBuffer = &cells.present;
        if present.len() == rows {
            return Ok(());
        }
        Err(self.shape(state, format!("{} presence bits found, {rows} expected", present.len())))
    }

    /// Checks that `offsets` divides `length` into `runs` runs.
    fn check_offsets(
        &self,
        state: usize,
        what: &str,
        offsets: &[u32],
        runs: usize,
        length: usize,
    ) -> Result<(), StateError> {
        let ends = offsets.first() == Some(&0) && offsets.last().is_some_and(|&last| last as usize == length);
        if offsets.len() == runs + 1 && ends && offsets.is_sorted() {
            return Ok(());
        }
        let expected = format!("{} ascending positions from 0 to {length}", runs + 1);
        let found = format!("{} from {:?} to {:?}", offsets.len(), offsets.first(), offsets.last());
        Err(self.shape(state, format!("offsets of {what}: {found} found, {expected} expected")))
    }

    fn check_timers(&self, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        self.check_positions(keys)?;
        if keys.len() == times.len() {
            return Ok(());
        }
        let problem = format!("{} keys with {} times", keys.len(), times.len());
        Err(StateError::Shape { name: "timers".to_owned(), problem })
    }

    fn shape(&self, state: usize, problem: String) -> StateError {
        StateError::Shape { name: self.states[state].name.clone(), problem }
    }

    fn declared(&self) -> String {
        if self.states.is_empty() {
            return "none".to_owned();
        }
        let names = self.states.iter().map(|s| format!("{} ({})", s.name, kind_name(s.kind)));
        names.collect::<Vec<_>>().join(", ")
    }
}

fn kind_name(kind: StateKind) -> &'static str {
    match kind {
        StateKind::Value => "value",
        StateKind::List => "list",
        StateKind::Map => "map",
        StateKind::Broadcast => "broadcast",
        StateKind::Operator => "operator",
    }
}
/// How small a part of its time more something may be kept.
const SLACK: i64 = 16;

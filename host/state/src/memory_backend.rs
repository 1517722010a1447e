//! Keyed state in memory.
//!
//! One key table gives each key a slot; every state is an array, or some, by slot, and so are the timers. A slot is
//! given up at the end of a call in which its key was new or lost something, if nothing is left there.

mod content;
mod key_groups;
pub(crate) mod restore;
mod rewrite;
mod rotation;
mod snapshot;
#[cfg(test)]
mod snapshot_tests;

use millstream_types::{
    Cells, Clock, EncodedKeys, Entries, KeyGroup, MaxParallelism, Runs, SnapshotRequest, State, StateKind,
    StatePart,
};

use crate::{
    Grouping, KeyTable, KeyedBackend, MapKeys, StateError,
    bits::Bits,
    changes::{ChangeLog, ChangedSlots},
    list_state::ListState,
    list_store::ListStore,
    map_state::MapState,
    row_codec::RowCodec,
    slot_store::SlotStore,
    timer_wheel::Entry,
    timers::Timers,
    value_state::ValueState,
};
use key_groups::KeyGroups;
use rewrite::Rewrite;
use rotation::Rotation;

/// Keyed state and timers in memory.
pub struct MemoryBackend {
    pub(crate) keys: KeyTable,
    pub(crate) states: Vec<Store>,
    event: Timers,
    processing: Timers,
    /// When what a key has expires: one time a key at most, which does not keep the key.
    expiry: Timers,
    /// Until when what the keys of the current call have is kept, and how much less is as good.
    keep: Option<(i64, i64)>,
    pub(crate) grouping: Grouping,
    /// Slots that are not given up though nothing is there: a store behind this one has something of their keys.
    pub(crate) kept: Bits,
    timer_changes: Vec<TimerChange>,
    /// The timers that the current call is about, and their times once more for whoever fires them.
    fired: Vec<Entry>,
    fired_clock: Clock,
    fired_times: Vec<i64>,
    /// Slots that have lost something in the current call.
    emptied: Vec<u32>,
    /// What has changed: of the states, then of the timers on event and on processing time.
    /// With each snapshot the key group whose turn it is to be written whole behind it is noted.
    changes: ChangeLog<KeyGroup>,
    rotation: Rotation,
    rewrite: Rewrite,
    /// By state.
    codecs: Vec<RowCodec>,
    /// Of slots that were in a snapshot, once there has been one.
    key_groups: KeyGroups,
    /// Bytes of the last snapshot that had everything.
    whole_bytes: usize,
}

pub(crate) enum Store {
    Value(ValueState),
    List(ListState),
    Map(MapState),
    /// Not kept by key.
    Elsewhere,
}

/// Timers set or cleared by the current call.
struct TimerChange {
    clock: Clock,
    set: bool,
    groups: Vec<u32>,
    times: Vec<i64>,
}

impl MemoryBackend {
    /// A backend for these states, by position; those of a kind that is not kept by key are passed over.
    pub fn new(states: &[State]) -> Self {
        Self {
            keys: KeyTable::new(),
            states: states.iter().map(Store::new).collect(),
            event: Timers::new(),
            processing: Timers::new(),
            expiry: Timers::new(),
            keep: None,
            grouping: Grouping::default(),
            kept: Bits::default(),
            timer_changes: Vec::new(),
            fired: Vec::new(),
            fired_clock: Clock::Event,
            fired_times: Vec::new(),
            emptied: Vec::new(),
            changes: ChangeLog::new(states.len() + CLOCKS.len()),
            rotation: Rotation::default(),
            rewrite: Rewrite::default(),
            codecs: states.iter().map(|state| RowCodec::new(&state.columns)).collect(),
            key_groups: KeyGroups::default(),
            whole_bytes: 0,
        }
    }

    pub(crate) fn timers_of(&self, clock: Clock) -> &Timers {
        match clock {
            Clock::Event => &self.event,
            Clock::Processing => &self.processing,
            Clock::Expiry => &self.expiry,
        }
    }

    pub(crate) fn timers(&mut self, clock: Clock) -> &mut Timers {
        match clock {
            Clock::Event => &mut self.event,
            Clock::Processing => &mut self.processing,
            Clock::Expiry => &mut self.expiry,
        }
    }

    /// Whether a slot has anything.
    pub(crate) fn is_present(&self, slot: u32) -> bool {
        self.event.has(slot) || self.processing.has(slot) || self.states.iter().any(|s| s.is_present(slot))
    }

    /// Makes room in every state for the keys that there are now.
    pub(crate) fn grow(&mut self) {
        let slots = self.keys.slots();
        self.states.iter_mut().for_each(|s| s.grow(slots));
    }

    /// Forgets a key and all that it has, between calls.
    pub(crate) fn forget(&mut self, slot: u32) {
        self.states.iter_mut().for_each(|s| s.remove(slot));
        self.event.remove_all(slot);
        self.processing.remove_all(slot);
        self.expiry.remove_all(slot);
        self.keys.remove(slot);
        self.key_groups.forget(slot);
        // The key is elsewhere by now, which a snapshot of changes would not know.
        self.changes.build_on_nothing();
    }

    /// The bytes of memory that a slot takes, apart from what texts, lists and maps have elsewhere.
    pub(crate) fn bytes_per_slot(&self) -> usize {
        let states: usize = self.states.iter().map(Store::bytes_per_slot).sum();
        let timers: usize = CLOCKS.iter().map(|&clock| self.timers_of(clock).bytes_per_slot()).sum();
        KeyTable::BYTES_PER_SLOT + states + timers
    }

    /// The bytes of memory that do not go by slots.
    pub(crate) fn bytes_elsewhere(&self) -> usize {
        self.keys.bytes_elsewhere() + self.states.iter().map(Store::bytes_elsewhere).sum::<usize>()
    }

    fn value(&mut self, state: usize) -> (&mut ValueState, &[u32]) {
        let Store::Value(value) = &mut self.states[state] else { unreachable!("the kind was checked") };
        (value, &self.grouping.slot_of_group)
    }

    fn list(&mut self, state: usize) -> (&mut ListState, &[u32]) {
        let Store::List(list) = &mut self.states[state] else { unreachable!("the kind was checked") };
        (list, &self.grouping.slot_of_group)
    }

    fn map(&mut self, state: usize) -> (&mut MapState, &[u32]) {
        let Store::Map(map) = &mut self.states[state] else { unreachable!("the kind was checked") };
        (map, &self.grouping.slot_of_group)
    }

    /// A call that nobody has ended has failed.
    fn drop_open_call(&mut self) {
        if self.grouping.groups() > 0 {
            self.rollback();
        }
    }

    fn apply_timer_changes(&mut self) {
        for change in std::mem::take(&mut self.timer_changes) {
            let slots = change.groups.iter().map(|&group| self.grouping.slot_of_group[group as usize]);
            self.changes.of_store(self.states.len() + change.clock as usize).mark(slots.clone());
            let timers = match change.clock {
                Clock::Event => &mut self.event,
                Clock::Processing => &mut self.processing,
                Clock::Expiry => &mut self.expiry,
            };
            if change.set {
                timers.grow(self.keys.slots());
                slots.zip(&change.times).for_each(|(slot, &time)| timers.set(slot, time));
            } else {
                self.emptied.extend(slots.clone());
                slots.zip(&change.times).for_each(|(slot, &time)| timers.clear(slot, time));
            }
        }
    }

    /// Puts off when what the keys of the call have expires, and forgets it where there is nothing.
    fn apply_keep(&mut self) {
        let Some((time, slack)) = self.keep.take() else { return };
        self.expiry.grow(self.keys.slots());
        let changed = self.changes.of_store(self.states.len() + Clock::Expiry as usize);
        for &slot in &self.grouping.slot_of_group {
            let has_state = self.kept.get(slot) || self.states.iter().any(|s| s.is_present(slot));
            let found = self.expiry.earliest(slot);
            if found.map_or(!has_state, |found| has_state && found >= time.saturating_sub(slack)) {
                continue;
            }
            if let Some(found) = found {
                self.expiry.clear(slot, found);
            }
            if has_state {
                self.expiry.set(slot, time);
            }
            changed.mark([slot]);
        }
    }

    /// Ends the call and gives up slots at which nothing is.
    fn end_call(&mut self) {
        let mut candidates = std::mem::take(&mut self.emptied);
        candidates.extend(self.grouping.created.iter().map(|&g| self.grouping.slot_of_group[g as usize]));
        let Self { keys, states, event, processing, expiry, kept, changes, key_groups, .. } = self;
        let is_dead = |slot| {
            !event.has(slot)
                && !processing.has(slot)
                && !states.iter().any(|s| s.is_present(slot))
                && !kept.get(slot)
        };
        keys.remove_each(&candidates, is_dead, |slot, key| {
            changes.remove(slot, key);
            key_groups.forget(slot);
            expiry.remove_all(slot);
        });
        candidates.clear();
        self.emptied = candidates;
        self.fired.clear();
        self.fired_times.clear();
        self.keep = None;
        self.grouping.start(0);
    }
}

impl KeyedBackend for MemoryBackend {
    fn begin(&mut self, keys: &EncodedKeys) -> Result<(), StateError> {
        self.drop_open_call();
        self.grouping.start(keys.len());
        self.keys.resolve(keys, &mut self.grouping);
        let slots = self.keys.slots();
        self.states.iter_mut().for_each(|s| s.grow(slots));
        Ok(())
    }

    fn begin_timers(&mut self, clock: Clock, now: i64, limit: usize) -> Result<usize, StateError> {
        self.drop_open_call();
        let mut fired = std::mem::take(&mut self.fired);
        self.timers(clock).take_due(now, limit, &mut fired);
        self.grouping.slot_of_group.extend(fired.iter().map(|e| e.slot));
        self.fired_times.extend(fired.iter().map(|e| e.time));
        self.emptied.extend(fired.iter().map(|e| e.slot));
        self.fired_clock = clock;
        self.fired = fired;
        Ok(self.fired.len())
    }

    fn grouping(&self) -> &Grouping {
        &self.grouping
    }

    fn keys(&self) -> Vec<&[u8]> {
        self.grouping.slot_of_group.iter().map(|&slot| self.keys.key(slot)).collect()
    }

    fn fired_times(&self) -> &[i64] {
        &self.fired_times
    }

    fn read_values(&mut self, state: usize, keys: &[u32]) -> Result<Cells, StateError> {
        let (value, slot_of_group) = self.value(state);
        Ok(value.read(keys, slot_of_group))
    }

    fn write_values(&mut self, state: usize, keys: &[u32], cells: Cells) -> Result<(), StateError> {
        self.value(state).0.write(keys, cells);
        Ok(())
    }

    fn read_lists(&mut self, state: usize, keys: &[u32]) -> Result<Runs, StateError> {
        let (list, slot_of_group) = self.list(state);
        list.read(keys, slot_of_group)
    }

    fn append_lists(&mut self, state: usize, keys: &[u32], runs: Runs) -> Result<(), StateError> {
        self.list(state).0.append(keys, runs);
        Ok(())
    }

    fn clear_lists(&mut self, state: usize, keys: &[u32]) -> Result<(), StateError> {
        self.list(state).0.clear(keys);
        Ok(())
    }

    fn read_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        map_keys: MapKeys<'_>,
    ) -> Result<Cells, StateError> {
        let (map, slot_of_group) = self.map(state);
        map.read(keys, map_keys, slot_of_group)
    }

    fn write_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        map_keys: MapKeys<'_>,
        cells: Cells,
    ) -> Result<(), StateError> {
        self.map(state).0.write(keys, map_keys, &cells);
        Ok(())
    }

    fn scan_entries(
        &mut self,
        state: usize,
        keys: &[u32],
        start: Option<&[u8]>,
        limit: u32,
    ) -> Result<Entries, StateError> {
        let (map, slot_of_group) = self.map(state);
        map.scan(keys, start, limit, slot_of_group)
    }

    fn clear_maps(&mut self, state: usize, keys: &[u32]) -> Result<(), StateError> {
        self.map(state).0.clear(keys);
        Ok(())
    }

    fn set_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        self.timer_changes.push(TimerChange {
            clock,
            set: true,
            groups: keys.to_vec(),
            times: times.to_vec(),
        });
        Ok(())
    }

    fn clear_timers(&mut self, clock: Clock, keys: &[u32], times: &[i64]) -> Result<(), StateError> {
        self.timer_changes.push(TimerChange {
            clock,
            set: false,
            groups: keys.to_vec(),
            times: times.to_vec(),
        });
        Ok(())
    }

    fn keep_until(&mut self, time: i64, slack: i64) {
        self.keep = Some((time, slack));
    }

    fn commit(&mut self) -> Result<(), StateError> {
        let keys = self.grouping.groups();
        let (slot_of_group, emptied) = (&self.grouping.slot_of_group, &mut self.emptied);
        let stores = self.states.iter_mut().zip(self.changes.of_stores());
        stores.for_each(|(store, changed)| store.commit(slot_of_group, emptied, changed));
        let fired = self.states.len() + self.fired_clock as usize;
        self.changes.of_store(fired).mark(self.fired.iter().map(|entry| entry.slot));
        self.apply_timer_changes();
        self.apply_keep();
        self.end_call();
        self.go_on_with_rewrite(keys);
        Ok(())
    }

    fn rollback(&mut self) {
        self.states.iter_mut().for_each(Store::rollback);
        self.timer_changes.clear();
        let fired = std::mem::take(&mut self.fired);
        let timers = self.timers(self.fired_clock);
        fired.iter().for_each(|e| timers.set(e.slot, e.time));
        self.fired = fired;
        self.end_call();
    }

    fn next_timer(&self, clock: Clock) -> Option<i64> {
        match clock {
            Clock::Event => self.event.next_time(),
            Clock::Processing => self.processing.next_time(),
            Clock::Expiry => self.expiry.next_time(),
        }
    }

    fn pending_timers(&self, clock: Clock) -> u64 {
        match clock {
            Clock::Event => self.event.pending(),
            Clock::Processing => self.processing.pending(),
            Clock::Expiry => self.expiry.pending(),
        }
    }

    fn drop_timers(&mut self, clock: Clock) -> Result<u64, StateError> {
        let mut emptied = std::mem::take(&mut self.emptied);
        let dropped = self.timers(clock).clear_all(|slot| emptied.push(slot));
        self.changes.of_store(self.states.len() + clock as usize).mark(emptied.iter().copied());
        self.emptied = emptied;
        self.end_call();
        Ok(dropped)
    }

    fn key_count(&self) -> usize {
        self.keys.len()
    }

    fn snapshot(
        &mut self,
        states: &[State],
        max: MaxParallelism,
        request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError> {
        self.drop_open_call();
        Ok(self.parts(states, max, request))
    }

    fn restore(&mut self, states: &[State], part: &StatePart) -> Result<(), StateError> {
        self.drop_open_call();
        self.restore_part(states, part)
    }
}

impl Store {
    fn new(state: &State) -> Self {
        match state.kind {
            StateKind::Value => Store::Value(ValueState::new(&state.columns)),
            StateKind::List => Store::List(ListState::new(&state.columns)),
            StateKind::Map => Store::Map(MapState::new(&state.columns)),
            StateKind::Broadcast | StateKind::Operator => Store::Elsewhere,
        }
    }

    fn grow(&mut self, slots: usize) {
        match self {
            Store::Value(s) => s.grow(slots),
            Store::List(s) => s.grow(slots),
            Store::Map(s) => s.grow(slots),
            Store::Elsewhere => {}
        }
    }

    fn remove(&mut self, slot: u32) {
        match self {
            Store::Value(s) => s.store_mut().remove(slot),
            Store::List(s) => s.store_mut().remove(slot),
            Store::Map(s) => s.remove(slot),
            Store::Elsewhere => {}
        }
    }

    fn bytes_per_slot(&self) -> usize {
        match self {
            Store::Value(s) => s.store().rows().bytes_per_slot(),
            Store::List(_) => ListStore::BYTES_PER_SLOT,
            Store::Map(_) => MapState::BYTES_PER_SLOT,
            Store::Elsewhere => 0,
        }
    }

    fn bytes_elsewhere(&self) -> usize {
        match self {
            Store::Value(s) => s.store().rows().bytes_elsewhere(),
            Store::List(s) => s.store().bytes_elsewhere(),
            Store::Map(s) => s.bytes_elsewhere(),
            Store::Elsewhere => 0,
        }
    }

    pub(crate) fn is_present(&self, slot: u32) -> bool {
        match self {
            Store::Value(s) => s.is_present(slot),
            Store::List(s) => s.is_present(slot),
            Store::Map(s) => s.is_present(slot),
            Store::Elsewhere => false,
        }
    }

    fn commit(&mut self, slot_of_group: &[u32], emptied: &mut Vec<u32>, changed: &mut ChangedSlots) {
        match self {
            Store::Value(s) => s.commit(slot_of_group, emptied, changed),
            Store::List(s) => s.commit(slot_of_group, emptied, changed),
            Store::Map(s) => s.commit(slot_of_group, emptied, changed),
            Store::Elsewhere => {}
        }
    }

    fn rollback(&mut self) {
        match self {
            Store::Value(s) => s.rollback(),
            Store::List(s) => s.rollback(),
            Store::Map(s) => s.rollback(),
            Store::Elsewhere => {}
        }
    }
}

/// The clocks in the order of their stores, behind those of the states.
pub(crate) const CLOCKS: [Clock; 3] = [Clock::Event, Clock::Processing, Clock::Expiry];

#[cfg(test)]
mod tests {
    use millstream_types::hash_key;

    use super::*;
    use crate::conformance;

    #[test]
    fn conforms() {
        conformance::run(|states| Box::new(MemoryBackend::new(states)));
    }

    #[test]
    fn memory_does_not_grow_with_dead_keys() {
        let mut backend = MemoryBackend::new(&conformance::states());
        for round in 0..1000u32 {
            let mut keys = EncodedKeys::new();
            (0..50u32).for_each(|i| {
                let key = [round.to_be_bytes(), i.to_be_bytes()].concat();
                keys.push(&key, hash_key(&key));
            });
            backend.begin(&keys).expect("in memory");
            let positions: Vec<u32> = (0..50).collect();
            backend.set_timers(Clock::Event, &positions, &[0; 50]).expect("in memory");
            backend.commit().expect("in memory");
            assert_eq!(backend.begin_timers(Clock::Event, 0, 100), Ok(50));
            backend.commit().expect("in memory");
        }
        assert_eq!((backend.keys.len(), backend.keys.slots()), (0, 50));
    }
}

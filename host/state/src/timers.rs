//! The timers of the keys of one operator on one clock.
//!
//! Each slot has the set of times for which its key has a timer; the wheel holds the earliest of each set. So setting
//! a timer twice, clearing it and counting are exact and cost what the key's own timers cost, a round takes at most
//! one timer a key by itself, and a million timers of one key are one entry in the wheel.
//!
//! Invariant: the earliest time of every set that is not empty is in the wheel, but for slots in the current round.
//! The wheel may hold more: an entry that is not its slot's earliest time is passed over. When these outnumber the
//! others the wheel is filled anew.

use std::collections::VecDeque;

use crate::{
    prefetch::prefetch,
    timer_wheel::{Entry, TimerWheel},
};

/// Timers by slot.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    wheel: TimerWheel,
    sets: Vec<TimeSet>,
    more: Vec<VecDeque<i64>>,
    free: Vec<u32>,
    /// Slots that have a timer.
    slots: usize,
    pending: u64,
    round: u32,
}

/// The times of a slot. Nearly every key has one timer or none, so the first lies here and only others elsewhere.
#[derive(Clone, Copy, Debug)]
struct TimeSet {
    /// Means nothing if there is no timer.
    earliest: i64,
    rest: Rest,
    /// The round in which the slot fired last.
    round: u32,
}

/// What there is but for the earliest time, in four bytes: a million keys have a million of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rest(u32);

impl Rest {
    /// There is no timer at all.
    const EMPTY: Rest = Rest(u32::MAX);
    /// The earliest is all.
    const ONLY: Rest = Rest(u32::MAX - 1);

    /// The place in `more` where the later times are, in order.
    fn place(self) -> Option<u32> {
        (self.0 < Self::ONLY.0).then_some(self.0)
    }
}

impl TimeSet {
    const EMPTY: TimeSet = TimeSet { earliest: 0, rest: Rest::EMPTY, round: 0 };
}

impl Timers {
    pub(crate) fn new() -> Self {
        let wheel = TimerWheel::new();
        Self { wheel, sets: Vec::new(), more: Vec::new(), free: Vec::new(), slots: 0, pending: 0, round: 0 }
    }

    /// Makes room for slots below `slots`: before a timer is set for them, and not before there is one, as many
    /// operators use one clock only.
    pub(crate) fn grow(&mut self, slots: usize) {
        if slots > self.sets.len() {
            self.sets.resize(slots, TimeSet::EMPTY);
        }
    }

    /// How many timers are set.
    pub(crate) fn pending(&self) -> u64 {
        self.pending
    }

    /// Whether a slot has a timer.
    pub(crate) fn has(&self, slot: u32) -> bool {
        self.sets.get(slot as usize).is_some_and(|s| s.rest != Rest::EMPTY)
    }

    /// The times of a slot, in order.
    pub(crate) fn times(&self, slot: u32) -> impl Iterator<Item = i64> {
        let set = self.sets.get(slot as usize).filter(|set| set.rest != Rest::EMPTY);
        let later = set.and_then(|set| set.rest.place()).map(|place| &self.more[place as usize]);
        set.map(|set| set.earliest).into_iter().chain(later.into_iter().flatten().copied())
    }

    /// A time at or before which nothing is due. Usually the earliest timer; earlier if that was cleared.
    pub(crate) fn next_time(&self) -> Option<i64> {
        if self.pending == 0 { None } else { self.wheel.next_time() }
    }

    /// Sets a timer, once however often it is set.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, time: i64) {
        let set = &mut self.sets[slot as usize];
        match set.rest {
            Rest::EMPTY => {
                (set.earliest, set.rest) = (time, Rest::ONLY);
                self.slots += 1;
                self.pending += 1;
                self.wheel.insert(time, slot);
            }
            _ if set.earliest == time => {}
            _ if set.earliest > time => {
                let later = std::mem::replace(&mut set.earliest, time);
                self.wheel.insert(time, slot);
                self.add_later(slot, later);
            }
            _ => self.add_later(slot, time),
        }
        self.drop_passed_over();
    }

    /// Clears a timer, if it is set.
    pub(crate) fn clear(&mut self, slot: u32, time: i64) {
        let Some(set) = self.sets.get(slot as usize) else { return };
        if set.rest == Rest::EMPTY || set.earliest > time {
            return;
        }
        if set.earliest == time {
            self.remove_earliest(slot);
            self.enter_earliest(slot);
            return self.drop_passed_over();
        }
        if let Some(place) = set.rest.place() {
            let later = &mut self.more[place as usize];
            if let Ok(at) = later.binary_search(&time) {
                later.remove(at);
                self.pending -= 1;
                self.release_if_empty(slot, place);
            }
        }
    }

    /// Takes the timers of a round: of up to `limit` keys the earliest one that is due at `now`, in order of time, then
    /// slot. Later ones of these keys come with later rounds.
    pub(crate) fn take_due(&mut self, now: i64, limit: usize, due: &mut Vec<Entry>) {
        due.clear();
        self.start_round();
        while due.len() < limit {
            if let Some(slot) = self.wheel.upcoming(AHEAD) {
                prefetch(&self.sets, slot as usize);
            }
            let Some(entry) = self.wheel.pop_due(now) else { break };
            let set = &mut self.sets[entry.slot as usize];
            if set.rest != Rest::EMPTY && set.earliest == entry.time && set.round != self.round {
                set.round = self.round;
                self.remove_earliest(entry.slot);
                due.push(entry);
            }
        }
        due.iter().for_each(|entry| self.enter_earliest(entry.slot));
    }

    /// The earliest time of a slot.
    pub(crate) fn earliest(&self, slot: u32) -> Option<i64> {
        let set = self.sets.get(slot as usize)?;
        (set.rest != Rest::EMPTY).then_some(set.earliest)
    }

    /// Clears the timers of a slot and says how many they were.
    pub(crate) fn remove_all(&mut self, slot: u32) -> u64 {
        let before = self.pending;
        while self.has(slot) {
            self.remove_earliest(slot);
        }
        self.drop_passed_over();
        before - self.pending
    }

    /// All times, in order.
    #[cfg(test)]
    pub(crate) fn times_in_order(&self) -> impl Iterator<Item = i64> {
        let mut times: Vec<i64> = (0..self.sets.len() as u32).flat_map(|slot| self.times(slot)).collect();
        times.sort_unstable();
        times.into_iter()
    }

    /// About how many bytes a slot takes, here and in the wheel.
    pub(crate) fn bytes_per_slot(&self) -> usize {
        if self.sets.is_empty() { 0 } else { size_of::<TimeSet>() + 2 * size_of::<Entry>() }
    }

    /// Clears all timers, which are handed to `dropped`.
    pub(crate) fn clear_all(&mut self, mut dropped: impl FnMut(u32)) -> u64 {
        for (slot, set) in self.sets.iter_mut().enumerate() {
            if set.rest != Rest::EMPTY {
                dropped(slot as u32);
            }
            set.rest = Rest::EMPTY;
        }
        (self.more, self.free, self.slots) = (Vec::new(), Vec::new(), 0);
        self.wheel.clear();
        std::mem::take(&mut self.pending)
    }

    fn start_round(&mut self) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.sets.iter_mut().for_each(|s| s.round = 0);
            self.round = 1;
        }
    }

    /// Adds a time that is later than the slot's earliest.
    fn add_later(&mut self, slot: u32, time: i64) {
        let place = self.sets[slot as usize].rest.place().unwrap_or_else(|| self.take_place(slot));
        let later = &mut self.more[place as usize];
        if let Err(at) = later.binary_search(&time) {
            later.insert(at, time);
            self.pending += 1;
        }
    }

    fn take_place(&mut self, slot: u32) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.more.push(VecDeque::new());
            self.more.len() as u32 - 1
        });
        self.sets[slot as usize].rest = Rest(place);
        place
    }

    fn remove_earliest(&mut self, slot: u32) {
        self.pending -= 1;
        let set = &mut self.sets[slot as usize];
        let Some(place) = set.rest.place() else {
            set.rest = Rest::EMPTY;
            self.slots -= 1;
            return;
        };
        let earliest = self.more[place as usize].pop_front();
        set.earliest = earliest.expect("a place is given up with its last time");
        self.release_if_empty(slot, place);
    }

    fn release_if_empty(&mut self, slot: u32, place: u32) {
        if self.more[place as usize].is_empty() {
            self.more[place as usize] = VecDeque::new();
            self.free.push(place);
            self.sets[slot as usize].rest = Rest::ONLY;
        }
    }

    fn enter_earliest(&mut self, slot: u32) {
        let set = &self.sets[slot as usize];
        if set.rest != Rest::EMPTY {
            self.wheel.insert(set.earliest, slot);
        }
    }

    /// Fills the wheel anew when most of it would be passed over.
    fn drop_passed_over(&mut self) {
        if self.wheel.len() <= 2 * self.slots + TOLERATED {
            return;
        }
        self.wheel.clear();
        (0..self.sets.len() as u32).for_each(|slot| self.enter_earliest(slot));
    }
}

/// How many entries of the wheel ahead the memory of a slot is asked for.
const AHEAD: usize = 16;
/// Entries to be passed over that are not worth the work.
const TOLERATED: usize = 1024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn timers() -> Timers {
        let mut timers = Timers::new();
        timers.grow(10);
        timers
    }

    fn due(timers: &mut Timers, now: i64, limit: usize) -> Vec<(i64, u32)> {
        let mut due = Vec::new();
        timers.take_due(now, limit, &mut due);
        due.iter().map(|e| (e.time, e.slot)).collect()
    }

    #[test]
    fn a_round_has_the_earliest_timer_of_each_key() {
        let mut timers = timers();
        [(1, 50), (0, 30), (1, 10), (0, 30), (2, 99)].iter().for_each(|&(slot, time)| timers.set(slot, time));
        assert_eq!((timers.pending(), timers.next_time()), (4, Some(10)));
        assert_eq!(due(&mut timers, 60, 100), [(10, 1), (30, 0)]);
        assert_eq!(due(&mut timers, 60, 100), [(50, 1)]);
        assert_eq!(due(&mut timers, 60, 100), []);
        assert_eq!((timers.pending(), timers.next_time()), (1, Some(99)));
    }

    #[test]
    fn a_limited_round_leaves_the_rest_in_order() {
        let mut timers = timers();
        (0..5).for_each(|slot| timers.set(slot, 100 - i64::from(slot)));
        timers.set(4, 97);
        assert_eq!(due(&mut timers, 100, 2), [(96, 4), (97, 3)]);
        assert_eq!(due(&mut timers, 100, 2), [(97, 4), (98, 2)]);
        assert_eq!(due(&mut timers, 100, 2), [(99, 1), (100, 0)]);
    }

    #[test]
    fn setting_and_clearing_for_ever_takes_no_memory() {
        let mut timers = timers();
        for time in 0..100_000 {
            timers.set(0, 1_000_000 - time);
            timers.set(1, time);
            timers.clear(1, time);
        }
        (0..99_999).for_each(|time| timers.clear(0, 1_000_000 - time));
        assert_eq!(timers.pending(), 1);
        assert!(timers.wheel.len() <= 2 * timers.slots + TOLERATED + 1);
        assert!(timers.has(0) && !timers.has(1) && timers.more.iter().all(VecDeque::is_empty));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(u32, i64),
        Clear(u32, i64),
        Rounds(i64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0u32..6, 0i64..300).prop_map(|(slot, time)| Step::Set(slot, time)),
            2 => (0u32..6, 0i64..300).prop_map(|(slot, time)| Step::Clear(slot, time)),
            1 => (0i64..300, 1usize..5).prop_map(|(now, limit)| Step::Rounds(now, limit)),
        ]
    }

    /// One round of the model: per key the earliest due time, the first `limit` in order.
    fn model_round(model: &mut BTreeSet<(i64, u32)>, now: i64, limit: usize) -> Vec<(i64, u32)> {
        let mut seen = BTreeSet::new();
        let due: Vec<_> = model
            .iter()
            .copied()
            .filter(|&(time, slot)| time <= now && seen.insert(slot))
            .take(limit)
            .collect();
        due.iter().for_each(|timer| _ = model.remove(timer));
        due
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_set(steps in prop::collection::vec(step(), 1..150)) {
            let (mut timers, mut model) = (timers(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Set(slot, time) => {
                        timers.set(slot, time);
                        model.insert((time, slot));
                    }
                    Step::Clear(slot, time) => {
                        timers.clear(slot, time);
                        model.remove(&(time, slot));
                    }
                    Step::Rounds(now, limit) => loop {
                        let expected = model_round(&mut model, now, limit);
                        prop_assert_eq!(due(&mut timers, now, limit), expected.clone());
                        if expected.is_empty() {
                            break;
                        }
                    },
                }
                prop_assert_eq!(timers.pending(), model.len() as u64);
                (0..6).try_for_each(|slot| {
                    prop_assert_eq!(timers.has(slot), model.iter().any(|&(_, s)| s == slot));
                    Ok(())
                })?;
            }
        }
    }
}

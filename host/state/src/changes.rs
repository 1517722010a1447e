//! What has changed in a store by slot since a snapshot: what the next one has to write.
//!
//! Every state, and the timers of every clock, have a mark a slot, set when a call that has written there commits. A key
//! that goes is noted by its bytes, as its slot is given to another, and only if a snapshot may have it. Nothing is
//! marked or noted before the first snapshot: a job without checkpoints pays for none.
//!
//! What happens between two snapshots is an [`Interval`]. A snapshot that builds on an earlier one writes all that has
//! happened since that one was taken, whatever became of those in between: so intervals are kept until a snapshot behind
//! them is known to be complete, which whoever asks for the next one says.
//!
//! ```text
//!   taken:      1 ─────────── 2 ─────────── 3 ──────── now
//!   intervals:        (2)           (3)       current
//!   a snapshot that builds on 1 (say, 2 was given up and 3 is under way) has (2), (3) and current
//! ```

use std::{collections::VecDeque, sync::Arc};

use millstream_types::EncodedKeys;

/// A mark a slot; those beyond the end have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedSlots {
    on: bool,
    words: Vec<u64>,
}

impl ChangedSlots {
    /// Begins to take marks.
    pub(crate) fn turn_on(&mut self) {
        self.on = true;
    }

    /// Marks slots, if marks are taken.
    #[inline]
    pub(crate) fn mark(&mut self, slots: impl IntoIterator<Item = u32>) {
        if self.on {
            slots.into_iter().for_each(|slot| self.set(slot));
        }
    }

    #[inline]
    fn set(&mut self, slot: u32) {
        match self.words.get_mut(slot as usize / WORD) {
            Some(word) => *word |= 1 << (slot as usize % WORD),
            None => self.grow_and_set(slot),
        }
    }

    #[cold]
    fn grow_and_set(&mut self, slot: u32) {
        let word = slot as usize / WORD;
        // Twice as much at once, as slots come in ascending order.
        self.words.resize((word + 1).next_power_of_two(), 0);
        self.words[word] |= 1 << (slot as usize % WORD);
    }

    /// Takes a mark away and says whether there was one.
    pub(crate) fn unmark(&mut self, slot: u32) -> bool {
        let Some(word) = self.words.get_mut(slot as usize / WORD) else { return false };
        let was = *word >> (slot as usize % WORD) & 1 == 1;
        *word &= !(1 << (slot as usize % WORD));
        was
    }

    /// Whether a slot is marked.
    #[cfg(test)]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.words.get(slot as usize / WORD).is_some_and(|w| w >> (slot as usize % WORD) & 1 == 1)
    }

    /// The marked slots, ascending.
    pub(crate) fn slots(&self) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.count());
        for (at, &word) in self.words.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                slots.push((at * WORD) as u32 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        slots
    }

    /// Adds the marks of another.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// How many slots are marked.
    pub(crate) fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The marks so far; none are left.
    pub(crate) fn take(&mut self) -> Self {
        let fresh = Self { on: self.on, words: vec![0; self.words.len()] };
        std::mem::replace(self, fresh)
    }
}

const WORD: usize = u64::BITS as usize;

/// What has happened between two snapshots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    /// The slots that have changed, by store.
    pub(crate) changed: Vec<ChangedSlots>,
    /// Keys that have gone, of those that snapshots may have. One may have come again since.
    pub(crate) removed: EncodedKeys,
}

impl Interval {
    fn merge(&mut self, other: &Self) {
        self.changed.iter_mut().zip(&other.changed).for_each(|(mine, other)| mine.merge(other));
        self.removed.append(other.removed.clone());
    }
}

/// What has happened since a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Since<T> {
    /// The snapshot.
    pub(crate) base: u64,
    /// What has happened.
    pub(crate) changes: Arc<Interval>,
    /// What was noted with it.
    pub(crate) note: T,
    /// Whether no other has been taken behind it.
    pub(crate) is_last: bool,
}

/// The changes of the stores of one key table, by the snapshots between which they happened.
#[derive(Clone, Debug)]
pub(crate) struct ChangeLog<T> {
    current: Interval,
    /// Snapshots that have been taken, ascending, each with what happened before it and what was noted with it.
    taken: VecDeque<Taken<T>>,
    /// Slots of keys that snapshots may have.
    stored: ChangedSlots,
    /// Whether the next snapshot builds on nothing.
    whole_next: bool,
}

#[derive(Clone, Debug)]
struct Taken<T> {
    checkpoint: u64,
    before: Arc<Interval>,
    note: T,
}

impl<T: Clone> ChangeLog<T> {
    /// A log of so many stores that notes nothing yet.
    pub(crate) fn new(stores: usize) -> Self {
        let current =
            Interval { changed: vec![ChangedSlots::default(); stores], removed: EncodedKeys::new() };
        Self { current, taken: VecDeque::new(), stored: ChangedSlots::default(), whole_next: false }
    }

    /// Begins to note changes.
    pub(crate) fn turn_on(&mut self) {
        self.current.changed.iter_mut().for_each(ChangedSlots::turn_on);
        self.stored.turn_on();
    }

    /// Where the changes of a store are marked.
    #[inline]
    pub(crate) fn of_store(&mut self, store: usize) -> &mut ChangedSlots {
        &mut self.current.changed[store]
    }

    /// Where the changes of all stores are marked.
    #[inline]
    pub(crate) fn of_stores(&mut self) -> &mut [ChangedSlots] {
        &mut self.current.changed
    }

    /// The key of a slot is in no snapshot that counts.
    pub(crate) fn forget_stored(&mut self, slot: u32) {
        self.stored.unmark(slot);
    }

    /// Slots of keys that are in a snapshot by now.
    pub(crate) fn add_stored(&mut self, slots: impl IntoIterator<Item = u32>) {
        self.stored.mark(slots);
    }

    /// The key of a slot goes. `hash` need not be the key's.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32, key: &[u8]) {
        if self.stored.unmark(slot) {
            self.current.removed.push(key, 0);
        }
    }

    /// A snapshot is being taken: what happens from now on is behind it. Returns what has happened since `base`; none if
    /// that is not known any more, or never was. What happened before it is forgotten.
    pub(crate) fn take(&mut self, checkpoint: u64, base: Option<u64>, note: T) -> Option<Since<T>> {
        let fresh = self.current.changed.iter_mut().map(ChangedSlots::take).collect();
        let before =
            Arc::new(Interval { changed: fresh, removed: std::mem::take(&mut self.current.removed) });
        let since = base.and_then(|base| self.since(base, &before));
        self.taken.push_back(Taken { checkpoint, before, note });
        if self.taken.len() > REMEMBERED {
            self.taken.pop_front();
        }
        self.whole_next = false;
        since
    }

    fn since(&mut self, base: u64, now: &Arc<Interval>) -> Option<Since<T>> {
        if self.whole_next {
            return None;
        }
        let at = self.taken.iter().position(|taken| taken.checkpoint == base)?;
        self.taken.drain(..at);
        let (note, is_last) = (self.taken[0].note.clone(), self.taken.len() == 1);
        let mut changes = now.clone();
        for taken in self.taken.iter().skip(1) {
            Arc::make_mut(&mut changes).merge(&taken.before);
        }
        Some(Since { base, changes, note, is_last })
    }

    /// Notes something else with the last snapshot.
    pub(crate) fn set_note(&mut self, note: T) {
        if let Some(last) = self.taken.back_mut() {
            last.note = note;
        }
    }

    /// Has the next snapshot build on nothing.
    pub(crate) fn build_on_nothing(&mut self) {
        self.whole_next = true;
    }

    /// What is there is what a complete checkpoint has: the next snapshot may build on it, unless something else is
    /// there that may not be built on. Returns whether it may.
    pub(crate) fn restored(&mut self, checkpoint: u64, note: T) -> bool {
        self.turn_on();
        if self.taken.is_empty() && !self.whole_next {
            self.take(checkpoint, None, note);
        }
        self.whole_next |= self.taken.back().is_none_or(|taken| taken.checkpoint != checkpoint);
        !self.whole_next
    }
}

/// Snapshots on which a later one may build. More are not under way, but may have been given up one after the other.
const REMEMBERED: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_marked_before_it_is_turned_on() {
        let mut log = ChangeLog::<()>::new(1);
        log.of_store(0).mark([1, 2]);
        log.remove(1, b"key");
        log.turn_on();
        log.of_store(0).mark([70]);
        assert!(log.take(1, None, ()).is_none());
        assert!(log.take(2, Some(7), ()).is_none());
        let changes = log.take(3, Some(1), ()).expect("taken").changes;
        assert_eq!((changes.changed[0].count(), changes.removed.len()), (0, 0));
    }

    #[test]
    fn only_keys_that_a_snapshot_may_have_are_noted_when_they_go() {
        let mut log = ChangeLog::new(1);
        log.turn_on();
        log.take(1, None, ());
        log.add_stored([5]);
        log.remove(4, b"young");
        log.remove(5, b"old");
        log.remove(5, b"the slot's next one");
        let changes = log.take(2, Some(1), ()).expect("taken").changes;
        assert_eq!(changes.removed.iter().collect::<Vec<_>>(), [b"old"]);
    }

    #[test]
    fn a_snapshot_of_something_else_is_no_base() {
        let mut log = ChangeLog::new(1);
        assert!(log.restored(4, ()));
        assert!(!log.restored(5, ()), "of another snapshot");
        assert!(log.take(6, Some(4), ()).is_none());
        assert!(log.take(7, Some(6), ()).is_some());
        log.build_on_nothing();
        assert!(log.take(8, Some(7), ()).is_none());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Mark(u32),
        Unmark(u32),
        /// A snapshot that builds on the one so many before it.
        Take(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0u32..300).prop_map(Step::Mark),
            1 => (0u32..300).prop_map(Step::Unmark),
            3 => (0usize..4).prop_map(Step::Take),
        ]
    }

    proptest! {
        /// A snapshot has what happened since the one that it builds on, whatever was taken in between.
        #[test]
        fn nothing_is_lost_between_snapshots(steps in prop::collection::vec(step(), 1..80)) {
            let mut log = ChangeLog::new(1);
            log.turn_on();
            log.take(0, None, 0);
            // Marks by the interval in which they were made; the last one is current. Interval i begins at snapshot i.
            let mut model: Vec<BTreeSet<u32>> = vec![BTreeSet::new()];
            let mut oldest = 0;
            for step in steps {
                let taken = model.len();
                match step {
                    Step::Mark(slot) => {
                        log.of_store(0).mark([slot]);
                        model[taken - 1].insert(slot);
                    }
                    Step::Unmark(slot) => {
                        let was = model[taken - 1].remove(&slot);
                        prop_assert_eq!(log.of_store(0).unmark(slot), was);
                        prop_assert!(!log.of_store(0).contains(slot));
                    }
                    Step::Take(back) => {
                        let base = (taken - 1).saturating_sub(back).max(oldest);
                        oldest = base;
                        let since = log.take(taken as u64, Some(base as u64), taken).expect("not forgotten");
                        let expected: BTreeSet<u32> = model[base..].iter().flatten().copied().collect();
                        prop_assert_eq!(BTreeSet::from_iter(since.changes.changed[0].slots()), expected);
                        prop_assert_eq!((since.note, since.is_last), (base, base == taken - 1));
                        model.push(BTreeSet::new());
                    }
                }
            }
        }
    }
}

//! A hierarchical timer wheel: times in buckets that get finer as they come near.
//!
//! A time belongs to a tick of 16 ms. Ten levels of 64 buckets cover all ticks; a tick lies at the level of the highest
//! six bits in which it differs from the wheel's position, so a lower level comes before a higher one, and a bucket
//! before those behind it. Adding is a push; the next bucket is found by one bit per bucket. When the wheel reaches a
//! bucket of a higher level, it moves to the earliest tick in it and deals the bucket out anew. Only the entries of
//! the current tick are sorted.
//!
//! Invariant: what belongs to the current tick or an earlier one is in `current` or `late`; buckets at or before the
//! position of a level are empty.

/// Entries (time, slot) that come out in order of time, then slot.
#[derive(Clone, Debug)]
pub(crate) struct TimerWheel {
    position: u64,
    buckets: Vec<Bucket>,
    /// One bit a bucket that has entries, one word a level.
    occupied: [u64; LEVELS],
    /// The entries of the current tick, the earliest last.
    current: Vec<Entry>,
    /// Entries that came after their tick, not yet sorted in.
    late: Vec<Entry>,
    len: usize,
}

/// A time and the slot that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) time: i64,
    pub(crate) slot: u32,
}

#[derive(Clone, Debug)]
struct Bucket {
    earliest: i64,
    entries: Vec<Entry>,
}

impl TimerWheel {
    pub(crate) fn new() -> Self {
        let buckets = vec![Bucket { earliest: i64::MAX, entries: Vec::new() }; LEVELS * BUCKETS];
        Self { position: 0, buckets, occupied: [0; LEVELS], current: Vec::new(), late: Vec::new(), len: 0 }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry; the same one may be there more than once.
    #[inline]
    pub(crate) fn insert(&mut self, time: i64, slot: u32) {
        self.len += 1;
        self.place(Entry { time, slot });
    }

    #[inline]
    fn place(&mut self, entry: Entry) {
        let tick = tick_of(entry.time);
        if tick <= self.position {
            return self.late.push(entry);
        }
        let level = ((tick ^ self.position).ilog2() / LEVEL_BITS) as usize;
        let index = (tick >> (level as u32 * LEVEL_BITS)) as usize % BUCKETS;
        self.occupied[level] |= 1 << index;
        let bucket = &mut self.buckets[level * BUCKETS + index];
        bucket.earliest = bucket.earliest.min(entry.time);
        bucket.entries.push(entry);
    }

    /// Takes the first entry whose time is not after `now`.
    pub(crate) fn pop_due(&mut self, now: i64) -> Option<Entry> {
        loop {
            self.sort_late_in();
            if let Some(entry) = self.current.last().copied() {
                if entry.time > now {
                    return None;
                }
                self.len -= 1;
                self.current.pop();
                return Some(entry);
            }
            let Some((level, index)) = self.next_bucket() else {
                self.position = self.position.max(tick_of(now));
                return None;
            };
            if self.buckets[level * BUCKETS + index].earliest > now {
                return None;
            }
            self.enter(level, index);
        }
    }

    /// The earliest time.
    pub(crate) fn next_time(&self) -> Option<i64> {
        let near = self.late.iter().chain(self.current.last()).map(|e| e.time).min();
        near.or_else(|| {
            self.next_bucket().map(|(level, index)| self.buckets[level * BUCKETS + index].earliest)
        })
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        let position = self.position;
        *self = Self { position, ..Self::new() };
    }

    fn sort_late_in(&mut self) {
        if !self.late.is_empty() {
            self.current.append(&mut self.late);
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    fn next_bucket(&self) -> Option<(usize, usize)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// Moves to the earliest tick of a bucket, when nothing is left before it.
    fn enter(&mut self, level: usize, index: usize) {
        self.occupied[level] &= !(1 << index);
        let bucket = &mut self.buckets[level * BUCKETS + index];
        self.position = tick_of(bucket.earliest);
        bucket.earliest = i64::MAX;
        if level == 0 {
            // The emptied list takes the bucket's place, so that lists are made once and then go round.
            std::mem::swap(&mut bucket.entries, &mut self.current);
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        } else {
            std::mem::take(&mut bucket.entries).into_iter().for_each(|entry| self.place(entry));
        }
    }
}

/// The tick of a time; ticks order as times do.
#[inline]
fn tick_of(time: i64) -> u64 {
    (time as u64 ^ 1 << 63) >> TICK_BITS
}

/// A tick is 2^4 ms.
const TICK_BITS: u32 = 4;
const LEVEL_BITS: u32 = 6;
const BUCKETS: usize = 1 << LEVEL_BITS;
/// Enough for the 60 bits of a tick.
const LEVELS: usize = 10;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_come_out_in_order_and_not_before_their_time() {
        let mut wheel = TimerWheel::new();
        for time in [i64::MAX, 0, 1_700_000_000_000, 15, 16, -1, i64::MIN, 1_700_000_000_001] {
            wheel.insert(time, 7);
        }
        assert_eq!(wheel.next_time(), Some(i64::MIN));
        let mut times = |now| std::iter::from_fn(|| wheel.pop_due(now).map(|e| e.time)).collect::<Vec<_>>();
        assert_eq!(times(14), [i64::MIN, -1, 0]);
        assert_eq!(times(15), [15]);
        assert_eq!(times(1_700_000_000_000), [16, 1_700_000_000_000]);
        assert_eq!(times(i64::MAX), [1_700_000_000_001, i64::MAX]);
        assert_eq!(wheel.len(), 0);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(i64, u32),
        PopUntil(i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let time = prop_oneof![-50i64..5_000, 0i64..90_000_000, any::<i64>()];
        prop_oneof![
            4 => (time.clone(), 0u32..10).prop_map(|(time, slot)| Step::Insert(time, slot)),
            1 => time.prop_map(Step::PopUntil),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_set(steps in prop::collection::vec(step(), 1..200)) {
            let mut wheel = TimerWheel::new();
            let mut model = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Insert(time, slot) => if model.insert((time, slot)) {
                        wheel.insert(time, slot);
                    },
                    Step::PopUntil(now) => {
                        while let Some(entry) = wheel.pop_due(now) {
                            prop_assert_eq!(model.pop_first(), Some((entry.time, entry.slot)));
                        }
                        prop_assert!(model.first().is_none_or(|&(time, _)| time > now));
                    }
                }
                prop_assert_eq!(wheel.len(), model.len());
                prop_assert_eq!(wheel.next_time(), model.first().map(|&(time, _)| time));
            }
        }
    }
}

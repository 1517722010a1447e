//! A hierarchical timer wheel: times in buckets that get finer as they come near.
//!
//! A time belongs to a tick of 16 ms. Five levels of 64 buckets cover half a year; a tick lies at the level of the highest
//! six bits in which it differs from the wheel's position, so a lower level comes before a higher one, and a bucket
//! before those behind it. Adding is a push; the next bucket is found by one bit per bucket. When the wheel reaches a
//! bucket of a higher level, it moves to the earliest tick in it and deals the bucket out anew. Only the entries of
//! the current tick are sorted. What is further away than the levels reach waits aside until the wheel comes near.
//!
//! Invariant: what belongs to the current tick or an earlier one is in `current` or `late`; buckets at or before the
//! position of a level are empty; what waits aside comes after everything else.

mod bucket;
#[cfg(test)]
mod tests;

use self::bucket::{Bucket, Pool, entries_of};

/// Entries (time, slot) that come out in order of time, then slot.
#[derive(Clone, Debug)]
pub(crate) struct TimerWheel {
    position: u64,
    buckets: Vec<Bucket>,
    /// One bit a bucket that has entries, one word a level.
    occupied: [u64; LEVELS],
    /// What is out of the levels' reach.
    far: Vec<Entry>,
    far_earliest: i64,
    /// The entries of the current tick, the earliest last.
    current: Vec<Entry>,
    /// Entries that came after their tick, not yet sorted in.
    late: Vec<Entry>,
    pool: Pool,
    len: usize,
}

/// A time and the slot that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) time: i64,
    pub(crate) slot: u32,
}

impl TimerWheel {
    pub(crate) fn new() -> Self {
        Self {
            position: 0,
            buckets: vec![Bucket::EMPTY; LEVELS * BUCKETS],
            occupied: [0; LEVELS],
            far: Vec::new(),
            far_earliest: i64::MAX,
            current: Vec::new(),
            late: Vec::new(),
            pool: Pool::default(),
            len: 0,
        }
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
        if level >= LEVELS {
            self.far_earliest = self.far_earliest.min(entry.time);
            return self.far.push(entry);
        }
        let index = (tick >> (level as u32 * LEVEL_BITS)) as usize % BUCKETS;
        self.occupied[level] |= 1 << index;
        self.buckets[level * BUCKETS + index].push(entry, &mut self.pool);
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
            match self.next_bucket() {
                Some((level, index)) if self.buckets[level * BUCKETS + index].earliest <= now => {
                    self.enter(level, index);
                }
                None if self.come_near(now) => {}
                _ => return None,
            }
        }
    }

    /// The slot of an entry that comes out some entries from now, if that is known.
    #[inline]
    pub(crate) fn upcoming(&self, entries: usize) -> Option<u32> {
        let at = self.current.len().checked_sub(entries + 1)?;
        Some(self.current[at].slot)
    }

    /// The earliest time.
    pub(crate) fn next_time(&self) -> Option<i64> {
        let near = self.late.iter().chain(self.current.last()).map(|e| e.time).min();
        near.or_else(|| self.earliest_ahead())
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

    /// The earliest time behind the current tick.
    fn earliest_ahead(&self) -> Option<i64> {
        match self.next_bucket() {
            Some((level, index)) => Some(self.buckets[level * BUCKETS + index].earliest),
            None => (!self.far.is_empty()).then_some(self.far_earliest),
        }
    }

    fn next_bucket(&self) -> Option<(usize, usize)> {
        let level = self.occupied.iter().position(|&bits| bits != 0)?;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// Moves to the earliest tick of a bucket, when nothing is left before it.
    fn enter(&mut self, level: usize, index: usize) {
        self.occupied[level] &= !(1 << index);
        let mut bucket = std::mem::replace(&mut self.buckets[level * BUCKETS + index], Bucket::EMPTY);
        self.position = tick_of(bucket.earliest);
        while let Some(chunk) = bucket.take_chunk() {
            let entries = entries_of(&chunk, bucket.earliest);
            if level == 0 {
                self.current.extend(entries);
            } else {
                entries.for_each(|entry| self.place(entry));
            }
            self.pool.give_back(chunk);
        }
        self.current.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Moves on when nothing is left but what waits aside: to now, or to the earliest of that. Takes in what the levels
    /// reach from there, if there is anything.
    fn come_near(&mut self, now: i64) -> bool {
        self.position = self.position.max(tick_of(now.min(self.far_earliest)));
        let position = self.position;
        let is_near = |time| (tick_of(time) ^ position) >> (LEVELS as u32 * LEVEL_BITS) == 0;
        if self.far.is_empty() || !is_near(self.far_earliest) {
            return false;
        }
        let far = std::mem::take(&mut self.far);
        let (near, far): (Vec<Entry>, _) = far.into_iter().partition(|e| is_near(e.time));
        self.far = far;
        self.far_earliest = self.far.iter().map(|e| e.time).min().unwrap_or(i64::MAX);
        near.into_iter().for_each(|entry| self.place(entry));
        true
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
/// A bucket of the highest level is 2^28 ms wide, so that times in a bucket differ in their lower 32 bits only.
const LEVELS: usize = 5;

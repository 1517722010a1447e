//! Watermark alignment within a process: a table of the watermarks of a source's subtasks.
//!
//! Each subtask writes its own place once a batch and looks at the others' before it reads: no lock, no message, and
//! nothing to wait for as long as they keep pace. Where subtasks are on several machines, whoever brings the others'
//! watermarks writes them into the same places.

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
};

use millstream_protocol::{Alignment, MaxDrift, slowest};
use millstream_types::{MAX_WATERMARK, MIN_WATERMARK};

/// The subtasks that wait for each other.
#[derive(Clone, Debug)]
pub struct AlignmentGroup {
    max: MaxDrift,
    /// [`MAX_WATERMARK`] for one that does not count.
    watermarks: Arc<[AtomicI64]>,
}

impl AlignmentGroup {
    /// A group of so many subtasks, of which none may be ahead of the slowest by more than `max`.
    pub fn new(max: MaxDrift, subtasks: u32) -> Self {
        let unknown = iter::repeat_with(|| AtomicI64::new(MIN_WATERMARK));
        Self { max, watermarks: unknown.take(subtasks as usize).collect() }
    }

    /// The place of a subtask in it, at the start again if it had one before. None if there are fewer subtasks.
    pub fn member(&self, subtask: u32) -> Option<AlignmentMember> {
        let index = subtask as usize;
        self.watermarks.get(index)?.store(MIN_WATERMARK, Relaxed);
        let (group, alignment) = (self.clone(), Alignment::new(self.max));
        Some(AlignmentMember { group, index, alignment, watermark: MIN_WATERMARK })
    }
}

/// A subtask in its group. Nobody waits any more for one that has been dropped.
#[derive(Debug)]
pub struct AlignmentMember {
    group: AlignmentGroup,
    index: usize,
    alignment: Alignment,
    watermark: i64,
}

impl AlignmentMember {
    /// Rows have been read, after which the subtask's watermark is this.
    pub fn read(&mut self, rows: u64, watermark: i64) {
        self.watermark = self.watermark.max(watermark);
        self.alignment.handle_read(rows, self.watermark);
        self.write(self.watermark);
    }

    /// Whether the others wait for it.
    pub fn set_idle(&mut self, idle: bool) {
        self.write(if idle { MAX_WATERMARK } else { self.watermark });
    }

    /// Whether it may read on.
    pub fn may_read(&mut self) -> bool {
        let counts = |watermark: &AtomicI64| Some(watermark.load(Relaxed)).filter(|w| *w != MAX_WATERMARK);
        let slowest = slowest(self.group.watermarks.iter().map(counts));
        self.alignment.handle_slowest(slowest)
    }

    /// A place by itself is all that is agreed upon, so nothing has to become visible in an order.
    fn write(&self, watermark: i64) {
        self.group.watermarks[self.index].store(watermark, Relaxed);
    }
}

impl Drop for AlignmentMember {
    fn drop(&mut self) {
        self.write(MAX_WATERMARK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_ahead_waits_until_the_others_are_near_idle_or_gone() {
        let group = AlignmentGroup::new(MaxDrift::Time(10), 3);
        let [mut a, mut b, mut c] = [0, 1, 2].map(|i| group.member(i).expect("one of three"));
        assert!(group.member(3).is_none());
        assert!(a.may_read() && b.may_read() && c.may_read(), "all are at the start");
        a.read(1, 100);
        assert!(!a.may_read() && b.may_read());
        b.read(1, 95);
        c.set_idle(true);
        assert!(a.may_read(), "c does not count");
        c.set_idle(false);
        assert!(!a.may_read() && !b.may_read() && c.may_read());
        c.read(1, 50);
        assert!(!a.may_read());
        drop(c);
        assert!(a.may_read() && b.may_read());
    }
}

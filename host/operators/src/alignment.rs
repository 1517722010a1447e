//! Watermark alignment within a process: a table of the watermarks of a source's subtasks, or of those of several sources.
//!
//! Each subtask writes its own place once a batch and looks at the others' before it reads: no lock, no message, and
//! nothing to wait for as long as they keep pace. Where subtasks are on several machines, whoever brings the others'
//! watermarks writes them into the same places.

use std::{
    iter,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
};

use millstream_protocol::{Alignment, MaxDrift, slowest};
use millstream_types::{MAX_WATERMARK, MIN_WATERMARK};

/// The subtasks of a source that wait for each other, and for those of other sources in one group with it.
#[derive(Clone, Debug)]
pub struct AlignmentGroup {
    max: MaxDrift,
    /// [`MAX_WATERMARK`] for one that does not count.
    watermarks: Arc<[AtomicI64]>,
    /// The places of the source's own subtasks.
    own: Range<usize>,
}

impl AlignmentGroup {
    /// A group of so many subtasks, of which none may be ahead of the slowest by more than `max`.
    pub fn new(max: MaxDrift, subtasks: u32) -> Self {
        let own = 0..subtasks as usize;
        Self { max, watermarks: unknown(own.end), own }
    }

    /// One for each of several sources, given by how far its subtasks may be ahead of the slowest of all, and how many
    /// they are.
    pub fn of_sources(sources: &[(MaxDrift, u32)]) -> Vec<Self> {
        let watermarks = unknown(sources.iter().map(|(_, subtasks)| *subtasks as usize).sum());
        let mut end = 0;
        let of_source = |&(max, subtasks): &(MaxDrift, u32)| {
            let own = end..end + subtasks as usize;
            end = own.end;
            Self { max, watermarks: watermarks.clone(), own }
        };
        sources.iter().map(of_source).collect()
    }

    /// The place of a subtask in it, at the start again if it had one before. None if there are fewer subtasks.
    pub fn member(&self, subtask: u32) -> Option<AlignmentMember> {
        let index = self.own.clone().nth(subtask as usize)?;
        self.watermarks.get(index)?.store(MIN_WATERMARK, Relaxed);
        let (group, alignment) = (self.clone(), Alignment::new(self.max));
        Some(AlignmentMember { group, index, alignment, watermark: MIN_WATERMARK })
    }
}

impl AlignmentGroup {
    /// What is in the place of a subtask of the source, to be taken to where others wait for it.
    pub fn watermark(&self, subtask: u32) -> Option<i64> {
        let index = self.own.clone().nth(subtask as usize)?;
        Some(self.watermarks[index].load(Relaxed))
    }

    /// Takes over what is in the place of a subtask that runs elsewhere.
    pub fn set_watermark(&self, subtask: u32, watermark: i64) {
        if let Some(index) = self.own.clone().nth(subtask as usize) {
            self.watermarks[index].store(watermark, Relaxed);
        }
    }
}

/// The places of so many subtasks that have read nothing.
fn unknown(subtasks: usize) -> Arc<[AtomicI64]> {
    iter::repeat_with(|| AtomicI64::new(MIN_WATERMARK)).take(subtasks).collect()
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

    #[test]
    fn one_that_runs_elsewhere_is_waited_for_as_well() {
        let (here, there) =
            (AlignmentGroup::new(MaxDrift::Time(10), 2), AlignmentGroup::new(MaxDrift::Time(10), 2));
        let mut own = here.member(0).expect("one of two");
        let mut other = there.member(1).expect("one of two");
        own.read(1, 100);
        assert!(!own.may_read());
        other.read(1, 95);
        let bring = || here.set_watermark(1, there.watermark(1).expect("one of two"));
        bring();
        assert!(own.may_read());
        own.read(1, 200);
        assert!(!own.may_read());
        drop(other);
        bring();
        assert!(own.may_read());
        assert_eq!(here.watermark(2), None);
    }

    #[test]
    fn sources_of_a_group_wait_for_each_other_each_by_its_own_measure() {
        let [near, far] = AlignmentGroup::of_sources(&[(MaxDrift::Time(10), 2), (MaxDrift::Time(1000), 1)])
            .try_into()
            .expect("two");
        assert!(
            near.member(2).is_none() && far.member(1).is_none(),
            "subtasks of a source are counted by itself"
        );
        let [mut a, mut b] = [0, 1].map(|i| near.member(i).expect("one of two"));
        let mut c = far.member(0).expect("the only one");
        a.read(1, 500);
        b.read(1, 500);
        c.read(1, 480);
        assert!(!a.may_read() && !b.may_read() && c.may_read());
        c.read(1, 1400);
        assert!(a.may_read() && b.may_read() && c.may_read(), "900 ahead is within 1000");
        c.read(1, 1501);
        assert!(!c.may_read());
        drop((a, b));
        assert!(c.may_read());
    }
}

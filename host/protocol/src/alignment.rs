//! Watermark alignment: a source subtask that is ahead of the others in event time waits for them.
//!
//! What it reads ahead of the slowest one's watermark is kept in windows and timers until that one has come as far.
//! With a bound on how far ahead it may be, what is kept is bounded too. The slowest of those that count never waits,
//! so somebody always reads. A subtask that is idle or has finished does not count: nobody waits for it.
//!
//! The decision is one subtask's own. All that it needs of the others is the lowest watermark among those that count,
//! however that gets here.

use std::collections::VecDeque;

use millstream_types::MIN_WATERMARK;

/// How far a source subtask may be ahead of the slowest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxDrift {
    /// So many milliseconds of event time.
    Time(i64),
    /// So many rows, counted from where its watermark passed the slowest one's. As these are what has to be kept, this
    /// fits every source, however dense its rows are in time.
    Rows(u64),
}

/// The lowest of the watermarks of those subtasks that count; none if none does.
pub fn slowest(watermarks: impl IntoIterator<Item = Option<i64>>) -> Option<i64> {
    watermarks.into_iter().flatten().min()
}

/// Decides for one source subtask whether it may read on.
#[derive(Clone, Debug)]
pub struct Alignment {
    max: MaxDrift,
    watermark: i64,
    rows: u64,
    /// Where the watermark stood after how many rows, ascending; no more than [`MARKS`] of them.
    marks: VecDeque<(i64, u64)>,
    /// Rows read when the watermark was still no further than the slowest one's.
    passed: u64,
}

/// Into how many steps [`MaxDrift::Rows`] is divided.
const MARKS: u64 = 64;

impl Alignment {
    /// For a subtask that has read nothing.
    pub fn new(max: MaxDrift) -> Self {
        Self { max, watermark: MIN_WATERMARK, rows: 0, marks: VecDeque::new(), passed: 0 }
    }

    /// So many rows more have been read, after which the subtask's watermark is this. It never falls.
    pub fn handle_read(&mut self, rows: u64, watermark: i64) {
        self.watermark = self.watermark.max(watermark);
        self.rows = self.rows.saturating_add(rows);
        let MaxDrift::Rows(max) = self.max else { return };
        let before = self.marks.len().checked_sub(2).map_or(self.passed, |i| self.marks[i].1);
        match self.marks.back_mut() {
            Some(last) if last.0 == self.watermark || self.rows - before <= max / MARKS => {
                *last = (self.watermark, self.rows);
            }
            _ => self.marks.push_back((self.watermark, self.rows)),
        }
    }

    /// Whether the subtask may read on while the slowest one, itself included, is at `slowest`.
    pub fn handle_slowest(&mut self, slowest: Option<i64>) -> bool {
        let Some(slowest) = slowest.filter(|slowest| *slowest < self.watermark) else {
            self.passed = self.rows;
            self.marks.clear();
            return true;
        };
        match self.max {
            MaxDrift::Time(max) => self.watermark <= slowest.saturating_add(max),
            MaxDrift::Rows(max) => {
                while let Some((_, rows)) = self.marks.pop_front_if(|(watermark, _)| *watermark <= slowest) {
                    self.passed = rows;
                }
                self.rows - self.passed <= max
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn those_that_do_not_count_are_not_waited_for() {
        assert_eq!(slowest([Some(5), None, Some(3)]), Some(3));
        assert_eq!(slowest([None, None]), None);
        let mut alignment = Alignment::new(MaxDrift::Time(10));
        alignment.handle_read(1, 1000);
        assert!(alignment.handle_slowest(None));
        assert!(!alignment.handle_slowest(Some(989)));
        assert!(alignment.handle_slowest(Some(990)));
    }

    #[test]
    fn one_that_has_said_nothing_yet_is_waited_for() {
        for max in [MaxDrift::Time(i64::MAX), MaxDrift::Rows(100)] {
            let mut alignment = Alignment::new(max);
            assert!(alignment.handle_slowest(Some(MIN_WATERMARK)), "it has read nothing either");
            alignment.handle_read(101, 5);
            assert!(!alignment.handle_slowest(Some(MIN_WATERMARK)), "{max:?}");
        }
    }

    #[test]
    fn rows_count_from_where_the_slowest_one_is() {
        let mut alignment = Alignment::new(MaxDrift::Rows(6400));
        for step in 1..=10 {
            alignment.handle_read(1000, step * 10);
        }
        assert!(!alignment.handle_slowest(Some(35)), "7,000 rows since 30");
        assert!(alignment.handle_slowest(Some(40)), "6,000 rows since 40");
        alignment.handle_read(401, 110);
        assert!(!alignment.handle_slowest(Some(49)), "6,401 rows since 40");
    }

    #[test]
    fn rows_without_a_later_watermark_do_not_make_a_subtask_wait() {
        let mut alignment = Alignment::new(MaxDrift::Rows(100));
        alignment.handle_read(1_000_000, MIN_WATERMARK);
        assert!(alignment.handle_slowest(Some(MIN_WATERMARK)), "it is the slowest itself");
    }

    proptest! {
        /// Three subtasks that read at different speeds, each only when it may: somebody always may, and nobody gets
        /// further ahead than by the bound and one batch.
        #[test]
        fn drift_is_bounded_and_nobody_waits_for_ever(
            turns in prop::collection::vec((0usize..3, 1u64..50, 0i64..20), 0..400),
            max in prop_oneof![(0i64..100).prop_map(MaxDrift::Time), (0u64..500).prop_map(MaxDrift::Rows)],
        ) {
            let mut subtasks = vec![Alignment::new(max); 3];
            let mut read: Vec<Vec<(u64, i64)>> = vec![Vec::new(); 3];
            for (turn, rows, progress) in turns {
                let lowest = slowest(subtasks.iter().map(|s| Some(s.watermark)));
                let may: Vec<_> = subtasks.iter_mut().map(|s| s.handle_slowest(lowest)).collect();
                prop_assert!(may.contains(&true));
                if !may[turn] {
                    continue;
                }
                let watermark = subtasks[turn].watermark.max(0) + progress;
                subtasks[turn].handle_read(rows, watermark);
                read[turn].push((rows, watermark));
                prop_assert!(subtasks[turn].marks.len() as u64 <= 2 * MARKS + 2);
                let (ahead, lowest) = (&read[turn], lowest.unwrap_or(MIN_WATERMARK));
                match max {
                    MaxDrift::Time(max) => {
                        let before = ahead.len().checked_sub(2).map_or(MIN_WATERMARK, |i| ahead[i].1);
                        prop_assert!(before <= lowest.saturating_add(max));
                    }
                    MaxDrift::Rows(max) => {
                        let kept: u64 = ahead.iter().filter(|(_, w)| *w > lowest).map(|(rows, _)| rows).sum();
                        prop_assert!(kept <= max + rows, "{} rows ahead", kept);
                    }
                }
            }
        }
    }
}

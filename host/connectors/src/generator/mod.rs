//! Generated records: those of the benchmarks, and fields with distributions for trying things out.
//!
//! Record i is a function of i (and of the seed), whatever the parallelism: subtask s of p makes the records
//! s, s + p, s + 2p and so on, so that event time advances evenly in all of them.

mod distribution;
mod fields;
mod nexmark;
mod options;
mod pace;
mod payload;
mod pooled;
mod source;
mod split;
mod triples;

pub(crate) use source::GeneratorSource;

use millstream_types::{Batch, Limits, Schema};
use pace::Pace;

/// Records by number.
pub(crate) struct Numbers {
    /// The first one.
    pub(crate) first: u64,
    /// The way to the next one.
    pub(crate) stride: u64,
    /// How many.
    pub(crate) count: usize,
    /// When they are due, if they are paced.
    pub(crate) pace: Option<Pace>,
}

impl Numbers {
    fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let (first, stride) = (self.first, self.stride);
        (0..self.count as u64).map(move |k| first + k * stride)
    }
}

/// Makes records of one kind.
pub(crate) trait Generate {
    /// The records with these numbers, at most a batch for each output port, in order of the ports.
    fn generate(&mut self, numbers: &Numbers) -> Vec<(usize, Batch)>;
}

/// A kind of records, to be made in many subtasks.
pub(crate) trait Kind: Send + Sync {
    /// Output ports and their columns.
    fn outputs(&self) -> Vec<(String, Schema)>;

    /// Something that makes them.
    fn generator(&self) -> Box<dyn Generate>;

    /// Records of a batch at full speed. Kinds whose records are long have fewer, so that a batch and its copies on
    /// the way stay in a core's own cache.
    fn batch_rows(&self) -> usize {
        Limits::BATCH_ROWS
    }
}

/// Event times that advance evenly: record i at `BASE + i * 1000 / rate` milliseconds, without a division each.
pub(crate) struct EventTimes {
    next: i64,
    remainder: u64,
    step: i64,
    step_remainder: u64,
    rate: u64,
}

/// 14 November 2023, 22:13:20: where the event time of the benchmarks starts.
pub(crate) const BASE: i64 = 1_700_000_000_000;

impl EventTimes {
    pub(crate) fn new(numbers: &Numbers, rate: u64) -> Self {
        let millis = |records: u64| {
            let numerator = u128::from(records) * 1000;
            ((numerator / u128::from(rate)) as i64, (numerator % u128::from(rate)) as u64)
        };
        let (offset, remainder) = millis(numbers.first);
        let (step, step_remainder) = millis(numbers.stride);
        Self { next: BASE + offset, remainder, step, step_remainder, rate }
    }

    /// The next record's.
    #[inline]
    pub(crate) fn next(&mut self) -> i64 {
        let now = self.next;
        self.next += self.step;
        self.remainder += self.step_remainder;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            self.next += 1;
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_times_are_what_division_gives() {
        for (first, stride, rate) in [(0, 1, 100_000), (1, 2, 100_000), (7, 3, 333), (123_456_789_012, 5, 7)]
        {
            let numbers = Numbers { first, stride, count: 1000, pace: None };
            let mut times = EventTimes::new(&numbers, rate);
            for i in numbers.iter() {
                assert_eq!(times.next(), BASE + (i * 1000 / rate) as i64);
            }
        }
    }
}

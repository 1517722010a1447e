//! When records are due.

use std::time::Duration;

use crate::clock::nanos;

/// Keeps to a rate. Records that are late are made up for, all at once.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    start: u64,
    /// Nanoseconds from one record to the next.
    interval: f64,
    made: u64,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Due {
    /// So many records.
    Now(u64),
    /// The next one after this time.
    Later(Duration),
}

impl Pace {
    /// So many records a second, from `start` on, nanoseconds on the common clock.
    pub(crate) fn new(rate: f64, start: u64) -> Self {
        Self { start, interval: 1e9 / rate, made: 0 }
    }

    /// What is due at `now`.
    pub(crate) fn due(&self, now: u64) -> Due {
        let due = (now.saturating_sub(self.start) as f64 / self.interval) as u64;
        if due > self.made {
            return Due::Now(due - self.made);
        }
        let next = self.time_of(self.made + 1);
        Due::Later(Duration::from_nanos(next.saturating_sub(now)).max(WAKE))
    }

    /// Counts records that have been made.
    pub(crate) fn made(&mut self, count: u64) {
        self.made += count;
    }

    /// When the next `count` records are due.
    pub(crate) fn schedule(&self, count: usize) -> impl Iterator<Item = u64> + use<> {
        let pace = self.clone();
        (0..count as u64).map(move |k| pace.time_of(pace.made + k))
    }

    /// When record number `count` is due.
    fn time_of(&self, count: u64) -> u64 {
        self.start + (count as f64 * self.interval) as u64
    }

    /// Nanoseconds now, for [`Pace::due`].
    pub(crate) fn now() -> u64 {
        nanos()
    }
}

/// The shortest time to wait for a record.
const WAKE: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_when_they_are_due() {
        let mut pace = Pace::new(1000.0, 5_000_000);
        assert_eq!(pace.due(5_000_000), Due::Later(Duration::from_millis(1)));
        assert_eq!(pace.due(8_500_000), Due::Now(3));
        assert_eq!(pace.schedule(2).collect::<Vec<_>>(), [5_000_000, 6_000_000]);
        pace.made(3);
        assert_eq!(pace.due(8_990_000), Due::Later(WAKE));
        assert_eq!(pace.due(9_000_000), Due::Now(1));
        pace.made(1);
        assert_eq!(pace.schedule(1).collect::<Vec<_>>(), [9_000_000]);
    }
}

//! q5: the auction with most bids of each window.
//!
//! The counts of a window come one by one, as the window fires; a process function keyed by the window's end
//! holds the best until the watermark has passed that end, when all of them have come.

use millstream::{Collector, Function, Output, ProcessContext, State, Timer, Timestamp, ValueState};

/// Bids of an auction in a window.
#[derive(Output, Debug, PartialEq)]
pub struct Bids {
    /// How many.
    pub count: i64,
}

/// Counts bids.
#[derive(Function)]
pub struct Q5Count {}

/// The number of bids of a group.
#[millstream::aggregate]
impl Q5Count {
    fn accumulate(&self, count: &mut i64, _bid: ()) {
        *count += 1;
    }

    fn merge(&self, into: &mut i64, other: i64) {
        *into += other;
    }

    fn finish(&self, count: &i64) -> Bids {
        Bids { count: *count }
    }
}

/// An auction's count.
#[derive(State, Clone, Copy)]
pub struct Counted {
    /// The auction.
    pub auction: i64,
    /// Its bids.
    pub count: i64,
}

/// The best of a window.
#[derive(Output, Debug, PartialEq)]
pub struct Hottest {
    /// The window's end.
    pub window_end: Timestamp,
    /// The auction.
    pub auction: i64,
    /// Its bids.
    pub count: i64,
}

/// Finds the auction with most bids; of equals the one with the smaller number.
#[derive(Function)]
pub struct Q5Top {
    best: ValueState<Counted>,
}

/// The auction with most bids of each window.
#[millstream::process]
impl Q5Top {
    fn process(&mut self, window_end: Timestamp, counted: Counted, ctx: &mut ProcessContext) {
        match self.best.get() {
            Some(best) if !counted.beats(best) => return,
            Some(_) => {}
            None => ctx.set_timer(window_end.millis()),
        }
        self.best.set(counted);
    }

    fn on_timer(&mut self, window_end: Timestamp, _timer: Timer, out: &mut Collector<Hottest>) {
        if let Some(Counted { auction, count }) = self.best.take() {
            out.emit(Hottest { window_end, auction, count });
        }
    }
}

impl Counted {
    fn beats(&self, other: &Self) -> bool {
        (self.count, -self.auction) > (other.count, -other.auction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn bids_are_counted() {
        let results = testing::aggregate::<Q5Count>().merged_from(2).run([(7, ()), (8, ()), (7, ())]);
        assert_eq!(results.rows::<Bids>(), [Bids { count: 2 }, Bids { count: 1 }]);
    }

    #[test]
    fn the_smaller_of_equals_wins() {
        let mut test = testing::process::<Q5Top>();
        let counts = [(9, 3), (4, 5), (2, 5), (3, 5)];
        test.rows(counts.map(|(auction, count)| (Timestamp(100), Counted { auction, count })));
        assert!(test.watermark(99).rows::<Hottest>().is_empty());
        let hottest = Hottest { window_end: Timestamp(100), auction: 2, count: 5 };
        assert_eq!(test.watermark(100).rows::<Hottest>(), [hottest]);
    }
}

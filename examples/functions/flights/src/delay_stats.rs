//! An aggregate function: count, mean, maximum and 90th percentile of delays.
//!
//! A percentile needs all values. Delays are whole minutes, so how often each of them occurred is all, is small,
//! and merges by addition.

use std::collections::BTreeMap;

use millstream::{Function, Input, Output, Postcard, Reject, State};

/// A flight that departed.
#[derive(Input)]
pub struct Delayed {
    /// Whole minutes.
    pub delay: f64,
}

/// How often each delay occurred, by minute.
#[derive(State, Default)]
pub struct Delays {
    minutes: Postcard<BTreeMap<i32, u32>>,
}

/// What is said of a group of flights.
#[derive(Output, Debug, PartialEq)]
pub struct Report {
    /// Flights.
    pub count: i64,
    /// Mean delay in minutes.
    pub mean: f64,
    /// Longest delay in minutes.
    pub maximum: f64,
    /// Nearest-rank 90th percentile: the smallest delay that 90 of 100 flights do not exceed.
    pub p90: f64,
}

/// Computes the statistics of a group's delays.
#[derive(Function)]
pub struct DelayStats {}

/// Count, mean, maximum and 90th percentile of delays.
#[millstream::aggregate]
impl DelayStats {
    fn accumulate(&self, delays: &mut Delays, flight: Delayed) -> Result<(), Reject> {
        let minute = flight.delay as i32;
        if f64::from(minute) != flight.delay {
            return Err(Reject::new(format!("expected a delay of whole minutes, found {}", flight.delay)));
        }
        *delays.minutes.0.entry(minute).or_default() += 1;
        Ok(())
    }

    fn merge(&self, into: &mut Delays, other: Delays) {
        for (minute, flights) in other.minutes.0 {
            *into.minutes.0.entry(minute).or_default() += flights;
        }
    }

    fn finish(&self, delays: &Delays) -> Option<Report> {
        let minutes = &delays.minutes.0;
        let (maximum, _) = minutes.last_key_value()?;
        let count: i64 = minutes.values().map(|&flights| i64::from(flights)).sum();
        let sum: i64 = minutes.iter().map(|(&minute, &flights)| i64::from(minute) * i64::from(flights)).sum();
        let p90 = at_rank(minutes, (count * 9 + 9) / 10);
        Some(Report { count, mean: sum as f64 / count as f64, maximum: f64::from(*maximum), p90 })
    }
}

/// The delay of the flight of this rank, counted from 1 in the order of delays.
fn at_rank(minutes: &BTreeMap<i32, u32>, rank: i64) -> f64 {
    let mut before = 0;
    let reached = minutes.iter().find(|(_, flights)| {
        before += i64::from(**flights);
        before >= rank
    });
    reached.map_or(f64::NAN, |(&minute, _)| f64::from(minute))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    fn flights(delays: impl IntoIterator<Item = f64>) -> Vec<((), Delayed)> {
        delays.into_iter().map(|delay| ((), Delayed { delay })).collect()
    }

    #[test]
    fn ten_flights_have_the_ninth_as_90th_percentile() {
        let results = testing::aggregate::<DelayStats>().run(flights((1..=10).rev().map(f64::from)));
        let report = Report { count: 10, mean: 5.5, maximum: 10.0, p90: 9.0 };
        assert_eq!(results.rows::<Report>(), [report]);
    }

    #[test]
    fn one_flight_is_its_own_percentile() {
        let results = testing::aggregate::<DelayStats>().run(flights([-3.0]));
        let report = Report { count: 1, mean: -3.0, maximum: -3.0, p90: -3.0 };
        assert_eq!(results.rows::<Report>(), [report]);
    }

    #[test]
    fn merging_changes_nothing() {
        let delays = || flights((0..100).map(|at| f64::from(at * 37 % 91)));
        let whole = testing::aggregate::<DelayStats>().run(delays());
        let merged = testing::aggregate::<DelayStats>().merged_from(7).run(delays());
        assert_eq!(whole.rows::<Report>(), merged.rows::<Report>());
    }

    #[test]
    fn half_a_minute_is_refused() {
        let results = testing::aggregate::<DelayStats>().run(flights([1.0, 2.5]));
        assert_eq!(results.rejected(), [(1, "expected a delay of whole minutes, found 2.5")]);
    }
}

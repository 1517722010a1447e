//! A window function: what a plane did in a session of legs, never more than 12 hours apart.

use millstream::{Input, Output, Timestamp, Window};

/// A leg of a known plane.
#[derive(Input)]
pub struct RotationLeg {
    /// Scheduled hour of departure.
    pub time_hour: Timestamp,
    /// Minutes between the scheduled departure and the real one; none if it was cancelled.
    pub dep_delay: Option<f64>,
}

/// A session of a plane's legs.
#[derive(Output, Debug, PartialEq)]
pub struct Rotation {
    /// Hour of the first leg.
    pub first: Timestamp,
    /// Hour of the last leg.
    pub last: Timestamp,
    /// Number of legs.
    pub legs: i64,
    /// Sum of the delays in minutes.
    pub dep_delay: f64,
    /// Longest time between two legs in minutes.
    pub longest_wait: i64,
}

const MINUTE: i64 = 60 * 1000;

/// First and last hour, number of legs, sum of delays and longest wait of a session.
#[millstream::window]
pub fn rotations(_tailnum: &str, _window: Window, legs: &[RotationLeg]) -> Option<Rotation> {
    let mut hours: Vec<i64> = legs.iter().map(|leg| leg.time_hour.millis()).collect();
    hours.sort_unstable();
    let longest = hours.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    Some(Rotation {
        first: Timestamp(*hours.first()?),
        last: Timestamp(*hours.last()?),
        legs: legs.len() as i64,
        // Not `sum`: that of nothing is -0.
        dep_delay: legs.iter().filter_map(|leg| leg.dep_delay).fold(0.0, |sum, delay| sum + delay),
        longest_wait: longest / MINUTE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn a_rotation_sums_its_legs() {
        let leg =
            |minute: i64, dep_delay| ("N1", RotationLeg { time_hour: Timestamp(minute * MINUTE), dep_delay });
        let results =
            testing::window::<rotations>().run([leg(600, Some(5.0)), leg(60, None), leg(120, Some(-2.0))]);
        let rotation = Rotation {
            first: Timestamp(60 * MINUTE),
            last: Timestamp(600 * MINUTE),
            legs: 3,
            dep_delay: 3.0,
            longest_wait: 480,
        };
        assert_eq!(results.rows::<Rotation>(), [rotation]);
    }

    #[test]
    fn a_single_leg_waits_for_nothing() {
        let results = testing::window::<rotations>()
            .run([("N1", RotationLeg { time_hour: Timestamp(0), dep_delay: None })]);
        let rows = results.rows::<Rotation>();
        assert_eq!((rows[0].legs, rows[0].longest_wait, rows[0].dep_delay), (1, 0, 0.0));
    }
}

//! Map functions that leave out flights without a delay, and flights without a plane.

use millstream::{Context, Input, Output};

/// A flight as it was scheduled; a cancelled one has no delay.
#[derive(Input)]
pub struct Scheduled {
    /// Minutes between the scheduled departure and the real one.
    pub delay: Option<f64>,
}

/// A flight that departed.
#[derive(Output, Debug, PartialEq)]
pub struct Departed {
    /// Minutes between the scheduled departure and the real one.
    pub delay: f64,
}

/// Keeps the flights that departed, so that their delay is never null.
#[millstream::map]
pub fn only_delayed(flight: Scheduled) -> Option<Departed> {
    flight.delay.map(|delay| Departed { delay })
}

/// A flight of a plane that may be unknown.
#[derive(Input)]
pub struct Flight<'a> {
    /// The plane's registration.
    pub tailnum: Option<&'a str>,
}

/// A flight of a known plane.
#[derive(Output, Debug, PartialEq)]
pub struct Known<'a> {
    /// The plane's registration.
    pub tailnum: &'a str,
}

/// Keeps the flights whose plane is known, and counts the others in the metric `unknown_planes`.
#[millstream::map]
pub fn known_planes<'a>(flight: Flight<'a>, ctx: &Context) -> Option<Known<'a>> {
    if flight.tailnum.is_none() {
        ctx.count("unknown_planes", 1);
    }
    flight.tailnum.map(|tailnum| Known { tailnum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn cancelled_flights_are_left_out() {
        let results = testing::map::<only_delayed>()
            .run([Some(2.0), None, Some(-1.0)].map(|delay| Scheduled { delay }));
        assert_eq!(results.rows::<Departed>(), [Departed { delay: 2.0 }, Departed { delay: -1.0 }]);
        assert_eq!(results.origins(), [Some(0), Some(2)]);
    }

    #[test]
    fn unknown_planes_are_counted() {
        let flights = [Some("N14228"), None, None].map(|tailnum| Flight { tailnum });
        let results = testing::map::<known_planes>().run(flights);
        assert_eq!(results.rows::<Known<'_>>(), [Known { tailnum: "N14228" }]);
        assert_eq!(testing::count("unknown_planes"), 2);
    }
}

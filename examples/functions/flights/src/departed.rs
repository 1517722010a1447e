//! Map functions that leave out flights without a delay, and flights without a plane.

use millstream::{Context, Input, Output};

/// A flight as it was scheduled; a cancelled one has no delay.
#[derive(Input)]
pub struct Scheduled {
    delay: Option<f64>,
}

/// A flight that departed.
#[derive(Output, Debug, PartialEq)]
pub struct Departed {
    delay: f64,
}

/// Keeps the flights that departed, so that their delay is never null.
#[millstream::map]
pub fn only_delayed(flight: Scheduled) -> Option<Departed> {
    flight.delay.map(|delay| Departed { delay })
}

/// A flight of a plane that may be unknown.
#[derive(Input)]
pub struct Flight<'a> {
    tailnum: Option<&'a str>,
}

/// A flight of a known plane.
#[derive(Output, Debug, PartialEq)]
pub struct Known<'a> {
    tailnum: &'a str,
}

/// Keeps the flights whose plane is known, and counts the others in the metric `unknown_planes`.
#[millstream::map]
pub fn known_planes<'a>(flight: Flight<'a>, ctx: &Context) -> Option<Known<'a>> {
    if flight.tailnum.is_none() {
        ctx.count("unknown_planes", 1);
    }
    flight.tailnum.map(|tailnum| Known { tailnum })
}

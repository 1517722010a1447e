//! A process function: planes that leave New York often, found with state and timers.
//!
//! Legs come out of order. Each waits in state until the watermark has reached it; then a timer takes all legs up to
//! the watermark one by one, in their order, and counts those of the last 24 hours. A second timer, a day after each
//! hour, lets its legs fall out of the count.
//!
//! The list of waiting legs is read as a whole whenever a timer fires. A source that is far ahead of the watermark
//! makes it long, and a watermark that then leaps fires many timers: so the first of them takes all that it may.

use millstream::{
    Collector, Function, Input, ListState, Output, ProcessContext, State, Timer, Timestamp, ValueState,
};

/// A leg of a known plane.
#[derive(Input)]
pub struct Leg<'a> {
    /// Scheduled hour of departure.
    pub time_hour: Timestamp,
    /// Scheduled local time of departure, as HHMM.
    pub sched_dep_time: i32,
    /// Code of the airline.
    pub carrier: &'a str,
    /// Number of the flight.
    pub flight: i32,
    /// Airport of departure.
    pub origin: &'a str,
}

/// A leg that waits for the watermark. The order of the fields is the order in which legs are taken.
#[derive(State, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    time_hour: Timestamp,
    sched_dep_time: i32,
    carrier: String,
    flight: i32,
    origin: String,
}

/// A plane that got busy.
#[derive(Output, Debug, PartialEq)]
pub struct Busy<'a> {
    /// The plane's registration.
    pub tailnum: &'a str,
    /// Hour of the leg with which it got busy.
    pub time: Timestamp,
    /// Legs within the 24 hours up to that one.
    pub departures: i64,
}

/// Watches planes.
#[derive(Function)]
pub struct BusyPlanes {
    /// Legs that the watermark has not reached.
    waiting: ListState<Waiting>,
    /// Hours of the legs that count, in order.
    recent: ListState<Timestamp>,
    /// Whether more legs than the limit count.
    busy: ValueState<bool>,
    /// Legs that a plane may make within 24 hours without being busy.
    #[parameter(default = 5)]
    limit: i64,
}

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Says when a plane makes more than `limit` departures within 24 hours, once until it makes no more than that.
#[millstream::process]
impl BusyPlanes {
    fn process(&mut self, _tailnum: &str, leg: Leg<'_>, ctx: &mut ProcessContext) {
        ctx.set_timer(leg.time_hour.millis());
        self.waiting.add(Waiting {
            time_hour: leg.time_hour,
            sched_dep_time: leg.sched_dep_time,
            carrier: leg.carrier.to_owned(),
            flight: leg.flight,
            origin: leg.origin.to_owned(),
        });
    }

    fn on_timer(
        &mut self,
        tailnum: &str,
        timer: Timer,
        ctx: &mut ProcessContext,
        out: &mut Collector<Busy<'_>>,
    ) {
        for leg in self.due_legs(ctx.watermark()) {
            self.drop_old_legs(leg.time_hour.millis());
            ctx.set_timer(leg.time_hour.millis() + DAY);
            self.recent.add(leg.time_hour);
            let departures = self.recent.get().len() as i64;
            if departures > self.limit && !self.is_busy() {
                self.busy.set(true);
                out.emit(Busy { tailnum, time: leg.time_hour, departures });
            }
        }
        self.drop_old_legs(timer.time);
    }
}

impl BusyPlanes {
    /// Legs count for 24 hours: at `now` those of (now - 24 h, now].
    fn drop_old_legs(&mut self, now: i64) {
        self.recent.retain(|hour| hour.millis() > now - DAY);
        if self.is_busy() && self.recent.get().len() as i64 <= self.limit {
            self.busy.clear();
        }
    }

    /// Takes the legs up to `now` out of those that wait, in their order.
    fn due_legs(&mut self, now: i64) -> Vec<Waiting> {
        if self.waiting.get().iter().all(|leg| leg.time_hour.millis() > now) {
            return Vec::new();
        }
        let (mut due, waiting): (Vec<_>, Vec<_>) =
            self.waiting.take().into_iter().partition(|leg| leg.time_hour.millis() <= now);
        self.waiting.add_all(waiting);
        due.sort_unstable();
        due
    }

    fn is_busy(&mut self) -> bool {
        self.busy.get().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing::{self, ProcessTest};

    const HOUR: i64 = 60 * 60 * 1000;

    fn legs(hours: impl IntoIterator<Item = i64>) -> Vec<(&'static str, Leg<'static>)> {
        let leg = |hour: i64| Leg {
            time_hour: Timestamp(hour * HOUR),
            sched_dep_time: 0,
            carrier: "UA",
            flight: hour as i32,
            origin: "EWR",
        };
        hours.into_iter().map(|hour| ("N1", leg(hour))).collect()
    }

    fn busy(test: &mut ProcessTest, until: i64) -> Vec<(i64, i64)> {
        let results = test.watermark(until * HOUR);
        results.rows::<Busy<'_>>().iter().map(|row| (row.time.millis() / HOUR, row.departures)).collect()
    }

    #[test]
    fn the_sixth_leg_makes_a_plane_busy_once() {
        let mut test = testing::process::<BusyPlanes>();
        test.rows(legs([7, 6, 5, 4, 3, 2, 1]));
        assert_eq!(busy(&mut test, 5), []);
        assert_eq!(busy(&mut test, 100), [(6, 6)]);
    }

    #[test]
    fn a_leg_counts_for_24_hours() {
        let mut test = testing::process::<BusyPlanes>();
        test.rows(legs([0, 20, 21, 22, 23, 24]));
        assert_eq!(busy(&mut test, 1000), [], "the leg of hour 0 does not count at hour 24");
    }

    #[test]
    fn a_plane_gets_busy_again_after_it_was_not() {
        let mut test = testing::process::<BusyPlanes>();
        test.rows(legs([1, 2, 3, 4, 5, 6, 30, 31, 32, 33, 34, 35, 36]));
        assert_eq!(busy(&mut test, 1000), [(6, 6), (35, 6)]);
    }

    #[test]
    fn legs_that_come_in_other_batches_or_later_count_the_same() {
        let hours = [4, 1, 6, 2, 3, 5, 9, 8];
        for (until, batch) in [([1000, 1000], 8), ([1000, 1000], 1), ([4, 1000], 1), ([5, 8], 3)] {
            let mut test = testing::process::<BusyPlanes>().parameter("limit", "3").batches_of(batch);
            test.rows(legs(hours));
            let found = until.map(|hour| busy(&mut test, hour)).concat();
            assert_eq!(found, [(4, 4)], "batches of {batch}, watermarks {until:?}");
        }
    }
}

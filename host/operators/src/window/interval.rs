//! The continuous trigger: when its clock passes a multiple of the interval.

use millstream_types::Clock;

use super::Trigger;

/// The interval of a continuous trigger on whichever clock it has; of another trigger, none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    event: Option<i64>,
    processing: Option<i64>,
    /// The multiple of processing time that is waited for.
    waiting: Option<i64>,
}

impl Interval {
    pub(super) fn new(trigger: Trigger) -> Self {
        let on = |wanted: Clock| match trigger {
            Trigger::Continuous { clock, interval } if clock == wanted => Some(interval),
            _ => None,
        };
        Self { event: on(Clock::Event), processing: on(Clock::Processing), waiting: None }
    }

    /// The last multiple that the watermark passes on its way from one time to another, if it passes any.
    pub(super) fn passed_by_watermark(&self, from: i64, to: i64) -> Option<i64> {
        let multiple = |every: i64| to.saturating_sub(to.rem_euclid(every));
        self.event.map(multiple).filter(|&passed| passed > from)
    }

    /// Whether processing time has passed the multiple that is waited for.
    pub(super) fn passed_by_clock(&self, now: i64) -> bool {
        self.waiting.is_some_and(|at| at <= now)
    }

    /// Waits for the next multiple of processing time while there are windows that it can fire.
    pub(super) fn wait(&mut self, now: i64, has_windows: bool) {
        let next = |every: i64| now - now.rem_euclid(every) + every;
        self.waiting = self.processing.filter(|_| has_windows).map(next);
    }

    /// The multiple of processing time that is waited for.
    pub(super) fn waiting(&self) -> Option<i64> {
        self.waiting
    }

    /// Waits for nothing more.
    pub(super) fn stop(&mut self) {
        self.waiting = None;
    }
}

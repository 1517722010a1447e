//! Times, dates, windows and clocks.

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the epoch, UTC. The type of `timestamp` columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Milliseconds since the epoch.
    pub fn millis(self) -> i64 {
        self.0
    }
}

/// A day: days since the epoch. The type of `date` columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Date(pub i32);

/// Event time of a row. A function that takes one as argument is sent the event times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventTime(i64);

impl EventTime {
    /// What stands for "this row has no event time".
    pub const NONE: EventTime = EventTime(i64::MIN);

    #[doc(hidden)]
    #[inline]
    pub fn from_raw(millis: i64) -> Self {
        Self(millis)
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn raw(self) -> i64 {
        self.0
    }

    /// The row's event time, if it has one.
    #[inline]
    pub fn timestamp(self) -> Option<Timestamp> {
        (self != Self::NONE).then_some(Timestamp(self.0))
    }
}

/// A window of event or processing time: `[start, end)`, milliseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// First moment in the window.
    pub start: i64,
    /// First moment after the window.
    pub end: i64,
}

/// What a timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clock {
    /// The watermark.
    Event,
    /// The host's clock.
    Processing,
}

impl Clock {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Clock::Event => "event",
            Clock::Processing => "processing",
        }
    }
}

/// A timer that fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The clock that reached it.
    pub clock: Clock,
    /// The time that it was set to, milliseconds since the epoch.
    pub time: i64,
}

//! Windows as the job file asks for them.

use std::time::Duration;

use millstream_types::Clock;

/// Which windows rows belong to, when they fire and when they are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    /// Which windows a row belongs to.
    pub assigner: WindowAssigner,
    /// By which time: the row's, or that of the machine when the row arrives.
    pub clock: Clock,
    /// When a window fires.
    pub trigger: Trigger,
    /// Whether a window's content is cleared when it fires.
    pub purge: bool,
    /// How long after its end a window still takes rows and fires again for them. Zero with processing time.
    pub lateness: Duration,
    /// The output column that gets the window's start.
    pub start_column: Option<String>,
    /// The output column that gets the window's end.
    pub end_column: Option<String>,
}

/// Which windows a row belongs to. Spans are whole milliseconds and more than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowAssigner {
    /// One of windows of equal size, side by side.
    Tumbling {
        /// How long each is.
        size: Duration,
        /// By how much they start after the epoch; less than `size`.
        offset: Duration,
    },
    /// Several of windows of equal size that overlap.
    Sliding {
        /// How long each is.
        size: Duration,
        /// How long after the one before each starts; at most `size`.
        slide: Duration,
        /// By how much they start after the epoch; less than `slide`.
        offset: Duration,
    },
    /// One that lasts as long as no gap is between its rows.
    Session {
        /// The gap.
        gap: Duration,
    },
    /// The one that holds everything.
    Global,
}

impl WindowAssigner {
    /// How many windows a row is in at most.
    pub(crate) fn windows_of_a_row(&self) -> u128 {
        match self {
            Self::Sliding { size, slide, .. } => size.as_millis().div_ceil(slide.as_millis()),
            Self::Tumbling { .. } | Self::Session { .. } | Self::Global => 1,
        }
    }
}

/// When a window fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// When the watermark passes its end, and again for every late batch within the lateness.
    EventTime,
    /// When the machine's time passes its end.
    ProcessingTime,
    /// Whenever this many rows have come since it last fired, and not at its end.
    Count(u64),
    /// At every multiple of this span of the window's clock, and at its end.
    Continuous(Duration),
}

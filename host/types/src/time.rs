//! Event time: milliseconds since the Unix epoch, UTC, as `i64`. Times are bare integers in columns and on
//! watermarks because they are moved in bulk; the constants here are the three values that mean something else.

/// The event time of a row that has none.
pub const NO_TIME: i64 = i64::MIN;

/// The watermark before anything is known: no row is late, no timer is due.
pub const MIN_WATERMARK: i64 = i64::MIN;

/// The watermark at the end of input: every event timer is due.
pub const MAX_WATERMARK: i64 = i64::MAX;

/// A half-open span of event or processing time, `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    /// First millisecond that belongs to it.
    pub start: i64,
    /// First millisecond that no longer does.
    pub end: i64,
}

impl Window {
    /// The window that holds every time: what a global window is.
    pub const GLOBAL: Window = Window { start: i64::MIN, end: i64::MAX };

    /// A window over `[start, end)`.
    pub fn new(start: i64, end: i64) -> Self {
        Self { start, end }
    }

    /// The last time that belongs to it: an event-time window fires when the watermark reaches this.
    pub fn max_time(&self) -> i64 {
        self.end.saturating_sub(1)
    }

    /// Whether two windows overlap or touch; session windows that do are one session.
    pub fn touches(&self, other: &Window) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// The smallest window that holds both.
    pub fn cover(&self, other: &Window) -> Window {
        Window { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn windows_that_meet_at_an_end_touch() {
        let (a, b) = (Window::new(0, 10), Window::new(10, 20));
        assert!(a.touches(&b) && b.touches(&a));
        assert!(!a.touches(&Window::new(11, 20)));
        assert_eq!(a.cover(&b), Window::new(0, 20));
    }
}

//! A guest's log lines, held to a rate.

use std::time::{Duration, Instant};

use millstream_operator::OperatorContext;
use tracing::{Level, event};

/// Sends the lines of one instance to the host's log, with the operator and subtask that they come from.
#[derive(Debug)]
pub(super) struct GuestLog {
    operator: String,
    subtask: u32,
    rate: Rate,
}

impl GuestLog {
    /// The log of an instance; what a module says while it is only inspected has no operator.
    pub(super) fn new(place: Option<&OperatorContext>) -> Self {
        let (operator, subtask) =
            place.map_or_else(Default::default, |p| (p.operator.to_string(), p.subtask.0));
        Self { operator, subtask, rate: Rate::new(Instant::now()) }
    }

    /// Writes a line, unless there have been too many; then it is counted, and the count comes with the next line.
    pub(super) fn line(&mut self, level: Level, message: &str) {
        let Some(dropped) = self.rate.admit(Instant::now()) else { return };
        let (operator, subtask) = (self.operator.as_str(), self.subtask);
        if dropped > 0 {
            event!(
                target: TARGET, Level::WARN, operator, subtask, dropped,
                "{dropped} log lines were dropped: at most {LINES_A_SECOND} a second are kept"
            );
        }
        let message = printable(message);
        match level {
            Level::ERROR => event!(target: TARGET, Level::ERROR, operator, subtask, "{message}"),
            Level::WARN => event!(target: TARGET, Level::WARN, operator, subtask, "{message}"),
            Level::INFO => event!(target: TARGET, Level::INFO, operator, subtask, "{message}"),
            Level::DEBUG => event!(target: TARGET, Level::DEBUG, operator, subtask, "{message}"),
            Level::TRACE => event!(target: TARGET, Level::TRACE, operator, subtask, "{message}"),
        }
    }
}

/// At most [`LINES_A_SECOND`] lines in each second.
#[derive(Debug)]
struct Rate {
    since: Instant,
    lines: u32,
    dropped: u64,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { since: now, lines: 0, dropped: 0 }
    }

    /// How many lines were dropped before this one, or none if it is dropped too.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= Duration::from_secs(1) {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines >= LINES_A_SECOND {
            self.dropped += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.dropped))
    }
}

/// A message cut to [`MAX_BYTES`] and without control characters, with which it could write over other lines of a
/// terminal.
pub(super) fn printable(message: &str) -> String {
    let mut end = message.len().min(MAX_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let clean = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    let mut text: String = message[..end].chars().map(clean).collect();
    if end < message.len() {
        text.push('…');
    }
    text
}

/// Under which guests' lines stand in the host's log.
const TARGET: &str = "millstream::function";
const LINES_A_SECOND: u32 = 100;
const MAX_BYTES: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        let admitted = (0..1000).filter(|_| rate.admit(start).is_some()).count();
        assert_eq!(admitted, 100);
        assert_eq!(rate.admit(start + Duration::from_millis(999)), None);
        assert_eq!(rate.admit(start + Duration::from_secs(1)), Some(901));
        assert_eq!(rate.admit(start + Duration::from_secs(1)), Some(0));
    }

    #[test]
    fn lines_are_short_and_cannot_steer_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\nc");
        let long = printable(&"ä".repeat(MAX_BYTES));
        assert_eq!(long.chars().count(), MAX_BYTES / 2 + 1);
        assert!(long.ends_with('…'));
    }
}

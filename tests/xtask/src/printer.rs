//! The one place that prints: progress and errors to standard error, what was asked for to standard output.

use std::time::Duration;

use anyhow::Error;

/// Prints whole lines, so that those of several threads do not mix.
pub(crate) struct Printer;

#[expect(clippy::print_stderr, clippy::print_stdout, reason = "this is what prints")]
impl Printer {
    /// What begins now.
    pub(crate) fn progress(&self, line: impl std::fmt::Display) {
        eprintln!("{line}");
    }

    /// A line of what was asked for.
    pub(crate) fn result(&self, line: impl std::fmt::Display) {
        println!("{line}");
    }

    /// The error and all that led to it.
    pub(crate) fn error(&self, error: &Error) {
        eprintln!("error: {error:#}");
    }
}

/// As in `1.4 MB`.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// As in `12.3 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_fitting_unit() {
        assert_eq!([size(999), size(23_456), size(1_700_770)], ["999 B", "23 KB", "1.7 MB"]);
    }
}

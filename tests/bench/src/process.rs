//! What a process has used, as Linux accounts it.

use std::{fmt::Display, fs};

/// Processor time and memory of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProcessFigures {
    /// User and system time of all threads since the start.
    pub(crate) cpu_seconds: f64,
    /// Memory that is resident, in bytes.
    pub(crate) memory: u64,
    /// The most that was.
    pub(crate) peak_memory: u64,
}

impl ProcessFigures {
    /// Those of this process now.
    pub(crate) fn now() -> Option<Self> {
        Self::of("self")
    }

    /// Those of a process now.
    pub(crate) fn of(id: impl Display) -> Option<Self> {
        let file = |name: &str| fs::read_to_string(format!("/proc/{id}/{name}")).ok();
        Self::parse(&file("stat")?, &file("status")?)
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, which may hold spaces.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let cpu_seconds = (ticks()? + ticks()?) as f64 / TICKS_PER_SECOND;
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
        };
        Some(Self { cpu_seconds, memory: bytes("VmRSS:")?, peak_memory: bytes("VmHWM:")? })
    }
}

/// Linux counts processor time for users in hundredths of a second, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 4 0 100 1000 200";
        let figures = ProcessFigures::parse(stat, "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n");
        let expected = ProcessFigures { cpu_seconds: 3.0, memory: 1024, peak_memory: 2 << 20 };
        assert_eq!(figures, Some(expected));
        assert_eq!(ProcessFigures::parse("", ""), None);
    }
}

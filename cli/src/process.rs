//! What this process has used, from `/proc`; nothing on systems without it.

use std::fs;

use serde::Serialize;

/// Processor time and memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ProcessFigures {
    /// User and system time of all threads since the start.
    pub(crate) cpu_seconds: f64,
    /// The most memory that was resident, in bytes.
    pub(crate) peak_memory: u64,
}

impl ProcessFigures {
    /// The figures now.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(
            &fs::read_to_string("/proc/self/stat").ok()?,
            &fs::read_to_string("/proc/self/status").ok()?,
        )
    }

    fn parse(stat: &str, status: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, which may hold spaces.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let cpu_seconds = (ticks()? + ticks()?) as f64 / TICKS_PER_SECOND;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: u64 = peak.split_whitespace().next()?.parse().ok()?;
        Some(Self { cpu_seconds, peak_memory: kilobytes * 1024 })
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
        assert_eq!(figures, Some(ProcessFigures { cpu_seconds: 3.0, peak_memory: 2 << 20 }));
        assert_eq!(ProcessFigures::parse("", ""), None);
    }
}

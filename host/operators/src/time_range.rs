//! The event times that are taken: the years 1 to 9999, which every calendar and format can write.
//!
//! A time far outside of it is a mistake of its source, such as seconds or nanoseconds read as milliseconds, and one
//! such row would carry the watermark to the end of time. Within it, sums with any window size cannot overflow.

use millstream_operator::Rejected;
use millstream_types::NO_TIME;

/// 0001-01-01T00:00:00Z.
pub(crate) const EARLIEST: i64 = -62_135_596_800_000;
/// 9999-12-31T23:59:59.999Z.
pub(crate) const LATEST: i64 = 253_402_300_799_999;

/// The rows whose time is not taken; `missing` says what a row without a time lacks.
pub(crate) fn refused_times(times: &[i64], missing: impl Fn() -> String) -> Vec<Rejected> {
    let (lowest, highest) = bounds(times);
    if lowest >= EARLIEST && highest <= LATEST {
        return Vec::new();
    }
    let reason = |time| match time {
        NO_TIME => missing(),
        _ => format!(
            "event time {time} is out of range: milliseconds since 1970 within the years 1 to 9999 expected"
        ),
    };
    let refused = times.iter().enumerate().filter(|(_, time)| !(EARLIEST..=LATEST).contains(*time));
    refused.map(|(row, &time)| Rejected { row: row as u32, reason: reason(time), retryable: false }).collect()
}

/// The lowest and the highest of some times; of none, the highest and the lowest that are taken.
pub(crate) fn bounds(times: &[i64]) -> (i64, i64) {
    times.iter().fold((LATEST, EARLIEST), |(low, high), &time| (low.min(time), high.max(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_in_range_are_taken() {
        assert!(refused_times(&[EARLIEST, 0, LATEST], String::new).is_empty());
        assert!(refused_times(&[], String::new).is_empty());
        let refused = refused_times(&[0, NO_TIME, LATEST + 1, EARLIEST - 1], || "no time".into());
        assert_eq!(refused.iter().map(|r| r.row).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(refused[0].reason, "no time");
        assert!(refused[1].reason.starts_with("event time 253402300800000 is out of range"));
    }
}

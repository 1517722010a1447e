//! Spans of time and amounts of memory as job files write them.

use std::time::Duration;

/// Reads `10s`, `250ms` or `1h30m`; units are ms, s, m, h and d. The error says what is wrong.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let expected = || {
        format!(
            "expected a span of time such as \"10s\", \"250ms\" or \"1h30m\" (d, h, m, s, ms), found \"{text}\""
        )
    };
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return Err(expected());
    }
    while !rest.is_empty() {
        let (number, unit, behind) = number_and_unit(rest).ok_or_else(expected)?;
        let (_, factor) = DURATIONS.iter().find(|(name, _)| *name == unit).ok_or_else(expected)?;
        let millis = number.checked_mul(*factor).and_then(|n| n.checked_add(total));
        total = millis
            .filter(|n| *n <= LONGEST)
            .ok_or_else(|| format!("\"{text}\" is longer than the longest span of time, 1000000d"))?;
        rest = behind;
    }
    Ok(Duration::from_millis(total))
}

/// Reads `64MiB`, `10MB` or `512B`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let expected = || {
        format!(
            "expected an amount of memory such as \"64MiB\" (B, kB, MB, GB, KiB, MiB, GiB), found \"{text}\""
        )
    };
    let (number, unit, behind) = number_and_unit(text.trim()).ok_or_else(expected)?;
    let factor = BYTES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit) && behind.is_empty());
    let (_, factor) = factor.ok_or_else(expected)?;
    number.checked_mul(*factor).ok_or_else(|| format!("\"{text}\" is more than can be counted"))
}

/// A span of time as it is written: the largest units that give it exactly.
pub(crate) fn duration_text(duration: Duration) -> String {
    let mut millis = duration.as_millis() as u64;
    let mut text = String::new();
    for (unit, factor) in DURATIONS {
        if millis >= factor {
            text.push_str(&format!("{}{unit}", millis / factor));
            millis %= factor;
        }
    }
    if text.is_empty() { "0ms".to_owned() } else { text }
}

fn number_and_unit(text: &str) -> Option<(u64, &str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, behind) = rest.split_at(letters);
    Some((number.parse().ok()?, unit, behind.trim_start()))
}

const DURATIONS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
const BYTES: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
/// A million days, so that adding a few spans to a time cannot overflow.
const LONGEST: u64 = 86_400_000 * 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time() {
        for (text, millis) in
            [("0s", 0), ("250ms", 250), ("10s", 10_000), ("1h30m", 5_400_000), ("1d", 86_400_000)]
        {
            let duration = parse_duration(text).expect(text);
            assert_eq!(duration, Duration::from_millis(millis));
            assert_eq!(parse_duration(&duration_text(duration)), Ok(duration));
        }
        for text in ["", "10", "s", "10 parsecs", "-1s", "1.5s", "10s!", "99999999999999999999s"] {
            assert!(parse_duration(text).expect_err(text).contains("expected a span of time"), "{text}");
        }
        assert!(parse_duration("1000001d").expect_err("too long").contains("longer than"));
        assert!(parse_duration("18446744073709551615d").expect_err("too long").contains("longer than"));
    }

    #[test]
    fn amounts_of_memory() {
        for (text, bytes) in [("512B", 512), ("10MB", 10_000_000), ("64MiB", 64 << 20), ("1 gib", 1 << 30)] {
            assert_eq!(parse_bytes(text), Ok(bytes));
        }
        for text in ["", "64", "MB", "64 hats", "64MB5", "-1MB"] {
            assert!(parse_bytes(text).expect_err(text).contains("expected an amount"), "{text}");
        }
        assert!(parse_bytes("18446744073709551615GB").expect_err("too much").contains("more than"));
    }
}

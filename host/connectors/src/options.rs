//! Options of connectors: one struct each, filled from the job file, unknown keys refused.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

/// Options that do not make a connector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OptionsError {
    /// The option it is about, such as `format.csv.delimiter`; none if it is about all of them.
    pub key: Option<String>,
    /// What was found, what was expected.
    pub message: String,
}

impl OptionsError {
    /// An error about one option.
    pub fn at(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: Some(key.into()), message: message.into() }
    }

    /// An error about the options as a whole.
    pub fn general(message: impl Into<String>) -> Self {
        Self { key: None, message: message.into() }
    }
}

/// Reads the options of `connector` out of what the job file says.
pub(crate) fn parse<T: DeserializeOwned>(connector: &str, options: &Value) -> Result<T, OptionsError> {
    serde_path_to_error::deserialize(options).map_err(|error| {
        let path = error.path().to_string();
        let message = error.inner().to_string();
        explain(connector, path, &message)
    })
}

/// Turns what serde says into what a user wants to know: which key, and which one was perhaps meant.
fn explain(connector: &str, path: String, message: &str) -> OptionsError {
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let found = quoted.next().unwrap_or_default();
        let message =
            format!("the connector `{connector}` has no option `{found}`{}", suggestion(found, quoted));
        let key = if path.ends_with(found) { path } else { found.to_owned() };
        return OptionsError::at(key, message);
    }
    if message.starts_with("missing field") {
        let missing = quoted.next().unwrap_or_default();
        return OptionsError::at(
            missing,
            format!("the connector `{connector}` needs the option `{missing}`"),
        );
    }
    if message.starts_with("unknown variant") {
        let found = quoted.next().unwrap_or_default();
        return OptionsError::at(path, format!("`{found}` is not known here{}", suggestion(found, quoted)));
    }
    let key = (path != ".").then_some(path);
    OptionsError { key, message: message.to_owned() }
}

/// `: did you mean ...?` or the whole list of what is known.
pub(crate) fn suggestion<'a>(found: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.collect();
    let distance = |name: &&&str| strsim::damerau_levenshtein(found, name);
    match known.iter().min_by_key(distance).filter(|name| distance(name) <= 1 + found.len() / 3) {
        Some(name) => format!(": did you mean `{name}`?"),
        None if known.is_empty() => String::new(),
        None => format!(": known are {}", known.join(", ")),
    }
}

/// A number of bytes, written as `16MB`, `512KiB` or a bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// A span of time, written as `10s`, `1ms`, `1d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextDuration(pub Duration);

const SIZE_UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
const TIME_UNITS: [(&str, u64); 6] = [
    ("us", 1),
    ("ms", 1000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Splits `16MB` and multiplies; none if it is not a whole number and a known unit, or too large.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// Text or a bare number, as job files have it.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrNumber {
    Text(String),
    Number(u64),
    Other(Value),
}

impl fmt::Display for TextOrNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
            Self::Other(value) => value.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = TextOrNumber::deserialize(deserializer)?.to_string();
        let size = scaled(&found, &SIZE_UNITS).filter(|size| *size > 0);
        let expected = "expected a size such as \"16MB\", \"512KiB\" or a number of bytes";
        size.map(ByteSize).ok_or_else(|| serde::de::Error::custom(format!("found `{found}`, {expected}")))
    }
}

impl<'de> Deserialize<'de> for TextDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let found = TextOrNumber::deserialize(deserializer)?.to_string();
        let micros = scaled(&found, &TIME_UNITS).filter(|micros| *micros > 0);
        let expected = "expected a time such as \"10s\", \"100ms\" or \"1d\" (us, ms, s, m, h, d)";
        let duration = micros.map(|micros| TextDuration(Duration::from_micros(micros)));
        duration.ok_or_else(|| serde::de::Error::custom(format!("found `{found}`, {expected}")))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    #[expect(dead_code, reason = "shown by Debug only")]
    struct Example {
        path: String,
        split_size: Option<ByteSize>,
        watch: Option<TextDuration>,
    }

    fn check(options: Value, expected: Expect) {
        let shown = match parse::<Example>("file", &options) {
            Ok(parsed) => format!("{parsed:?}"),
            Err(error) => format!("{}: {error}", error.key.as_deref().unwrap_or("-")),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn sizes_and_times_are_text() {
        check(
            json!({"path": "x", "split-size": "16MB", "watch": "250ms"}),
            expect![[
                r#"Example { path: "x", split_size: Some(ByteSize(16000000)), watch: Some(TextDuration(250ms)) }"#
            ]],
        );
        check(
            json!({"path": "x", "split-size": 4096}),
            expect![[r#"Example { path: "x", split_size: Some(ByteSize(4096)), watch: None }"#]],
        );
    }

    #[test]
    fn errors_name_the_key() {
        check(
            json!({"path": "x", "splitsize": 1}),
            expect!["splitsize: the connector `file` has no option `splitsize`: did you mean `split-size`?"],
        );
        check(
            json!({"path": "x", "compaction": 1}),
            expect![
                "compaction: the connector `file` has no option `compaction`: known are path, split-size, watch"
            ],
        );
        check(json!({}), expect!["path: the connector `file` needs the option `path`"]);
        check(json!({"path": 3}), expect!["path: invalid type: integer `3`, expected a string"]);
        check(
            json!({"path": "x", "split-size": "16 megs"}),
            expect![[
                r#"split-size: found `16 megs`, expected a size such as "16MB", "512KiB" or a number of bytes"#
            ]],
        );
        check(
            json!({"path": "x", "watch": "-1s"}),
            expect![[
                r#"watch: found `-1s`, expected a time such as "10s", "100ms" or "1d" (us, ms, s, m, h, d)"#
            ]],
        );
        check(
            json!({"path": "x", "watch": "99999999999999d"}),
            expect![[
                r#"watch: found `99999999999999d`, expected a time such as "10s", "100ms" or "1d" (us, ms, s, m, h, d)"#
            ]],
        );
    }
}

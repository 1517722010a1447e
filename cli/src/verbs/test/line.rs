//! One line of a fixture.
//!
//! ```json
//! {"row":{"sensor":"attic","celsius":31.0},"time":"2024-06-01T12:00:00Z"}
//! {"watermark":"2024-06-01T12:10:00Z"}
//! {"processing-time":"2024-06-01T12:10:00Z"}
//! {"barrier":true}
//! {"end":true}
//! {"expect":{"sensor":"attic","celsius":31.0},"port":"late","time":"2024-06-01T12:00:00Z"}
//! {"expect-rejected":"the reason"}
//! {"expect-error":"a part of the text"}
//! ```
//!
//! `source` names the source of a job that a row, watermark or end is for, and `sink` the sink at which a row is
//! expected, where there are several. Times are RFC 3339 or milliseconds since 1970.

use millstream_connectors::read_timestamp;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// What goes into a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Input {
    Row(RowLine),
    Watermark(WatermarkLine),
    ProcessingTime(Time),
    Barrier(BarrierLine),
    End(EndLine),
}

/// What is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expectation {
    Row(ExpectedRow),
    Rejected(String),
    Error(String),
}

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    Input(Input),
    Expectation(Expectation),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowLine {
    pub(super) row: Map<String, Value>,
    /// Its event time, where the fixture is about a function and no column has it.
    pub(super) time: Option<Time>,
    pub(super) source: Option<String>,
    pub(super) port: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatermarkLine {
    pub(super) watermark: Time,
    pub(super) source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BarrierLine {
    pub(super) barrier: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EndLine {
    pub(super) end: bool,
    pub(super) source: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedRow {
    pub(super) expect: Map<String, Value>,
    /// A side output of a function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sink: Option<String>,
    /// The row's event time; looked at only if it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProcessingTimeLine {
    processing_time: Time,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RejectedLine {
    expect_rejected: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ErrorLine {
    expect_error: String,
}

/// A moment, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) i64);

impl Time {
    /// The moment that a value stands for.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => read_timestamp(text).map(Time),
            Value::Number(number) => read_timestamp(&number.to_string()).map(Time),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Time::of(&value).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "found {value} as a time, expected one such as \"2013-01-31T10:00:00Z\" or milliseconds since 1970"
            ))
        })
    }
}

/// Reads the text of a line.
type ReadLine = fn(&str) -> Result<Line, serde_json::Error>;

/// The keys by which a line is known, and what they begin.
const KINDS: [(&str, ReadLine); 8] = [
    ("row", |text| read(text, |line| Line::Input(Input::Row(line)))),
    ("watermark", |text| read(text, |line| Line::Input(Input::Watermark(line)))),
    ("processing-time", |text| {
        read(text, |line: ProcessingTimeLine| Line::Input(Input::ProcessingTime(line.processing_time)))
    }),
    ("barrier", |text| read(text, |line| Line::Input(Input::Barrier(line)))),
    ("end", |text| read(text, |line| Line::Input(Input::End(line)))),
    ("expect", |text| read(text, |line| Line::Expectation(Expectation::Row(line)))),
    ("expect-rejected", |text| {
        read(text, |line: RejectedLine| Line::Expectation(Expectation::Rejected(line.expect_rejected)))
    }),
    ("expect-error", |text| {
        read(text, |line: ErrorLine| Line::Expectation(Expectation::Error(line.expect_error)))
    }),
];

impl Line {
    /// Reads a line; the error says what was found and what was expected.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let object = object(text)?;
        let kinds: Vec<_> = KINDS.iter().filter(|(key, _)| object.contains_key(*key)).collect();
        let known = || KINDS.map(|(key, _)| format!("`{key}`")).join(", ");
        let (key, parse) = match kinds[..] {
            [kind] => kind,
            [] => return Err(format!("found {}, expected one of {}", keys(&object), known())),
            [(first, _), (second, _), ..] => {
                return Err(format!("found both `{first}` and `{second}`, expected one"));
            }
        };
        let line = parse(text).map_err(|error| format!("`{key}`: {}", without_place(&error)))?;
        match line {
            Line::Input(
                Input::End(EndLine { end: false, .. }) | Input::Barrier(BarrierLine { barrier: false }),
            ) => Err(format!("`{key}`: found false, expected true")),
            line => Ok(line),
        }
    }
}

fn read<T: DeserializeOwned>(text: &str, line: impl Fn(T) -> Line) -> Result<Line, serde_json::Error> {
    serde_json::from_str(text).map(line)
}

/// A line as an object.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("found {other}, expected an object such as {{\"row\":{{\"x\":1}}}}")),
        Err(error) => Err(format!("not JSON: {} at column {}", without_place(&error), error.column())),
    }
}

fn keys(object: &Map<String, Value>) -> String {
    let keys: Vec<_> = object.keys().map(|key| format!("`{key}`")).collect();
    match keys.len() {
        0 => "an empty object".to_owned(),
        1 => format!("the key {}", keys[0]),
        _ => format!("the keys {}", keys.join(", ")),
    }
}

/// What a parser says without its own idea of the line, which is always the first.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_read() {
        let time = Time(1_357_034_400_000);
        let row = Line::parse(r#"{"row":{"x":1},"time":"2013-01-01T10:00:00Z"}"#).expect("a row");
        let Line::Input(Input::Row(row)) = row else { panic!("{row:?}") };
        assert_eq!((row.time, row.row["x"].clone()), (Some(time), 1.into()));
        let watermark = Line::parse(r#"{"watermark":1357034400000,"source":"a"}"#).expect("a watermark");
        let expected = WatermarkLine { watermark: time, source: Some("a".to_owned()) };
        assert_eq!(watermark, Line::Input(Input::Watermark(expected)));
        let clock = Line::parse(r#"{"processing-time":"2013-01-01T10:00:00Z"}"#).expect("a time");
        assert_eq!(clock, Line::Input(Input::ProcessingTime(time)));
        assert!(matches!(Line::parse(r#"{"end":true}"#), Ok(Line::Input(Input::End(_)))));
        assert!(matches!(Line::parse(r#"{"barrier":true}"#), Ok(Line::Input(Input::Barrier(_)))));
        let row = Line::parse(r#"{"expect":{"x":1},"port":"late"}"#).expect("a row");
        assert!(
            matches!(row, Line::Expectation(Expectation::Row(row)) if row.port.as_deref() == Some("late"))
        );
        let rejected = Line::parse(r#"{"expect-rejected":"no"}"#).expect("a reason");
        assert_eq!(rejected, Line::Expectation(Expectation::Rejected("no".to_owned())));
        let error = Line::parse(r#"{"expect-error":"no"}"#).expect("a text");
        assert_eq!(error, Line::Expectation(Expectation::Error("no".to_owned())));
    }

    #[test]
    fn errors_say_what_was_found_and_what_was_expected() {
        let error = |text: &str| Line::parse(text).expect_err(text);
        assert_eq!(
            error(r#"{"rows":{}}"#),
            "found the key `rows`, expected one of `row`, `watermark`, `processing-time`, `barrier`, `end`, \
             `expect`, `expect-rejected`, `expect-error`"
        );
        assert_eq!(error(r#"{"row":{},"expect":{}}"#), "found both `row` and `expect`, expected one");
        assert_eq!(
            error(r#"{"row":{},"tim":1}"#),
            "`row`: unknown field `tim`, expected one of `row`, `time`, `source`, `port`"
        );
        assert_eq!(
            error(r#"{"watermark":"noon"}"#),
            "`watermark`: found \"noon\" as a time, expected one such as \"2013-01-31T10:00:00Z\" or milliseconds \
             since 1970"
        );
        assert_eq!(error(r#"{"end":false}"#), "`end`: found false, expected true");
        assert_eq!(error(r#"{"barrier":false}"#), "`barrier`: found false, expected true");
        assert!(error("[1]").starts_with("found [1], expected an object"));
        assert_eq!(error(r#"{"row":{}"#), "not JSON: EOF while parsing an object at column 9");
    }
}

//! Values out of text.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, PrimitiveArray, StringViewArray,
    timezone::Tz,
    types::{Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType},
};
use arrow_cast::parse::{Parser, string_to_datetime};
use arrow_select::nullif::nullif;
use millstream_types::{DataType, Field};

use super::rows::{no_value, wrong_value};

/// Years 1 to 9999, what RFC 3339 can write. Windows and timers reach some way beyond either end, and must not leave
/// 64 bits there.
pub(crate) const TIMESTAMPS: RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

/// Rows that cannot be read, with the first reason.
pub(crate) type BadRows = BTreeMap<usize, String>;

/// Reads the values of one column from text.
pub(crate) struct ColumnParser {
    field: Field,
    null: Option<String>,
    utc: Tz,
}

impl ColumnParser {
    /// A parser for `field` in which `null` stands for no value.
    pub(crate) fn new(field: Field, null: Option<String>) -> Self {
        Self { field, null, utc: "+00:00".parse().expect("this is a time zone") }
    }

    /// The column's values; where one is missing or cannot be read, the row is put down as bad.
    pub(crate) fn parse(&self, text: &StringViewArray, bad: &mut BadRows) -> ArrayRef {
        match self.field.data_type {
            DataType::Boolean => Arc::new(self.values(text, bad, boolean).collect::<BooleanArray>()),
            DataType::Int32 => self.primitive::<Int32Type>(text, bad, Int32Type::parse),
            DataType::Int64 => self.primitive::<Int64Type>(text, bad, Int64Type::parse),
            DataType::Float32 => self.primitive::<Float32Type>(text, bad, float32),
            DataType::Float64 => self.primitive::<Float64Type>(text, bad, float64),
            DataType::Timestamp => {
                let times = self.values(text, bad, |found| timestamp(&self.utc, found));
                Arc::new(times.collect::<PrimitiveArray<TimestampMillisecondType>>().with_timezone("UTC"))
            }
            DataType::Date => self.primitive::<Date32Type>(text, bad, Date32Type::parse),
            DataType::Utf8 => self.text(text, bad),
            DataType::Binary => Arc::new(self.values(text, bad, hexadecimal).collect::<BinaryViewArray>()),
        }
    }

    fn primitive<T: ArrowPrimitiveType>(
        &self,
        text: &StringViewArray,
        bad: &mut BadRows,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> ArrayRef {
        Arc::new(self.values(text, bad, parse).collect::<PrimitiveArray<T>>())
    }

    fn values<'a, V>(
        &'a self,
        text: &'a StringViewArray,
        bad: &'a mut BadRows,
        parse: impl Fn(&'a str) -> Option<V> + 'a,
    ) -> impl Iterator<Item = Option<V>> + 'a {
        (0..text.len()).map(move |row| {
            let found = text.value(row);
            if self.is_missing(text.is_null(row), found) {
                self.check_null(row, bad);
                return None;
            }
            let value = parse(found);
            if value.is_none() {
                bad.entry(row).or_insert_with(|| wrong_value(&self.field, found));
            }
            value
        })
    }

    /// Whether a field has no value. An empty field is no number, whatever else stands for null; but it may be bytes,
    /// as it may be text.
    fn is_missing(&self, is_null: bool, found: &str) -> bool {
        match &self.null {
            Some(null) if found == null => true,
            None if self.takes_empty() => is_null && self.field.nullable,
            _ => found.is_empty() && !self.takes_empty(),
        }
    }

    /// Whether an empty field can be a value.
    fn takes_empty(&self) -> bool {
        matches!(self.field.data_type, DataType::Utf8 | DataType::Binary)
    }

    /// Whether it matters if an empty field is quoted.
    pub(crate) fn tells_quoted_empty(&self) -> bool {
        self.takes_empty() && self.field.nullable && self.null.is_none()
    }

    fn check_null(&self, row: usize, bad: &mut BadRows) {
        if !self.field.nullable {
            bad.entry(row).or_insert_with(|| no_value(&self.field));
        }
    }

    /// Text stays where it is. An empty field without quotes is null in a column that may be null, unless a text is
    /// named that stands for null: then it is empty text.
    fn text(&self, text: &StringViewArray, bad: &mut BadRows) -> ArrayRef {
        let text = if text.null_count() > 0 && (self.null.is_some() || !self.field.nullable) {
            // The decoder has put null for every empty field.
            &(0..text.len()).map(|row| Some(text.value(row))).collect::<StringViewArray>()
        } else {
            text
        };
        let Some(null) = &self.null else {
            return Arc::new(text.clone());
        };
        let is_null: BooleanArray = (0..text.len()).map(|row| Some(text.value(row) == null)).collect();
        if is_null.true_count() == 0 {
            return Arc::new(text.clone());
        }
        for row in is_null.values().set_indices() {
            self.check_null(row, bad);
        }
        nullif(text, &is_null).expect("the mask is as long as the column")
    }
}

/// A number that is too large is no infinity; one that is written as such is.
pub(crate) fn float64(found: &str) -> Option<f64> {
    Float64Type::parse(found).filter(|value| !value.is_infinite() || !has_digit(found))
}

/// As [`float64`].
pub(crate) fn float32(found: &str) -> Option<f32> {
    Float32Type::parse(found).filter(|value| !value.is_infinite() || !has_digit(found))
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

fn boolean(found: &str) -> Option<bool> {
    match found {
        _ if found.eq_ignore_ascii_case("true") => Some(true),
        _ if found.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Milliseconds since 1970 in digits, or a date and time as RFC 3339 has them; without a time zone they are UTC.
pub(crate) fn timestamp(utc: &Tz, found: &str) -> Option<i64> {
    let digits = found.strip_prefix('-').unwrap_or(found);
    let time = if digits.bytes().all(|b| b.is_ascii_digit()) {
        found.parse().ok()?
    } else {
        string_to_datetime(utc, found).ok()?.timestamp_millis()
    };
    TIMESTAMPS.contains(&time).then_some(time)
}

/// A time as files have it.
pub(crate) fn parse_timestamp(found: &str) -> Option<i64> {
    timestamp(&"+00:00".parse().ok()?, found)
}

pub(crate) fn hexadecimal(found: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    };
    found.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_text_or_milliseconds() {
        let utc = "+00:00".parse().expect("a time zone");
        let time = |text| timestamp(&utc, text);
        assert_eq!(time("2013-01-01T10:00:00Z"), Some(1_357_034_400_000));
        assert_eq!(time("2013-01-01 10:00:00"), Some(1_357_034_400_000));
        assert_eq!(time("2013-01-01T12:00:00.250+02:00"), Some(1_357_034_400_250));
        assert_eq!(time("2013-01-01"), Some(1_356_998_400_000));
        assert_eq!(time("1357034400000"), Some(1_357_034_400_000));
        assert_eq!(time("-1"), Some(-1));
        assert_eq!(time("9999-12-31T23:59:59.999Z"), Some(*TIMESTAMPS.end()));
        assert_eq!(time("0001-01-01T00:00:00Z"), Some(*TIMESTAMPS.start()));
        for wrong in [
            "253402300800000",
            "-9223372036854775808",
            "99999999999999999999",
            "2013-13-01",
            "-",
            "x",
            "10:00",
        ] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn bytes_are_hexadecimal() {
        assert_eq!(hexadecimal("00fF10"), Some(vec![0, 255, 16]));
        assert_eq!(hexadecimal("0"), None);
        assert_eq!(hexadecimal("0g"), None);
    }

    #[test]
    fn what_stands_for_null_in_bytes() {
        let text = StringViewArray::from(vec![Some("NA"), None, Some(""), Some("ff")]);
        let parse = |field: Field, null: Option<&str>| {
            let mut bad = BadRows::new();
            let column = ColumnParser::new(field, null.map(str::to_owned)).parse(&text, &mut bad);
            let shown =
                arrow_array::cast::AsArray::as_binary_view(&column).iter().map(|v| v.map(<[u8]>::to_vec));
            (shown.collect::<Vec<_>>(), bad.into_keys().collect::<Vec<_>>())
        };
        let nullable = Field::nullable("a", DataType::Binary);
        let (empty, byte) = (Some(vec![]), Some(vec![0xFF]));
        let expected = vec![None, None, empty.clone(), byte.clone()];
        assert_eq!(parse(nullable.clone(), None), (expected, vec![0]), "NA is not hexadecimal");
        let expected = vec![None, empty.clone(), empty, byte];
        assert_eq!(parse(nullable, Some("NA")), (expected.clone(), vec![]));
        assert_eq!(parse(Field::new("a", DataType::Binary), None), (expected, vec![0]));
    }

    #[test]
    fn numbers_that_are_too_large_are_no_infinities() {
        assert_eq!([float64("1e999"), float64("-1e400"), float64("1e308")], [None, None, Some(1e308)]);
        assert_eq!([float32("1e39"), float32("1e38"), float32("1e-99")], [None, Some(1e38), Some(0.0)]);
        assert_eq!([float64("inf"), float64("-inf")], [Some(f64::INFINITY), Some(f64::NEG_INFINITY)]);
    }

    #[test]
    fn what_stands_for_null() {
        let text = StringViewArray::from(vec![Some("NA"), None, Some("x")]);
        let parse = |field: Field, null: Option<&str>| {
            let mut bad = BadRows::new();
            let column = ColumnParser::new(field, null.map(str::to_owned)).parse(&text, &mut bad);
            let shown =
                arrow_array::cast::AsArray::as_string_view(&column).iter().map(|v| v.map(str::to_owned));
            (shown.collect::<Vec<_>>(), bad.into_keys().collect::<Vec<_>>())
        };
        let some = |text: &str| Some(text.to_owned());
        let nullable = Field::nullable("a", DataType::Utf8);
        let required = Field::new("a", DataType::Utf8);
        assert_eq!(parse(nullable.clone(), None), (vec![some("NA"), None, some("x")], vec![]));
        assert_eq!(parse(nullable, Some("NA")), (vec![None, some(""), some("x")], vec![]));
        assert_eq!(parse(required.clone(), None), (vec![some("NA"), some(""), some("x")], vec![]));
        assert_eq!(parse(required, Some("NA")), (vec![None, some(""), some("x")], vec![0]));
    }
}

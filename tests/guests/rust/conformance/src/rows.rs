//! Map functions: every type, and every number of rows out of one.

use millstream::{Date, EventTime, Input, Output, Reject, State, Timestamp};

/// A row of every type.
#[derive(State, Clone, Debug, PartialEq)]
pub struct Plain {
    pub boolean: bool,
    pub int32: i32,
    pub int64: i64,
    pub float32: f32,
    pub float64: f64,
    pub timestamp: Timestamp,
    pub date: Date,
    pub utf8: String,
    pub binary: Vec<u8>,
}

/// Every type as it came.
#[millstream::map(carry = "replace")]
pub fn plain_types(row: Plain) -> Plain {
    row
}

/// A row of every type, each perhaps null.
#[derive(State, Clone, Debug, Default, PartialEq)]
pub struct Nullable {
    pub boolean: Option<bool>,
    pub int32: Option<i32>,
    pub int64: Option<i64>,
    pub float32: Option<f32>,
    pub float64: Option<f64>,
    pub timestamp: Option<Timestamp>,
    pub date: Option<Date>,
    pub utf8: Option<String>,
    pub binary: Option<Vec<u8>>,
}

/// Every type as it came, null or not.
#[millstream::map(carry = "replace")]
pub fn nullable_types(row: Nullable) -> Nullable {
    row
}

/// A number.
#[derive(Input)]
pub struct Number {
    pub n: i64,
}

/// Twice a number.
#[derive(Output, Debug, PartialEq)]
pub struct Doubled {
    pub doubled: i64,
}

/// Appends a column.
#[millstream::map]
pub fn doubled(row: Number) -> Doubled {
    Doubled { doubled: row.n * 2 }
}

/// A row's event time.
#[derive(Output, Debug, PartialEq)]
pub struct Stamped {
    pub event_time: Option<Timestamp>,
}

/// Reads event times and no column.
#[millstream::map]
pub fn event_times(_row: (), time: EventTime) -> Stamped {
    Stamped { event_time: time.timestamp() }
}

/// One of several rows.
#[derive(Output, Debug, PartialEq)]
pub struct Part {
    pub part: i64,
}

/// As many rows as the number says.
#[millstream::map]
pub fn exploded(row: Number) -> Vec<Part> {
    (0..row.n).map(|part| Part { part }).collect()
}

/// Keeps even numbers.
#[millstream::map]
pub fn kept(row: Number) -> bool {
    row.n % 2 == 0
}

/// Refuses odd numbers.
#[millstream::map]
pub fn refused(row: Number) -> Result<Doubled, Reject> {
    match row.n % 2 {
        0 => Ok(Doubled { doubled: row.n * 2 }),
        _ => Err(Reject::new(format!("{} is odd", row.n))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    fn plain() -> Plain {
        Plain {
            boolean: true,
            int32: -1,
            int64: i64::MIN,
            float32: 0.5,
            float64: -0.0,
            timestamp: Timestamp(7),
            date: Date(-7),
            utf8: "Zürich".to_owned(),
            binary: vec![0, 255],
        }
    }

    #[test]
    fn every_type_comes_back() {
        let rows = [plain(), Plain { boolean: false, utf8: String::new(), ..plain() }];
        let results = testing::map::<plain_types>().run(rows.clone());
        assert_eq!(results.rows::<Plain>(), rows);
    }

    #[test]
    fn every_null_comes_back() {
        let some = Nullable { int64: Some(1), utf8: Some("x".to_owned()), ..Nullable::default() };
        let results = testing::map::<nullable_types>().run([Nullable::default(), some.clone()]);
        assert_eq!(results.rows::<Nullable>(), [Nullable::default(), some]);
    }

    #[test]
    fn event_times_are_read() {
        let results = testing::map::<event_times>().run_at([(5, ()), (i64::MIN, ())]);
        let stamped = [Some(Timestamp(5)), None].map(|event_time| Stamped { event_time });
        assert_eq!(results.rows::<Stamped>(), stamped);
    }

    #[test]
    fn rows_become_none_one_or_many() {
        let numbers = || [0, 1, 2, 3].map(|n| Number { n });
        assert_eq!(testing::map::<exploded>().run(numbers()).origins().len(), 6);
        assert_eq!(testing::map::<kept>().run(numbers()).origins(), [Some(0), Some(2)]);
        let results = testing::map::<refused>().run(numbers());
        assert_eq!(results.rejected(), [(1, "1 is odd"), (3, "3 is odd")]);
        assert_eq!(results.origins(), [Some(0), Some(2)]);
    }
}

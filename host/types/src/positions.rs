//! Where the rows of a batch stand in what a source has read, for messages and dead letters.
//!
//! It belongs to the batch and costs its rows nothing: records that follow each other have a first number and no
//! others, and rows that were picked out of a batch keep the picks by reference. What has been dealt out over an
//! exchange keeps only the ranges that its rows come from, so that a queue holds nothing but them.

use std::{fmt, sync::Arc};

use arrow_buffer::ScalarBuffer;
use serde::{Deserialize, Serialize};

/// What the records of a source are numbered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordUnit {
    /// Lines of a text file, on which a record starts, from 1.
    Line,
    /// Rows of a file, from 1.
    Row,
    /// Records that are made, from 0.
    Record,
}

/// The numbers of records, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordNumbers {
    /// `first`, `first + stride` and so on.
    Even {
        /// The first one.
        first: u64,
        /// From one to the next.
        stride: u64,
        /// How many.
        rows: usize,
    },
    /// One each.
    Each(Vec<u64>),
    /// All within these bounds, which are included.
    Within(u64, u64),
}

impl RecordNumbers {
    fn bounds(&self) -> (u64, u64) {
        match self {
            Self::Even { first, stride, rows } => {
                (*first, first.wrapping_add(stride.wrapping_mul(rows.saturating_sub(1) as u64)))
            }
            Self::Each(numbers) => {
                (numbers.first().copied().unwrap_or_default(), numbers.last().copied().unwrap_or_default())
            }
            Self::Within(first, last) => (*first, *last),
        }
    }

    fn number(&self, row: usize) -> Option<u64> {
        match self {
            Self::Even { first, stride, .. } => Some(first.wrapping_add(stride.wrapping_mul(row as u64))),
            Self::Each(numbers) => numbers.get(row).copied(),
            Self::Within(..) => None,
        }
    }
}

/// Where the rows of a batch come from. Shown, it is the range of all of them.
#[derive(Clone, Debug)]
pub struct Positions(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Rows of one read, from `offset` on.
    Read { read: Arc<ReadRows>, offset: usize },
    /// Some of the rows of another batch, from `offset` on.
    Picked { from: Arc<Positions>, rows: ScalarBuffer<u32>, offset: usize },
    /// Rows from anywhere within these.
    Within(Arc<[Range]>),
}

#[derive(Debug)]
struct ReadRows {
    place: Arc<str>,
    unit: RecordUnit,
    numbers: RecordNumbers,
}

/// Numbers of one place, bounds included; of others too if `more` is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Range {
    place: Arc<str>,
    unit: RecordUnit,
    first: u64,
    last: u64,
    more: bool,
}

/// Positions on their way to another process: what is known of the rows, and nothing that they refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortablePositions(Portable);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Portable {
    /// Rows of one place.
    Rows { place: Arc<str>, unit: RecordUnit, numbers: RecordNumbers },
    /// Rows from anywhere within these.
    Within(Arc<[Range]>),
}

impl From<PortablePositions> for Positions {
    fn from(portable: PortablePositions) -> Self {
        match portable.0 {
            Portable::Rows { place, unit, numbers } => Self::read(place, unit, numbers),
            Portable::Within(ranges) => Self(Kind::Within(ranges)),
        }
    }
}

/// As many places are told apart of rows that come from several.
const PLACES: usize = 4;

impl Positions {
    /// Rows that have just been read: of a file, or of the source that made them.
    pub fn read(place: Arc<str>, unit: RecordUnit, numbers: RecordNumbers) -> Self {
        Self(Kind::Read { read: Arc::new(ReadRows { place, unit, numbers }), offset: 0 })
    }

    /// Where one row stands; the range that it is from if no more is known.
    pub fn of(&self, row: usize) -> String {
        match &self.0 {
            Kind::Read { read: from, offset } => match from.numbers.number(offset + row) {
                Some(number) => one(&from.place, from.unit, number),
                None => self.to_string(),
            },
            Kind::Picked { from, rows, offset } => match rows.get(offset + row) {
                Some(&picked) => from.of(picked as usize),
                None => self.to_string(),
            },
            Kind::Within(_) => self.to_string(),
        }
    }

    /// Of the rows from `offset` on.
    pub(crate) fn slice(&self, offset: usize) -> Self {
        let mut sliced = self.clone();
        match &mut sliced.0 {
            Kind::Read { offset: start, .. } | Kind::Picked { offset: start, .. } => *start += offset,
            Kind::Within(_) => {}
        }
        sliced
    }

    /// Of some of the rows, in any order.
    pub fn pick(&self, rows: &ScalarBuffer<u32>) -> Self {
        match &self.0 {
            Kind::Within(_) => self.clone(),
            _ => Self(Kind::Picked { from: Arc::new(self.clone()), rows: rows.clone(), offset: 0 }),
        }
    }

    /// Only the range, which refers to nothing that grows with the number of rows.
    pub fn range(&self) -> Self {
        Self(Kind::Within(self.ranges()))
    }

    /// Of the first `rows` rows, for another process. Where each row has a number of its own, it keeps it, unless they do
    /// not ascend.
    pub fn portable(&self, rows: usize) -> PortablePositions {
        let rows_of = |read: &ReadRows, numbers| {
            PortablePositions(Portable::Rows { place: read.place.clone(), unit: read.unit, numbers })
        };
        match &self.0 {
            Kind::Read { read, offset } => {
                if let RecordNumbers::Even { first, stride, .. } = read.numbers {
                    let first = first.wrapping_add(stride.wrapping_mul(*offset as u64));
                    return rows_of(read, RecordNumbers::Even { first, stride, rows });
                }
                let numbers = (*offset..offset + rows).map(|row| read.numbers.number(row));
                if let Some(numbers) = ascending(numbers) {
                    return rows_of(read, RecordNumbers::Each(numbers));
                }
            }
            Kind::Picked { from, rows: picked, offset } => {
                if let Kind::Read { read, offset: start } = &from.0
                    && let Some(picked) = picked.get(*offset..offset + rows)
                    && let Some(numbers) =
                        ascending(picked.iter().map(|&row| read.numbers.number(start + row as usize)))
                {
                    return rows_of(read, RecordNumbers::Each(numbers));
                }
            }
            Kind::Within(_) => {}
        }
        PortablePositions(Portable::Within(self.ranges()))
    }

    /// The ranges of several batches together; none if nothing is known of one of them.
    pub(crate) fn concat<'a>(all: impl IntoIterator<Item = Option<&'a Positions>>) -> Option<Self> {
        let mut together: Vec<Range> = Vec::new();
        for positions in all {
            positions?.ranges().iter().for_each(|range| add(&mut together, range));
        }
        Some(Self(Kind::Within(together.into())))
    }

    fn ranges(&self) -> Arc<[Range]> {
        match &self.0 {
            Kind::Within(ranges) => ranges.clone(),
            Kind::Picked { from, .. } => from.ranges(),
            Kind::Read { read, .. } => {
                let (first, last) = read.numbers.bounds();
                Arc::new([Range { place: read.place.clone(), unit: read.unit, first, last, more: false }])
            }
        }
    }
}

/// The numbers, if there is one each and none is before its predecessor.
fn ascending(numbers: impl Iterator<Item = Option<u64>>) -> Option<Vec<u64>> {
    let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
    numbers.is_sorted().then_some(numbers)
}

/// Widens the range of the same place, or adds another one while there are few.
fn add(ranges: &mut Vec<Range>, new: &Range) {
    let same = |range: &&mut Range| Arc::ptr_eq(&range.place, &new.place) || range.place == new.place;
    if let Some(known) = ranges.iter_mut().find(same) {
        (known.first, known.last) = (known.first.min(new.first), known.last.max(new.last));
        known.more |= new.more;
    } else if ranges.len() < PLACES {
        ranges.push(new.clone());
    } else if let Some(last) = ranges.last_mut() {
        last.more = true;
    }
}

fn one(place: &str, unit: RecordUnit, number: u64) -> String {
    match unit {
        RecordUnit::Line => format!("{place}:{number}"),
        RecordUnit::Row => format!("{place}: row {number}"),
        RecordUnit::Record => format!("{place}: record {number}"),
    }
}

impl fmt::Display for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Range { place, unit, first, last, more }) in self.ranges().iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            let what = match unit {
                RecordUnit::Line => "lines",
                RecordUnit::Row => "rows",
                RecordUnit::Record => "records",
            };
            if first == last {
                f.write_str(&one(place, *unit, *first))?;
            } else {
                write!(f, "{place}: {what} {first} to {last}")?;
            }
            f.write_str(if *more { " and others" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(place: &str, first: u64, rows: usize) -> Positions {
        let numbers = RecordNumbers::Even { first, stride: 1, rows };
        Positions::read(place.into(), RecordUnit::Line, numbers)
    }

    #[test]
    fn rows_are_known_through_slices_and_picks() {
        let read = lines("a.csv", 2, 10);
        assert_eq!((read.of(0), read.to_string()), ("a.csv:2".into(), "a.csv: lines 2 to 11".into()));
        let picked = read.slice(3).pick(&vec![0, 2, 6].into()).slice(1);
        assert_eq!([picked.of(0), picked.of(1)], ["a.csv:7", "a.csv:11"]);
        let again = picked.pick(&vec![1].into());
        assert_eq!((again.of(0), again.to_string()), ("a.csv:11".into(), "a.csv: lines 2 to 11".into()));
        assert_eq!(again.of(5), "a.csv: lines 2 to 11", "there is no such row");
    }

    #[test]
    fn numbers_need_not_follow_each_other() {
        let each = Positions::read("b".into(), RecordUnit::Row, RecordNumbers::Each(vec![1, 5, 9]));
        assert_eq!((each.of(1), each.to_string()), ("b: row 5".into(), "b: rows 1 to 9".into()));
        let even = RecordNumbers::Even { first: 1, stride: 4, rows: 3 };
        let even = Positions::read("events".into(), RecordUnit::Record, even);
        assert_eq!(
            (even.of(2), even.to_string()),
            ("events: record 9".into(), "events: records 1 to 9".into())
        );
        let within = Positions::read("events".into(), RecordUnit::Record, RecordNumbers::Within(3, 8));
        assert_eq!(within.slice(2).of(1), "events: records 3 to 8");
    }

    #[test]
    fn what_is_known_travels() {
        let check = |positions: &Positions, rows: usize| {
            let there = Positions::from(positions.portable(rows));
            let of = |positions: &Positions| (0..rows).map(|row| positions.of(row)).collect::<Vec<_>>();
            assert_eq!(of(&there), of(positions));
            there.to_string()
        };
        let read = lines("a.csv", 2, 10);
        assert_eq!(check(&read, 10), "a.csv: lines 2 to 11");
        assert_eq!(check(&read.slice(4), 3), "a.csv: lines 6 to 8");
        assert_eq!(check(&read.pick(&vec![1, 5, 9].into()).slice(1), 2), "a.csv: lines 7 to 11");
        let each = Positions::read("b".into(), RecordUnit::Row, RecordNumbers::Each(vec![1, 5, 9]));
        assert_eq!(check(&each.slice(1), 2), "b: rows 5 to 9");
        let within = Positions::read("c".into(), RecordUnit::Row, RecordNumbers::Within(3, 8));
        assert_eq!(check(&within, 4), "c: rows 3 to 8");
        let unordered = read.pick(&vec![5, 1].into());
        assert_eq!(
            Positions::from(unordered.portable(2)).of(0),
            "a.csv: lines 2 to 11",
            "the range is known"
        );
        let twice = read.pick(&vec![1, 5].into()).pick(&vec![1].into());
        assert_eq!(Positions::from(twice.portable(1)).of(0), "a.csv: lines 2 to 11");
        assert!(Positions::from(each.portable(9)).of(0).starts_with("b: rows"), "there are not so many");
    }

    #[test]
    fn together_they_are_ranges() {
        let all = [lines("a", 2, 10), lines("b", 7, 1), lines("a", 20, 5).pick(&vec![0].into())];
        let together = Positions::concat(all.iter().map(Some)).expect("all known");
        assert_eq!(together.to_string(), "a: lines 2 to 24, b:7");
        assert_eq!(together.pick(&vec![0].into()).of(0), "a: lines 2 to 24, b:7");
        assert!(Positions::concat([Some(&all[0]), None]).is_none());
        let many: Vec<_> = (0..9).map(|i| lines(&i.to_string(), 1, 1)).collect();
        let together = Positions::concat(many.iter().map(Some)).expect("all known");
        assert_eq!(together.to_string(), "0:1, 1:1, 2:1, 3:1 and others");
    }
}

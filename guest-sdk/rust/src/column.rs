//! Batches as they cross the boundary: each column is one list of primitives and a validity bitmap.
//!
//! These are the physical layouts of the WIT package's `types`. Functions over typed structs never see them;
//! they are public for those who write a function over whole columns or a decoder of their own.

use thiserror::Error;

/// Logical type of a column, as the manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `bool`, one bit a row.
    Boolean,
    /// `i32`.
    Int32,
    /// `i64`.
    Int64,
    /// `f32`.
    Float32,
    /// `f64`.
    Float64,
    /// Milliseconds since the epoch, UTC.
    Timestamp,
    /// Days since the epoch.
    Date,
    /// Text.
    Utf8,
    /// Bytes.
    Binary,
}

impl Type {
    /// Name in the manifest and in job files.
    pub fn name(self) -> &'static str {
        match self {
            Type::Boolean => "boolean",
            Type::Int32 => "int32",
            Type::Int64 => "int64",
            Type::Float32 => "float32",
            Type::Float64 => "float64",
            Type::Timestamp => "timestamp",
            Type::Date => "date",
            Type::Utf8 => "utf8",
            Type::Binary => "binary",
        }
    }
}

/// Declaration of one column: what stands in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name that a job file binds.
    pub name: String,
    /// Logical type.
    pub r#type: Type,
    /// Whether rows may have no value.
    pub nullable: bool,
}

/// Values of variable length: row i is `bytes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarValues {
    /// Rows + 1 positions into `bytes`, rising.
    pub offsets: Vec<u32>,
    /// All rows' bytes, one after another.
    pub bytes: Vec<u8>,
}

impl VarValues {
    /// Room for so many rows of about so many bytes in all.
    pub fn with_capacity(rows: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { offsets, bytes: Vec::with_capacity(bytes) }
    }

    /// Appends one row.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.offsets.push(self.bytes.len() as u32);
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of one row.
    #[inline]
    pub fn row(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    /// Whether the offsets describe `rows` rows within the bytes.
    pub(crate) fn check(&self, rows: usize) -> Result<(), Mismatch> {
        if self.offsets.len() != rows + 1 {
            return Err(Mismatch::Rows { expected: rows, found: self.len() });
        }
        let rising = self.offsets.windows(2).fold(true, |rising, pair| rising & (pair[0] <= pair[1]));
        match self.offsets.last() {
            Some(&end) if rising && end as usize <= self.bytes.len() => Ok(()),
            _ => Err(Mismatch::Offsets { bytes: self.bytes.len() }),
        }
    }
}

impl Default for VarValues {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

/// One column's values in their physical layout.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Boolean: one bit a row, least significant first.
    Bits(Vec<u8>),
    /// Int32 and date.
    Int32(Vec<i32>),
    /// Int64 and timestamp.
    Int64(Vec<i64>),
    /// Float32.
    Float32(Vec<f32>),
    /// Float64.
    Float64(Vec<f64>),
    /// Utf8 and binary.
    Var(VarValues),
}

impl Values {
    /// Name of the layout, for error texts.
    pub fn layout(&self) -> &'static str {
        match self {
            Values::Bits(_) => "bits",
            Values::Int32(_) => "int32",
            Values::Int64(_) => "int64",
            Values::Float32(_) => "float32",
            Values::Float64(_) => "float64",
            Values::Var(_) => "var",
        }
    }
}

/// One column of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// A set bit means that the row has a value; none means that every row has one.
    pub validity: Option<Vec<u8>>,
    /// The values; those of rows without one mean nothing.
    pub values: Values,
}

impl From<Values> for Column {
    fn from(values: Values) -> Self {
        Self { validity: None, values }
    }
}

/// Rows as columns, in the order that the manifest declares them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Number of rows; every column has as many.
    pub rows: usize,
    /// The columns.
    pub columns: Vec<Column>,
}

impl Batch {
    /// Column at `index`, or the error that says how many there are.
    pub fn column(&self, index: usize) -> Result<&Column, Mismatch> {
        self.columns.get(index).ok_or(Mismatch::Columns { expected: index + 1, found: self.columns.len() })
    }
}

/// A batch that does not have the shape that the function declared: a fault of the host or of a decoder.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Mismatch {
    /// Fewer columns than declared.
    #[error("expected at least {expected} columns, found {found}")]
    Columns {
        /// Columns that were needed.
        expected: usize,
        /// Columns that there were.
        found: usize,
    },
    /// A column of another layout.
    #[error("expected a column of {expected}, found one of {found} values")]
    Layout {
        /// Logical type that was declared.
        expected: &'static str,
        /// Physical layout that was sent.
        found: &'static str,
    },
    /// A column of another length.
    #[error("expected a column of {expected} rows, found {found}")]
    Rows {
        /// Rows of the batch.
        expected: usize,
        /// Rows of the column.
        found: usize,
    },
    /// Offsets that do not rise or point behind the bytes.
    #[error("offsets of a column of variable length do not rise, or point behind its {bytes} bytes")]
    Offsets {
        /// Length of the column's bytes.
        bytes: usize,
    },
    /// A text column that is no text.
    #[error("a utf8 column holds invalid UTF-8 after byte {valid_up_to}")]
    Utf8 {
        /// Length of the valid start.
        valid_up_to: usize,
    },
    /// A position outside of what it points into.
    #[error("position {found} is out of range: there are {limit}")]
    Position {
        /// The position.
        found: usize,
        /// How many there are.
        limit: usize,
    },
}

impl Mismatch {
    pub(crate) fn layout(expected: Type, found: &Values) -> Self {
        Mismatch::Layout { expected: expected.name(), found: found.layout() }
    }
}

/// Whether every position is below `limit`; checked once a call so that the row loops may index.
#[doc(hidden)]
pub fn check_positions(positions: &[u32], limit: usize) -> Result<(), Mismatch> {
    let highest = positions.iter().fold(0, |highest, &position| highest.max(position));
    match positions.is_empty() || (highest as usize) < limit {
        true => Ok(()),
        false => Err(Mismatch::Position { found: highest as usize, limit }),
    }
}

/// Whether there is one of something for each row.
#[doc(hidden)]
pub fn check_rows(found: usize, expected: usize) -> Result<(), Mismatch> {
    if found == expected { Ok(()) } else { Err(Mismatch::Rows { expected, found }) }
}

/// Whether `offsets` are `runs` + 1 rising positions up to exactly `items`.
#[doc(hidden)]
pub fn check_runs(offsets: &[u32], runs: usize, items: usize) -> Result<(), Mismatch> {
    if offsets.len() != runs + 1 {
        return Err(Mismatch::Rows { expected: runs, found: offsets.len().saturating_sub(1) });
    }
    let rising = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
    match rising && offsets[runs] as usize == items {
        true => Ok(()),
        false => Err(Mismatch::Offsets { bytes: items }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn var_values_keep_rows_apart() {
        let mut values = VarValues::default();
        values.push(b"ab");
        values.push(b"");
        values.push(b"c");
        assert_eq!(values.len(), 3);
        assert_eq!((values.row(0), values.row(1), values.row(2)), (&b"ab"[..], &b""[..], &b"c"[..]));
        assert_eq!(values.check(3), Ok(()));
    }

    #[test]
    fn rows_of_every_length_stay_whole() {
        let rows: Vec<Vec<u8>> =
            (0..40u8).map(|length| (0..length).map(|at: u8| at.wrapping_mul(7) ^ length).collect()).collect();
        let mut values = VarValues::default();
        rows.iter().for_each(|row| values.push(row));
        assert!(rows.iter().enumerate().all(|(at, row)| values.row(at) == row.as_slice()));
    }

    #[test]
    fn wrong_offsets_are_found() {
        let falling = VarValues { offsets: vec![0, 2, 1], bytes: vec![0; 2] };
        assert_eq!(falling.check(2), Err(Mismatch::Offsets { bytes: 2 }));
        let behind = VarValues { offsets: vec![0, 3], bytes: vec![0; 2] };
        assert_eq!(behind.check(1), Err(Mismatch::Offsets { bytes: 2 }));
        assert_eq!(behind.check(2), Err(Mismatch::Rows { expected: 2, found: 1 }));
    }

    #[test]
    fn positions_and_runs_are_checked() {
        assert_eq!(check_positions(&[0, 2, 1], 3), Ok(()));
        assert_eq!(check_positions(&[3], 3), Err(Mismatch::Position { found: 3, limit: 3 }));
        assert_eq!(check_positions(&[], 0), Ok(()));
        assert_eq!(check_runs(&[0, 1, 4], 2, 4), Ok(()));
        assert!(check_runs(&[0, 1, 3], 2, 4).is_err());
        assert!(check_runs(&[0, 5, 4], 2, 4).is_err());
    }
}

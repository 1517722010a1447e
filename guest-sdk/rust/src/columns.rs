//! Functions over whole columns: the way round the row loop, for who wants vectors.
//!
//! A struct of vectors under `#[derive(Columns)]` takes the batch's lists over without copying them, and hands
//! its own over the same way:
//!
//! ```
//! use millstream::Columns;
//!
//! #[derive(Columns)]
//! struct Prices {
//!     price: Vec<i64>,
//! }
//!
//! /// Converts prices.
//! #[millstream::map(columns)]
//! fn convert(mut bids: Prices) -> Prices {
//!     bids.price.iter_mut().for_each(|price| *price = *price * 908 / 1000);
//!     bids
//! }
//! # fn main() {}
//! ```

use crate::column::{Batch, Column, ColumnSpec, Mismatch, Type, Values, VarValues};
use crate::function::{Call, Origin, Outcome, PortOutput};

/// The columns of a batch. Derive it: `#[derive(Columns)]`.
pub trait Columns: Sized {
    /// What the manifest says of them.
    fn specs() -> Vec<ColumnSpec>;
    /// Takes a batch over.
    fn from_batch(batch: Batch) -> Result<Self, Mismatch>;
    /// Gives the columns up.
    fn into_columns(self) -> Vec<Column>;
}

impl Columns for () {
    fn specs() -> Vec<ColumnSpec> {
        Vec::new()
    }

    fn from_batch(_: Batch) -> Result<Self, Mismatch> {
        Ok(())
    }

    fn into_columns(self) -> Vec<Column> {
        Vec::new()
    }
}

/// A type that is one whole column: `Vec` of `i32`, `i64`, `f32`, `f64`; [`Timestamps`], [`Text`], [`Bytes`];
/// [`Nullable`] of each.
pub trait ColumnData: Sized {
    /// Logical type.
    const TYPE: Type;
    /// Whether rows may have no value.
    const NULLABLE: bool = false;

    /// Takes a column of so many rows over.
    fn from_column(column: Column, rows: usize) -> Result<Self, Mismatch>;
    /// Gives the column up.
    fn into_column(self) -> Column;
}

/// A column of timestamps, milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timestamps(pub Vec<i64>);

/// A column of text. The host refuses a module's text that is not UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub VarValues);

/// A column of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub VarValues);

/// A column in which rows may have no value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nullable<C> {
    /// A set bit means that the row has a value; none means that every row has one.
    pub validity: Option<Vec<u8>>,
    /// The values.
    pub values: C,
}

/// Some rows of a call: the input row of each output row, and the output's columns. `Picked<()>` is a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picked<C> {
    /// Input row of each output row.
    pub rows: Vec<u32>,
    /// Columns with as many rows.
    pub columns: C,
}

impl<C: Columns> Picked<C> {
    #[doc(hidden)]
    pub fn into_outcome(self) -> Call {
        let (rows, columns) = (self.rows.len(), self.columns.into_columns());
        let output = PortOutput { port: 0, rows, origin: Origin::Picked(self.rows), columns };
        Ok(Outcome { outputs: vec![output], rejected: Vec::new() })
    }
}

macro_rules! lists {
    ($($rust:ty => $type:ident, $values:ident;)*) => {
        $(impl ColumnData for Vec<$rust> {
            const TYPE: Type = Type::$type;

            fn from_column(column: Column, rows: usize) -> Result<Self, Mismatch> {
                match column.values {
                    Values::$values(values) if values.len() == rows => Ok(values),
                    Values::$values(values) => Err(Mismatch::Rows { expected: rows, found: values.len() }),
                    other => Err(Mismatch::layout(Self::TYPE, &other)),
                }
            }

            fn into_column(self) -> Column {
                Values::$values(self).into()
            }
        })*
    };
}

lists! {
    i32 => Int32, Int32;
    i64 => Int64, Int64;
    f32 => Float32, Float32;
    f64 => Float64, Float64;
}

impl ColumnData for Timestamps {
    const TYPE: Type = Type::Timestamp;

    fn from_column(column: Column, rows: usize) -> Result<Self, Mismatch> {
        Vec::<i64>::from_column(column, rows).map(Self)
    }

    fn into_column(self) -> Column {
        self.0.into_column()
    }
}

macro_rules! variable {
    ($($rust:ident => $type:ident;)*) => {
        $(impl ColumnData for $rust {
            const TYPE: Type = Type::$type;

            fn from_column(column: Column, rows: usize) -> Result<Self, Mismatch> {
                match column.values {
                    Values::Var(values) => values.check(rows).map(|()| Self(values)),
                    other => Err(Mismatch::layout(Self::TYPE, &other)),
                }
            }

            fn into_column(self) -> Column {
                Values::Var(self.0).into()
            }
        })*
    };
}

variable! {
    Text => Utf8;
    Bytes => Binary;
}

impl<C: ColumnData> ColumnData for Nullable<C> {
    const TYPE: Type = C::TYPE;
    const NULLABLE: bool = true;

    fn from_column(mut column: Column, rows: usize) -> Result<Self, Mismatch> {
        let validity = column.validity.take();
        Ok(Self { validity, values: C::from_column(column, rows)? })
    }

    fn into_column(self) -> Column {
        Column { validity: self.validity, values: self.values.into_column().values }
    }
}

/// The columns of a batch, taken one after another; what the derive calls.
#[doc(hidden)]
pub struct Taken {
    columns: std::vec::IntoIter<Column>,
    taken: usize,
    rows: usize,
}

impl Taken {
    /// All of a batch.
    pub fn new(batch: Batch) -> Self {
        Self { columns: batch.columns.into_iter(), taken: 0, rows: batch.rows }
    }

    /// The next column.
    pub fn take<C: ColumnData>(&mut self) -> Result<C, Mismatch> {
        self.taken += 1;
        let missing = Mismatch::Columns { expected: self.taken, found: self.taken - 1 };
        C::from_column(self.columns.next().ok_or(missing)?, self.rows)
    }
}

/// Declaration of a column; what the derive calls.
#[doc(hidden)]
pub fn column_data<C: ColumnData>(name: &str) -> ColumnSpec {
    ColumnSpec { name: name.to_owned(), r#type: C::TYPE, nullable: C::NULLABLE }
}

/// One output row for each input row; what the attribute calls.
#[doc(hidden)]
pub fn columns_outcome<C: Columns>(columns: C, rows: usize) -> Call {
    Ok(Outcome::each(rows, columns.into_columns()))
}

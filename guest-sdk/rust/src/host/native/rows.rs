//! Rows taken out of batches and put together again, for a host that keeps rows.

use crate::bits::{BitBuilder, is_set};
use crate::column::{Batch, Column, ColumnSpec, Type, Values, VarValues};

/// One value of a row; none is null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Bits(bool),
    Int32(i32),
    Int64(i64),
    Float32(f32),
    Float64(f64),
    Var(Vec<u8>),
}

/// A row as it is kept.
pub(crate) type StoredRow = Vec<Option<Scalar>>;

/// The rows of a batch.
pub(crate) fn split(batch: Batch) -> Vec<StoredRow> {
    (0..batch.rows).map(|row| batch.columns.iter().map(|column| scalar(column, row)).collect()).collect()
}

fn scalar(column: &Column, row: usize) -> Option<Scalar> {
    if column.validity.as_ref().is_some_and(|validity| !is_set(validity, row)) {
        return None;
    }
    Some(match &column.values {
        Values::Bits(bits) => Scalar::Bits(is_set(bits, row)),
        Values::Int32(values) => Scalar::Int32(values[row]),
        Values::Int64(values) => Scalar::Int64(values[row]),
        Values::Float32(values) => Scalar::Float32(values[row]),
        Values::Float64(values) => Scalar::Float64(values[row]),
        Values::Var(values) => Scalar::Var(values.row(row).to_vec()),
    })
}

/// A batch of rows with these columns; an absent row keeps its place.
pub(crate) fn join(columns: &[ColumnSpec], rows: &[Option<&StoredRow>]) -> Batch {
    let column = |(at, spec): (usize, &ColumnSpec)| {
        let scalars = rows.iter().map(|row| row.and_then(|row| row[at].as_ref()));
        let scalars: Vec<_> = scalars.collect();
        let mut validity = BitBuilder::with_capacity(rows.len());
        scalars.iter().for_each(|scalar| validity.push(scalar.is_some()));
        Column { validity: validity.into_validity(), values: values(spec.r#type, &scalars) }
    };
    Batch { rows: rows.len(), columns: columns.iter().enumerate().map(column).collect() }
}

macro_rules! list {
    ($kind:ident, $scalars:expr) => {
        Values::$kind(
            $scalars
                .iter()
                .map(|scalar| match scalar {
                    Some(Scalar::$kind(value)) => *value,
                    _ => Default::default(),
                })
                .collect(),
        )
    };
}

fn values(r#type: Type, scalars: &[Option<&Scalar>]) -> Values {
    match r#type {
        Type::Boolean => {
            let mut bits = BitBuilder::with_capacity(scalars.len());
            scalars.iter().for_each(|scalar| bits.push(matches!(scalar, Some(Scalar::Bits(true)))));
            Values::Bits(bits.finish())
        }
        Type::Int32 | Type::Date => list!(Int32, scalars),
        Type::Int64 | Type::Timestamp => list!(Int64, scalars),
        Type::Float32 => list!(Float32, scalars),
        Type::Float64 => list!(Float64, scalars),
        Type::Utf8 | Type::Binary => {
            let mut values = VarValues::default();
            for scalar in scalars {
                values.push(match scalar {
                    Some(Scalar::Var(bytes)) => bytes,
                    _ => &[],
                });
            }
            Values::Var(values)
        }
    }
}

//! Columns that a guest made, checked against what its manifest declares, as Arrow arrays.
//!
//! Numbers, bits and bytes become Arrow buffers as they were lifted, without another copy. Nothing a guest says is
//! used before it has been checked: the arrays that come out of here are as good as the host's own.

use std::{fmt, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, types};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use millstream_types::{Cells, Column, Columns, DataType};

use crate::{bindings::types as wit, trusted};

/// What is wrong with something that a guest handed over: what was found and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Problem(pub(crate) String);

/// The columns of a batch. `of` names the batch in messages.
pub(crate) fn columns(
    found: Vec<wit::Column>,
    declared: &[Column],
    rows: usize,
    of: &dyn fmt::Display,
) -> Result<Vec<ArrayRef>, Problem> {
    if found.len() != declared.len() {
        let names = declared.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(", ");
        let (found, expected) = (found.len(), declared.len());
        return Err(Problem(format!("{of} has {found} columns: the manifest declares {expected} ({names})")));
    }
    let columns = found.into_iter().zip(declared);
    columns
        .map(|(found, declared)| {
            column(found, declared, rows)
                .map_err(|e| Problem(format!("column `{}` of {of} {e}", declared.name)))
        })
        .collect()
}

/// A batch that has to have `rows` rows.
pub(crate) fn batch(
    found: wit::Batch,
    declared: &[Column],
    rows: usize,
    of: &dyn fmt::Display,
) -> Result<Columns, Problem> {
    if found.rows as usize != rows {
        return Err(Problem(format!("{of} has {} rows: expected {rows}", found.rows)));
    }
    Ok(Columns::new(rows, columns(found.columns, declared, rows, of)?))
}

/// Cells, one a row.
pub(crate) fn cells(
    found: wit::Cells,
    declared: &[Column],
    rows: usize,
    of: &dyn fmt::Display,
) -> Result<Cells, Problem> {
    let present = bits(found.present, rows).map_err(|e| Problem(format!("`present` of {of} {e}")))?;
    Ok(Cells { present, values: batch(found.values, declared, rows, of)? })
}

/// Positions that start at 0, never fall and end at `end`: one more than there are runs.
pub(crate) fn offsets(found: &[u32], runs: usize, end: usize) -> Result<(), Problem> {
    if found.len() != runs + 1 {
        return Err(Problem(format!("has {} offsets: expected {} for {runs} rows", found.len(), runs + 1)));
    }
    if found[0] != 0 {
        return Err(Problem(format!("has offsets that start at {}: expected 0", found[0])));
    }
    // All pairs are looked at, which is a vector instruction for several; only then the one that is wrong.
    let ascending = found.windows(2).fold(true, |so_far, pair| so_far & (pair[0] <= pair[1]));
    if !ascending && let Some(at) = found.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(Problem(format!(
            "has offset {} of {}, below the one before it ({})",
            at + 1,
            found[at + 1],
            found[at]
        )));
    }
    if found[runs] as usize != end {
        return Err(Problem(format!("has offsets that end at {}: expected {end}", found[runs])));
    }
    Ok(())
}

fn column(found: wit::Column, declared: &Column, rows: usize) -> Result<ArrayRef, Problem> {
    if !found.children.is_empty() {
        return Err(Problem(format!("has {} child columns: expected none", found.children.len())));
    }
    let nulls = validity(found.validity, rows)?;
    if let Some(nulls) = nulls.as_ref().filter(|_| !declared.nullable) {
        let (count, first) =
            (nulls.null_count(), nulls.inner().iter().position(|valid| !valid).unwrap_or_default());
        return Err(Problem(format!(
            "has {count} missing values, the first in row {first}: it is declared as not nullable"
        )));
    }
    Ok(match (declared.data_type, found.values) {
        (DataType::Boolean, wit::Values::Bits(bytes)) => {
            Arc::new(BooleanArray::new(bits(bytes, rows)?, nulls))
        }
        (DataType::Int32, wit::Values::Int32(v)) => primitive::<types::Int32Type>(v, rows, nulls)?,
        (DataType::Date, wit::Values::Int32(v)) => primitive::<types::Date32Type>(v, rows, nulls)?,
        (DataType::Int64, wit::Values::Int64(v)) => primitive::<types::Int64Type>(v, rows, nulls)?,
        (DataType::Timestamp, wit::Values::Int64(v)) => Arc::new(
            PrimitiveArray::<types::TimestampMillisecondType>::new(numbers(v, rows)?, nulls)
                .with_timezone("UTC"),
        ),
        (DataType::Float32, wit::Values::Float32(v)) => primitive::<types::Float32Type>(v, rows, nulls)?,
        (DataType::Float64, wit::Values::Float64(v)) => primitive::<types::Float64Type>(v, rows, nulls)?,
        (DataType::Utf8, wit::Values::Var(v)) => text(v, rows, nulls)?,
        (DataType::Binary, wit::Values::Var(v)) => binary(v, rows, nulls)?,
        (data_type, values) => {
            let (found, expected) = (layout(&values), layout_of(data_type));
            return Err(Problem(format!(
                "has the layout `{found}`: a column of type {data_type} takes `{expected}`"
            )));
        }
    })
}

fn validity(found: Option<Vec<u8>>, rows: usize) -> Result<Option<NullBuffer>, Problem> {
    let Some(found) = found else { return Ok(None) };
    let nulls = NullBuffer::new(bits(found, rows).map_err(|e| Problem(format!("has a validity that {e}")))?);
    Ok(Some(nulls).filter(|n| n.null_count() > 0))
}

fn bits(found: Vec<u8>, rows: usize) -> Result<BooleanBuffer, Problem> {
    let (found_bytes, expected) = (found.len(), rows.div_ceil(8));
    if found_bytes != expected {
        return Err(Problem(format!("has {found_bytes} bytes of bits: expected {expected} for {rows} rows")));
    }
    Ok(BooleanBuffer::new(Buffer::from_vec(found), 0, rows))
}

fn primitive<T: types::ArrowPrimitiveType>(
    values: Vec<T::Native>,
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Problem> {
    Ok(Arc::new(PrimitiveArray::<T>::new(numbers(values, rows)?, nulls)))
}

fn numbers<N: ArrowNativeType>(values: Vec<N>, rows: usize) -> Result<ScalarBuffer<N>, Problem> {
    if values.len() != rows {
        return Err(Problem(format!("has {} values: expected {rows}", values.len())));
    }
    Ok(ScalarBuffer::from(values))
}

fn text(values: wit::VarValues, rows: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef, Problem> {
    offsets(&values.offsets, rows, values.bytes.len())?;
    let array = trusted::text(&values.offsets, values.bytes, nulls);
    array
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|row| Problem(format!("has bytes in row {row} that are not UTF-8")))
}

fn binary(values: wit::VarValues, rows: usize, nulls: Option<NullBuffer>) -> Result<ArrayRef, Problem> {
    offsets(&values.offsets, rows, values.bytes.len())?;
    Ok(Arc::new(trusted::binary(&values.offsets, values.bytes, nulls)))
}

fn layout(values: &wit::Values) -> &'static str {
    match values {
        wit::Values::Bits(_) => "bits",
        wit::Values::Int8(_) => "int8",
        wit::Values::Int16(_) => "int16",
        wit::Values::Int32(_) => "int32",
        wit::Values::Int64(_) => "int64",
        wit::Values::Float32(_) => "float32",
        wit::Values::Float64(_) => "float64",
        wit::Values::Fixed(_) => "fixed",
        wit::Values::Var(_) => "var",
        wit::Values::Offsets(_) => "offsets",
        wit::Values::Fields => "fields",
    }
}

fn layout_of(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "bits",
        DataType::Int32 | DataType::Date => "int32",
        DataType::Int64 | DataType::Timestamp => "int64",
        DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Utf8 | DataType::Binary => "var",
    }
}

//! Arrow columns as parameters of a call.
//!
//! Numbers are lent as they lie in Arrow's buffers, sliced or not. What lies differently is laid out anew in scratch
//! memory that is kept from call to call: text and bytes, which are views in the host and offsets and bytes at the
//! boundary, and bits, which may start within a byte in the host and start on one at the boundary.

use arrow_array::{Array, GenericByteViewArray, cast::AsArray, types};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use millstream_types::{Column, Columns, DataType};

use super::params::{BatchParam, ColumnParam, ValuesParam, VarParam};

/// Scratch memory for the columns of one batch.
#[derive(Default)]
pub(crate) struct BatchScratch {
    columns: Vec<ColumnScratch>,
}

#[derive(Default)]
struct ColumnScratch {
    validity: Vec<u8>,
    bits: Vec<u8>,
    offsets: Vec<u32>,
    bytes: Vec<u8>,
}

/// Columns that are not what the function declares, or too much at once. The plan rules the first out; it is checked
/// here because a guest cannot say anything about it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LowerError {
    #[error("{found} columns are sent where the manifest declares {expected}")]
    Count { found: usize, expected: usize },
    #[error("column `{column}` is sent as {found} where the manifest declares {expected}")]
    Type { column: String, found: String, expected: DataType },
    #[error("column `{column}` holds {bytes} bytes in one batch: at most {max} fit in a call", max = u32::MAX)]
    TooLarge { column: String, bytes: usize },
    #[error("{rows} rows in one batch: at most {max} fit in a call", max = u32::MAX)]
    TooManyRows { rows: usize },
}

impl BatchScratch {
    /// Lays out what cannot be lent; [`BatchScratch::columns`] lends the rest. Checks the columns against `declared`.
    pub(crate) fn prepare(&mut self, columns: &Columns, declared: &[Column]) -> Result<(), LowerError> {
        let (found, expected) = (columns.arrays.len(), declared.len());
        if found != expected {
            return Err(LowerError::Count { found, expected });
        }
        if u32::try_from(columns.rows).is_err() {
            return Err(LowerError::TooManyRows { rows: columns.rows });
        }
        if self.columns.len() < found {
            self.columns.resize_with(found, ColumnScratch::default);
        }
        for ((array, declared), scratch) in columns.arrays.iter().zip(declared).zip(&mut self.columns) {
            scratch.prepare(array, declared)?;
        }
        Ok(())
    }

    /// The prepared columns as they are passed.
    pub(crate) fn columns<'a>(&'a self, columns: &'a Columns, declared: &[Column]) -> Vec<ColumnParam<'a>> {
        let arrays = columns.arrays.iter().zip(declared).zip(&self.columns);
        arrays.map(|((array, declared), scratch)| scratch.param(array, declared.data_type)).collect()
    }
}

/// Passed columns as a batch.
pub(crate) fn batch<'a>(rows: usize, columns: &'a [ColumnParam<'a>]) -> BatchParam<'a> {
    BatchParam { rows: rows as u32, columns }
}

impl ColumnScratch {
    fn prepare(&mut self, array: &dyn Array, declared: &Column) -> Result<(), LowerError> {
        let mistyped = || LowerError::Type {
            column: declared.name.clone(),
            found: array.data_type().to_string(),
            expected: declared.data_type,
        };
        match declared.data_type {
            DataType::Boolean => {
                let array = array.as_boolean_opt().ok_or_else(mistyped)?;
                realign(array.values(), &mut self.bits);
            }
            DataType::Utf8 => {
                self.flatten(array.as_string_view_opt().ok_or_else(mistyped)?, &declared.name)?
            }
            DataType::Binary => {
                self.flatten(array.as_binary_view_opt().ok_or_else(mistyped)?, &declared.name)?
            }
            number if is_number(array, number) => {}
            _ => return Err(mistyped()),
        }
        if let Some(nulls) = some_nulls(array) {
            realign(nulls.inner(), &mut self.validity);
        }
        Ok(())
    }

    /// Puts the values of a view array one behind the other. A missing value takes no bytes.
    fn flatten<T: types::ByteViewType>(
        &mut self,
        array: &GenericByteViewArray<T>,
        name: &str,
    ) -> Result<(), LowerError> {
        self.offsets.clear();
        self.bytes.clear();
        self.offsets.reserve(array.len() + 1);
        self.offsets.push(0);
        let nulls = some_nulls(array);
        let buffers = array.data_buffers();
        for (row, &view) in array.views().iter().enumerate() {
            if nulls.is_none_or(|n| n.is_valid(row)) {
                let view_bytes = view.to_le_bytes();
                let length = view as u32 as usize;
                if length <= INLINE {
                    self.bytes.extend_from_slice(&view_bytes[4..4 + length]);
                } else {
                    let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
                    self.bytes.extend_from_slice(&buffers[buffer][offset..offset + length]);
                }
            }
            self.offsets.push(self.bytes.len() as u32);
        }
        let bytes = self.bytes.len();
        if u32::try_from(bytes).is_err() {
            return Err(LowerError::TooLarge { column: name.to_owned(), bytes });
        }
        Ok(())
    }

    fn param<'a>(&'a self, array: &'a dyn Array, data_type: DataType) -> ColumnParam<'a> {
        let values = match data_type {
            DataType::Boolean => ValuesParam::Bits(&self.bits),
            DataType::Int32 => ValuesParam::Int32(array.as_primitive::<types::Int32Type>().values()),
            DataType::Date => ValuesParam::Int32(array.as_primitive::<types::Date32Type>().values()),
            DataType::Int64 => ValuesParam::Int64(array.as_primitive::<types::Int64Type>().values()),
            DataType::Timestamp => {
                ValuesParam::Int64(array.as_primitive::<types::TimestampMillisecondType>().values())
            }
            DataType::Float32 => ValuesParam::Float32(array.as_primitive::<types::Float32Type>().values()),
            DataType::Float64 => ValuesParam::Float64(array.as_primitive::<types::Float64Type>().values()),
            DataType::Utf8 | DataType::Binary => {
                ValuesParam::Var(VarParam { offsets: &self.offsets, bytes: &self.bytes })
            }
        };
        ColumnParam { validity: some_nulls(array).map(|_| self.validity.as_slice()), values, children: &[] }
    }
}

/// Bits from the start of a byte on, those behind the last row clear.
pub(crate) fn realign(bits: &BooleanBuffer, into: &mut Vec<u8>) {
    into.clear();
    for word in bits.bit_chunks().iter_padded() {
        into.extend_from_slice(&word.to_le_bytes());
    }
    into.truncate(bits.len().div_ceil(8));
}

/// The nulls of a column that has at least one.
fn some_nulls(array: &dyn Array) -> Option<&NullBuffer> {
    array.nulls().filter(|n| n.null_count() > 0)
}

fn is_number(array: &dyn Array, data_type: DataType) -> bool {
    match data_type {
        DataType::Int32 => array.as_primitive_opt::<types::Int32Type>().is_some(),
        DataType::Date => array.as_primitive_opt::<types::Date32Type>().is_some(),
        DataType::Int64 => array.as_primitive_opt::<types::Int64Type>().is_some(),
        DataType::Timestamp => array.as_primitive_opt::<types::TimestampMillisecondType>().is_some(),
        DataType::Float32 => array.as_primitive_opt::<types::Float32Type>().is_some(),
        DataType::Float64 => array.as_primitive_opt::<types::Float64Type>().is_some(),
        DataType::Boolean | DataType::Utf8 | DataType::Binary => false,
    }
}

/// The longest value that a view holds itself, without a buffer.
const INLINE: usize = 12;

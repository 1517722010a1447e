//! Arrow columns as parameters of a call.
//!
//! Numbers are lent as they lie in Arrow's buffers, sliced or not; text and bytes are views in the host and go into the
//! guest one behind the other, straight from where the views show (`values.rs`). What else lies differently is laid out
//! anew in scratch memory that is kept from call to call: the offsets of text and bytes, and bits, which may start
//! within a byte in the host and start on one at the boundary.

use arrow_array::{Array, GenericByteViewArray, cast::AsArray, types};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use millstream_types::{Column, Columns, DataType};

use super::{
    params::{BatchParam, ColumnParam, ValuesParam, VarParam},
    values::{Values, length},
};

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
                self.measure(array.as_string_view_opt().ok_or_else(mistyped)?, &declared.name)?
            }
            DataType::Binary => {
                self.measure(array.as_binary_view_opt().ok_or_else(mistyped)?, &declared.name)?
            }
            number if is_number(array, number) => {}
            _ => return Err(mistyped()),
        }
        if let Some(nulls) = some_nulls(array) {
            realign(nulls.inner(), &mut self.validity);
        }
        Ok(())
    }

    /// Where the values of a view array end once they lie one behind the other. A missing value takes no bytes.
    fn measure<T: types::ByteViewType>(
        &mut self,
        array: &GenericByteViewArray<T>,
        name: &str,
    ) -> Result<(), LowerError> {
        let mut end = 0_u64;
        let mut grow = |length: usize| {
            end += length as u64;
            end as u32
        };
        self.offsets.clear();
        self.offsets.push(0);
        match some_nulls(array) {
            None => self.offsets.extend(array.views().iter().map(|&view| grow(length(view)))),
            Some(nulls) => {
                let views = array.views().iter().zip(nulls);
                self.offsets.extend(views.map(|(&view, valid)| grow(if valid { length(view) } else { 0 })));
            }
        }
        match u32::try_from(end) {
            Ok(_) => Ok(()),
            Err(_) => Err(LowerError::TooLarge { column: name.to_owned(), bytes: end as usize }),
        }
    }

    fn var<'a, T: types::ByteViewType>(&'a self, array: &'a GenericByteViewArray<T>) -> ValuesParam<'a> {
        let bytes = self.offsets.last().map_or(0, |&end| end as usize);
        let nulls = some_nulls(array);
        ValuesParam::Var(VarParam {
            offsets: &self.offsets,
            bytes: Values::new(array.views(), nulls, array.data_buffers(), bytes),
        })
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
            DataType::Utf8 => self.var(array.as_string_view()),
            DataType::Binary => self.var(array.as_binary_view()),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, StringViewArray, UInt32Array};
    use arrow_select::take::take;

    use super::*;

    fn lowered(array: &ArrayRef, data_type: DataType) -> (Option<Vec<u8>>, Vec<u32>, Vec<u8>) {
        let declared = [Column { name: "c".to_owned(), data_type, nullable: true }];
        let columns = Columns::new(array.len(), vec![array.clone()]);
        let mut scratch = BatchScratch::default();
        // A larger batch first: nothing of it may be left.
        let larger: ArrayRef =
            Arc::new(StringViewArray::from_iter_values(["x".repeat(5000), "y".repeat(5000)]));
        if data_type == DataType::Utf8 {
            scratch.prepare(&Columns::new(2, vec![larger]), &declared).expect("text");
        }
        scratch.prepare(&columns, &declared).expect("the declared type");
        let params = scratch.columns(&columns, &declared);
        let validity = params[0].validity.map(<[u8]>::to_vec);
        match params[0].values {
            ValuesParam::Var(VarParam { offsets, bytes }) => (validity, offsets.to_vec(), bytes.to_vec()),
            ValuesParam::Bits(bits) => (validity, vec![], bits.to_vec()),
            _ => panic!("another layout"),
        }
    }

    fn text(array: &ArrayRef) -> Vec<String> {
        let (_, offsets, bytes) = lowered(array, DataType::Utf8);
        let values = offsets.windows(2).map(|p| &bytes[p[0] as usize..p[1] as usize]);
        values.map(|v| String::from_utf8(v.to_vec()).expect("text")).collect()
    }

    #[test]
    fn text_is_flattened_whatever_its_order_in_the_buffers() {
        let values = [
            "a value of more than twelve",
            "short",
            "",
            "exactly 12 b",
            "exactly 13 by",
            "another long value",
        ];
        let array: ArrayRef = Arc::new(StringViewArray::from_iter_values(values));
        assert_eq!(text(&array), values);
        assert_eq!(text(&array.slice(1, 4)), values[1..5]);
        let picked = take(&array, &UInt32Array::from(vec![5, 0, 0, 4, 1, 5]), None).expect("in range");
        assert_eq!(text(&picked), [5, 0, 0, 4, 1, 5].map(|i: usize| values[i]));
        assert_eq!(text(&array.slice(0, 0)), [""; 0]);
    }

    #[test]
    fn missing_values_take_no_bytes_even_where_a_view_shows_some() {
        let array =
            StringViewArray::from_iter_values(["long enough for a buffer", "b", "another long enough one"]);
        let (views, buffers, _) = array.into_parts();
        let nulls = NullBuffer::from(vec![false, true, false]);
        let array: ArrayRef = Arc::new(StringViewArray::new(views, buffers, Some(nulls)));
        assert_eq!(lowered(&array, DataType::Utf8), (Some(vec![0b010]), vec![0, 0, 1, 1], b"b".to_vec()));
    }

    #[test]
    fn bits_start_on_a_byte_and_end_in_zeros() {
        let bits: Vec<Option<bool>> = (0..20).map(|i| (i % 7 != 3).then_some(i % 3 == 0)).collect();
        let array: ArrayRef = Arc::new(BooleanArray::from(bits.clone()));
        for (offset, length) in [(0, 20), (3, 9), (8, 12), (19, 1), (5, 0)] {
            let (validity, _, values) = lowered(&array.slice(offset, length), DataType::Boolean);
            let mut expected = (vec![0; length.div_ceil(8)], vec![0; length.div_ceil(8)]);
            for (i, bit) in bits[offset..offset + length].iter().enumerate() {
                expected.0[i / 8] |= u8::from(bit.is_some()) << (i % 8);
                expected.1[i / 8] |= u8::from(bit.unwrap_or(false)) << (i % 8);
            }
            let any_missing = bits[offset..offset + length].contains(&None);
            assert_eq!(validity, any_missing.then_some(expected.0), "{offset} {length}");
            assert_eq!(values, expected.1, "{offset} {length}");
        }
    }
}

//! Arrow arrays of the types that columns have.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryViewArray, PrimitiveArray, cast::AsArray, types::*};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use millstream_types::DataType;

/// 32-bit values as the column's type has them.
pub(crate) fn int32_array(
    data_type: DataType,
    values: ScalarBuffer<i32>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    match data_type {
        DataType::Date => Arc::new(PrimitiveArray::<Date32Type>::new(values, nulls)),
        _ => Arc::new(PrimitiveArray::<Int32Type>::new(values, nulls)),
    }
}

/// 64-bit values as the column's type has them.
pub(crate) fn int64_array(
    data_type: DataType,
    values: ScalarBuffer<i64>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    match data_type {
        DataType::Timestamp => {
            let times = PrimitiveArray::<TimestampMillisecondType>::new(values, nulls);
            Arc::new(times.with_data_type(data_type.to_arrow()))
        }
        _ => Arc::new(PrimitiveArray::<Int64Type>::new(values, nulls)),
    }
}

/// A view array as one of text where the column is.
pub(crate) fn view_array(data_type: DataType, bytes: BinaryViewArray) -> ArrayRef {
    match data_type {
        DataType::Utf8 => Arc::new(bytes.to_string_view().expect("only text is written to a column of text")),
        _ => Arc::new(bytes),
    }
}

/// One value of a view array; empty if it is null.
pub(crate) fn bytes_at(array: &ArrayRef, row: usize) -> &[u8] {
    if array.is_null(row) {
        return &[];
    }
    match array.data_type() {
        ArrowType::Utf8View => array.as_string_view().value(row).as_bytes(),
        _ => array.as_binary_view().value(row),
    }
}

//! Columns that the host gives a guest as the result of an import, by value: buffers that nobody else holds go over
//! without a copy.

use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, GenericByteViewArray, cast::AsArray, types};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType as ArrowType, TimeUnit};
use millstream_types::{Cells, Columns};

use super::lower::realign;
use crate::bindings::types as wit;

/// Cells.
pub(crate) fn cells(cells: Cells) -> wit::Cells {
    let mut present = Vec::new();
    realign(&cells.present, &mut present);
    wit::Cells { present, values: batch(cells.values) }
}

/// Columns as a batch.
pub(crate) fn batch(columns: Columns) -> wit::Batch {
    wit::Batch { rows: columns.rows as u32, columns: columns.arrays.into_iter().map(column).collect() }
}

/// Bytes that a batch holds.
pub(crate) fn size(batch: &wit::Batch) -> usize {
    let column = |c: &wit::Column| {
        c.validity.as_ref().map_or(0, Vec::len)
            + match &c.values {
                wit::Values::Bits(v) => v.len(),
                wit::Values::Int8(v) => v.len(),
                wit::Values::Int16(v) => size_of_val(v.as_slice()),
                wit::Values::Int32(v) => size_of_val(v.as_slice()),
                wit::Values::Int64(v) => size_of_val(v.as_slice()),
                wit::Values::Float32(v) => size_of_val(v.as_slice()),
                wit::Values::Float64(v) => size_of_val(v.as_slice()),
                wit::Values::Fixed(v) => v.bytes.len(),
                wit::Values::Var(v) => size_of_val(v.offsets.as_slice()) + v.bytes.len(),
                wit::Values::Offsets(v) => size_of_val(v.as_slice()),
                wit::Values::Fields => 0,
            }
    };
    batch.columns.iter().map(column).sum()
}

fn column(array: ArrayRef) -> wit::Column {
    let validity = array.nulls().filter(|n| n.null_count() > 0).map(|nulls| {
        let mut bytes = Vec::new();
        realign(nulls.inner(), &mut bytes);
        bytes
    });
    let values = match array.data_type() {
        ArrowType::Boolean => {
            let mut bytes = Vec::new();
            realign(array.as_boolean().values(), &mut bytes);
            wit::Values::Bits(bytes)
        }
        ArrowType::Int32 => wit::Values::Int32(numbers::<types::Int32Type>(array)),
        ArrowType::Date32 => wit::Values::Int32(numbers::<types::Date32Type>(array)),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
            wit::Values::Int64(numbers::<types::TimestampMillisecondType>(array))
        }
        ArrowType::Float32 => wit::Values::Float32(numbers::<types::Float32Type>(array)),
        ArrowType::Float64 => wit::Values::Float64(numbers::<types::Float64Type>(array)),
        ArrowType::Utf8View => wit::Values::Var(bytes(array.as_string_view())),
        ArrowType::BinaryView => wit::Values::Var(bytes(array.as_binary_view())),
        ArrowType::Int64 => wit::Values::Int64(numbers::<types::Int64Type>(array)),
        other => unreachable!("state has no columns of type {other}: it is made of a manifest's"),
    };
    wit::Column { validity, values, children: Vec::new() }
}

fn numbers<T: ArrowPrimitiveType>(array: ArrayRef) -> Vec<T::Native> {
    let typed = array.as_primitive::<T>().clone();
    drop(array);
    let (_, values, _) = typed.into_parts();
    values.into_inner().into_vec().unwrap_or_else(|shared| shared.typed_data().to_vec())
}

fn bytes<T: types::ByteViewType>(array: &GenericByteViewArray<T>) -> wit::VarValues {
    let mut offsets = Vec::with_capacity(array.len() + 1);
    let mut bytes = Vec::with_capacity(array.total_buffer_bytes_used());
    offsets.push(0);
    for row in 0..array.len() {
        if array.nulls().is_none_or(|n: &NullBuffer| n.is_valid(row)) {
            let value: &T::Native = array.value(row);
            bytes.extend_from_slice(value.as_ref());
        }
        offsets.push(bytes.len() as u32);
    }
    wit::VarValues { offsets, bytes }
}

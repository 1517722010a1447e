//! One column of a state, by slot: what a gather reads and a scatter writes.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, PrimitiveArray, builder::BinaryViewBuilder,
    cast::AsArray, types::*,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use millstream_types::{Column, DataType};
use smallvec::SmallVec;

use crate::bits::Bits;

/// The values of one column by slot. A slot that has not been written reads as zero, false or empty.
#[derive(Clone, Debug)]
pub(crate) struct ColumnStore {
    data_type: DataType,
    values: Values,
    /// Set where the value is null.
    nulls: Bits,
}

#[derive(Clone, Debug)]
enum Values {
    Boolean(Bits),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    /// Text and bytes; short ones lie in place, and a slot's memory is used again by its next value.
    Bytes(Vec<SmallVec<[u8; 16]>>),
}

impl ColumnStore {
    pub(crate) fn new(column: &Column) -> Self {
        let values = match column.data_type {
            DataType::Boolean => Values::Boolean(Bits::default()),
            DataType::Int32 | DataType::Date => Values::Int32(Vec::new()),
            DataType::Int64 | DataType::Timestamp => Values::Int64(Vec::new()),
            DataType::Float32 => Values::Float32(Vec::new()),
            DataType::Float64 => Values::Float64(Vec::new()),
            DataType::Utf8 | DataType::Binary => Values::Bytes(Vec::new()),
        };
        Self { data_type: column.data_type, values, nulls: Bits::default() }
    }

    /// Makes room for slots below `slots`.
    pub(crate) fn grow(&mut self, slots: usize) {
        match &mut self.values {
            Values::Boolean(_) => {}
            Values::Int32(v) => grow(v, slots),
            Values::Int64(v) => grow(v, slots),
            Values::Float32(v) => grow(v, slots),
            Values::Float64(v) => grow(v, slots),
            Values::Bytes(v) => grow(v, slots),
        }
    }

    /// The values of some slots, for which there is room.
    pub(crate) fn gather(&self, slots: &[u32]) -> ArrayRef {
        let nulls = self.gather_nulls(slots);
        match &self.values {
            Values::Boolean(bits) => Arc::new(BooleanArray::new(bits.gather(slots), nulls)),
            Values::Int32(v) => int32_array(self.data_type, pick(v, slots), nulls),
            Values::Int64(v) => int64_array(self.data_type, pick(v, slots), nulls),
            Values::Float32(v) => Arc::new(PrimitiveArray::<Float32Type>::new(pick(v, slots), nulls)),
            Values::Float64(v) => Arc::new(PrimitiveArray::<Float64Type>::new(pick(v, slots), nulls)),
            Values::Bytes(v) => self.bytes(slots.iter().map(|&s| v[s as usize].as_slice()), nulls),
        }
    }

    /// Sets slot `slots[i]` to value `rows[i]` of `array`, in order.
    pub(crate) fn scatter(
        &mut self,
        slots: &[u32],
        array: &ArrayRef,
        rows: impl Iterator<Item = usize> + Clone,
    ) {
        self.scatter_nulls(slots, array, rows.clone());
        match &mut self.values {
            Values::Boolean(bits) => {
                let source = array.as_boolean().values();
                slots.iter().zip(rows).for_each(|(&slot, row)| _ = bits.set(slot, source.value(row)));
            }
            Values::Int32(v) if self.data_type == DataType::Date => put::<Date32Type>(v, slots, array, rows),
            Values::Int32(v) => put::<Int32Type>(v, slots, array, rows),
            Values::Int64(v) if self.data_type == DataType::Timestamp => {
                put::<TimestampMillisecondType>(v, slots, array, rows);
            }
            Values::Int64(v) => put::<Int64Type>(v, slots, array, rows),
            Values::Float32(v) => put::<Float32Type>(v, slots, array, rows),
            Values::Float64(v) => put::<Float64Type>(v, slots, array, rows),
            Values::Bytes(v) => {
                for (&slot, row) in slots.iter().zip(rows) {
                    let bytes = &mut v[slot as usize];
                    bytes.clear();
                    bytes.extend_from_slice(bytes_at(array, row));
                }
            }
        }
    }

    /// Sets a slot back to what it was before it was written, so that nothing of a key reaches the next one.
    pub(crate) fn clear(&mut self, slot: u32) {
        self.nulls.set(slot, false);
        match &mut self.values {
            Values::Boolean(bits) => _ = bits.set(slot, false),
            Values::Int32(v) => v[slot as usize] = 0,
            Values::Int64(v) => v[slot as usize] = 0,
            Values::Float32(v) => v[slot as usize] = 0.0,
            Values::Float64(v) => v[slot as usize] = 0.0,
            Values::Bytes(v) => v[slot as usize] = SmallVec::new(),
        }
    }

    fn gather_nulls(&self, slots: &[u32]) -> Option<NullBuffer> {
        if self.nulls.count() == 0 {
            return None;
        }
        let valid = BooleanBuffer::collect_bool(slots.len(), |i| !self.nulls.get(slots[i]));
        Some(NullBuffer::new(valid)).filter(|n| n.null_count() > 0)
    }

    fn scatter_nulls(&mut self, slots: &[u32], array: &ArrayRef, rows: impl Iterator<Item = usize>) {
        if array.null_count() > 0 || self.nulls.count() > 0 {
            slots.iter().zip(rows).for_each(|(&slot, row)| _ = self.nulls.set(slot, array.is_null(row)));
        }
    }

    fn bytes<'a>(&self, values: impl Iterator<Item = &'a [u8]>, nulls: Option<NullBuffer>) -> ArrayRef {
        let mut builder = BinaryViewBuilder::with_capacity(values.size_hint().0);
        for (i, value) in values.enumerate() {
            builder.append_option(nulls.as_ref().is_none_or(|n| n.is_valid(i)).then_some(value));
        }
        view_array(self.data_type, builder.finish())
    }
}

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

fn grow<T: Default>(values: &mut Vec<T>, slots: usize) {
    if slots > values.len() {
        values.resize_with(slots, T::default);
    }
}

fn pick<T: ArrowNativeType>(values: &[T], slots: &[u32]) -> ScalarBuffer<T> {
    slots.iter().map(|&slot| values[slot as usize]).collect::<Vec<_>>().into()
}

fn put<T: ArrowPrimitiveType>(
    values: &mut [T::Native],
    slots: &[u32],
    array: &ArrayRef,
    rows: impl Iterator<Item = usize>,
) {
    let source = array.as_primitive::<T>().values();
    slots.iter().zip(rows).for_each(|(&slot, row)| values[slot as usize] = source[row]);
}

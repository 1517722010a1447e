//! Rows of columns by slot: what a gather reads and a scatter writes.
//!
//! The values of a slot that have a fixed width lie side by side, the widest first, so that all of them are mostly in
//! one cache line, whatever the number of columns. Text and bytes lie elsewhere, short ones in place.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, PrimitiveArray, builder::BinaryViewBuilder, cast::AsArray, types::*,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, NullBuffer, ScalarBuffer};
use millstream_types::{Column, Columns, DataType};
use smallvec::SmallVec;

use crate::{
    arrays::{bytes_at, int32_array, int64_array, view_array},
    bits::Bits,
    prefetch::prefetch,
    slot_store::{SlotStore, WindowStore},
};

/// A row a slot. A value that has not been written reads as zero, false or empty.
#[derive(Clone, Debug)]
pub(crate) struct RowStore {
    columns: Vec<StoredColumn>,
    /// The values of fixed width, `width` bytes a slot, little endian.
    fixed: Vec<u8>,
    width: usize,
    slots: usize,
    /// What text and bytes take that do not lie in place.
    elsewhere: usize,
}

#[derive(Clone, Debug)]
struct StoredColumn {
    data_type: DataType,
    place: Place,
    /// Set where the value is null.
    nulls: Bits,
}

/// Where the values of a column lie.
#[derive(Clone, Debug)]
enum Place {
    /// From this byte of a slot on.
    Fixed(usize),
    /// Text and bytes; a slot's memory is used again by its next value.
    Variable(Vec<SmallVec<[u8; 16]>>),
}

impl RowStore {
    /// An empty store of rows of these columns.
    pub(crate) fn new(columns: &[Column]) -> Self {
        let mut stored: Vec<StoredColumn> = columns.iter().map(StoredColumn::new).collect();
        let mut width = 0;
        for size in [8, 4, 1] {
            for column in stored.iter_mut().filter(|c| width_of(c.data_type) == size) {
                column.place = Place::Fixed(width);
                width += size;
            }
        }
        Self { columns: stored, fixed: Vec::new(), width, slots: 0, elsewhere: 0 }
    }

    /// Makes room for slots below `slots`; before that none of them may be named.
    pub(crate) fn grow(&mut self, slots: usize) {
        if slots <= self.slots {
            return;
        }
        self.slots = slots;
        self.fixed.resize(slots * self.width, 0);
        for column in &mut self.columns {
            if let Place::Variable(values) = &mut column.place {
                values.resize_with(slots, SmallVec::new);
            }
        }
    }

    /// What a slot takes, apart from text and bytes that do not lie in place.
    pub(crate) fn bytes_per_slot(&self) -> usize {
        let variable = self.columns.iter().filter(|c| matches!(c.place, Place::Variable(_))).count();
        self.width + variable * size_of::<SmallVec<[u8; 16]>>()
    }

    /// What text and bytes take that do not lie in place.
    pub(crate) fn bytes_elsewhere(&self) -> usize {
        self.elsewhere
    }

    /// The rows of some slots.
    pub(crate) fn read(&self, slots: &[u32]) -> Columns {
        Columns::new(slots.len(), self.columns.iter().map(|column| self.gather(column, slots)).collect())
    }

    /// Appends the row of a slot as [`crate::row_codec`] writes it: what lies here is what is written there.
    pub(crate) fn encode(&self, slot: u32, out: &mut Vec<u8>) {
        let (bits, row) = (out.len(), slot as usize * self.width);
        out.resize(bits + self.columns.len().div_ceil(8), 0);
        for (i, column) in self.columns.iter().enumerate() {
            if column.nulls.count() > 0 && column.nulls.get(slot) {
                out[bits + i / 8] |= 1 << (i % 8);
                continue;
            }
            match &column.place {
                Place::Fixed(at) => {
                    let start = row + at;
                    out.extend_from_slice(&self.fixed[start..start + width_of(column.data_type)]);
                }
                Place::Variable(values) => {
                    let bytes = values[slot as usize].as_slice();
                    out.extend((bytes.len() as u32).to_le_bytes());
                    out.extend_from_slice(bytes);
                }
            }
        }
    }

    /// Asks for the memory of the rows of some slots, which are about to be read.
    pub(crate) fn prefetch(&self, slots: &[u32]) {
        let fixed = |slot: u32| slot as usize * self.width;
        slots.iter().for_each(|&slot| prefetch(&self.fixed, fixed(slot)));
        let variable = self.columns.iter().filter_map(|column| match &column.place {
            Place::Variable(values) => Some(values),
            Place::Fixed(_) => None,
        });
        for values in variable {
            slots.iter().for_each(|&slot| prefetch(values, slot as usize));
            // Where the bytes are is known by now of the first of them.
            for &slot in slots {
                let bytes = values[slot as usize].as_slice();
                (0..bytes.len()).step_by(LINE).for_each(|at| prefetch(bytes, at));
            }
        }
    }

    /// Sets the row of slot `slots[i]` to row `i`. Of a slot named twice the later row stays.
    pub(crate) fn write(&mut self, slots: &[u32], rows: &Columns) {
        self.write_rows(slots, rows, 0..slots.len());
    }

    /// Sets the row of slot `slots[i]` to row `rows[i]`.
    pub(crate) fn write_rows(
        &mut self,
        slots: &[u32],
        values: &Columns,
        rows: impl Iterator<Item = usize> + Clone,
    ) {
        for (column, array) in self.columns.iter_mut().zip(&values.arrays) {
            column.scatter_nulls(slots, array, rows.clone());
            match &mut column.place {
                Place::Fixed(at) => {
                    let fixed = Fixed { bytes: &mut self.fixed[..], width: self.width, at: *at };
                    fixed.scatter(column.data_type, slots, array, rows.clone());
                }
                Place::Variable(values) => {
                    for (&slot, row) in slots.iter().zip(rows.clone()) {
                        let bytes = &mut values[slot as usize];
                        let before = spilled(bytes);
                        bytes.clear();
                        bytes.extend_from_slice(bytes_at(array, row));
                        self.elsewhere = self.elsewhere + spilled(bytes) - before;
                    }
                }
            }
        }
    }

    /// Sets a slot back to what it was before it was written, so that nothing of a key reaches the next one.
    pub(crate) fn remove(&mut self, slot: u32) {
        let start = slot as usize * self.width;
        self.fixed[start..start + self.width].fill(0);
        for column in &mut self.columns {
            if column.nulls.count() > 0 {
                column.nulls.set(slot, false);
            }
            if let Place::Variable(values) = &mut column.place {
                self.elsewhere -= spilled(&std::mem::take(&mut values[slot as usize]));
            }
        }
    }

    fn gather(&self, column: &StoredColumn, slots: &[u32]) -> ArrayRef {
        let nulls = column.gather_nulls(slots);
        match &column.place {
            Place::Fixed(at) => {
                let fixed = Fixed { bytes: &self.fixed[..], width: self.width, at: *at };
                fixed.gather(column.data_type, slots, nulls)
            }
            Place::Variable(values) => {
                let mut builder = BinaryViewBuilder::with_capacity(slots.len());
                for (i, &slot) in slots.iter().enumerate() {
                    let valid = nulls.as_ref().is_none_or(|n| n.is_valid(i));
                    builder.append_option(valid.then_some(values[slot as usize].as_slice()));
                }
                view_array(column.data_type, builder.finish())
            }
        }
    }
}

impl SlotStore for RowStore {
    fn new(columns: &[Column]) -> Self {
        RowStore::new(columns)
    }

    fn grow(&mut self, slots: usize) {
        RowStore::grow(self, slots);
    }

    fn remove(&mut self, slot: u32) {
        RowStore::remove(self, slot);
    }
}

impl WindowStore for RowStore {
    const IN_PIECES: bool = false;

    fn bytes(&self) -> (usize, usize) {
        (self.bytes_per_slot(), self.elsewhere)
    }

    fn clear(&mut self) {
        self.slots = 0;
        self.elsewhere = 0;
        self.fixed.clear();
        for column in &mut self.columns {
            column.nulls = Bits::default();
            if let Place::Variable(values) = &mut column.place {
                values.clear();
            }
        }
    }

    fn copy_from(&mut self, other: &Self) {
        self.columns.clone_from(&other.columns);
        self.fixed.clone_from(&other.fixed);
        self.slots = other.slots;
        let variable = self.columns.iter().filter_map(|column| match &column.place {
            Place::Variable(values) => Some(values),
            Place::Fixed(_) => None,
        });
        self.elsewhere = variable.flatten().map(spilled).sum();
    }
}

impl StoredColumn {
    fn new(column: &Column) -> Self {
        Self { data_type: column.data_type, place: Place::Variable(Vec::new()), nulls: Bits::default() }
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
}

/// What a value takes that does not lie in place.
#[inline]
fn spilled(value: &SmallVec<[u8; 16]>) -> usize {
    if value.spilled() { value.capacity() } else { 0 }
}

/// One column among the values of fixed width.
struct Fixed<B> {
    bytes: B,
    width: usize,
    at: usize,
}

impl Fixed<&[u8]> {
    fn gather(&self, data_type: DataType, slots: &[u32], nulls: Option<NullBuffer>) -> ArrayRef {
        match data_type {
            DataType::Int32 | DataType::Date => {
                int32_array(data_type, self.pick(slots, i32::from_le_bytes), nulls)
            }
            DataType::Int64 | DataType::Timestamp => {
                int64_array(data_type, self.pick(slots, i64::from_le_bytes), nulls)
            }
            DataType::Float32 => {
                let values = self.pick(slots, f32::from_le_bytes);
                Arc::new(PrimitiveArray::<Float32Type>::new(values, nulls))
            }
            DataType::Float64 => {
                let values = self.pick(slots, f64::from_le_bytes);
                Arc::new(PrimitiveArray::<Float64Type>::new(values, nulls))
            }
            DataType::Boolean => {
                let value = |i: usize| self.bytes[slots[i] as usize * self.width + self.at] != 0;
                Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(slots.len(), value), nulls))
            }
            DataType::Utf8 | DataType::Binary => unreachable!("text and bytes have no fixed width"),
        }
    }

    fn pick<T: ArrowNativeType, const N: usize>(
        &self,
        slots: &[u32],
        decode: impl Fn([u8; N]) -> T,
    ) -> ScalarBuffer<T> {
        let value = |&slot: &u32| {
            let start = slot as usize * self.width + self.at;
            let bytes: &[u8; N] = self.bytes[start..start + N].try_into().expect("a slice of a fixed length");
            decode(*bytes)
        };
        slots.iter().map(value).collect::<Vec<T>>().into()
    }
}

impl Fixed<&mut [u8]> {
    fn scatter(
        self,
        data_type: DataType,
        slots: &[u32],
        array: &ArrayRef,
        rows: impl Iterator<Item = usize>,
    ) {
        match data_type {
            DataType::Int32 => self.put::<Int32Type, 4>(slots, array, rows, i32::to_le_bytes),
            DataType::Date => self.put::<Date32Type, 4>(slots, array, rows, i32::to_le_bytes),
            DataType::Int64 => self.put::<Int64Type, 8>(slots, array, rows, i64::to_le_bytes),
            DataType::Timestamp => {
                self.put::<TimestampMillisecondType, 8>(slots, array, rows, i64::to_le_bytes);
            }
            DataType::Float32 => self.put::<Float32Type, 4>(slots, array, rows, f32::to_le_bytes),
            DataType::Float64 => self.put::<Float64Type, 8>(slots, array, rows, f64::to_le_bytes),
            DataType::Boolean => {
                let values = array.as_boolean().values();
                for (&slot, row) in slots.iter().zip(rows) {
                    self.bytes[slot as usize * self.width + self.at] = u8::from(values.value(row));
                }
            }
            DataType::Utf8 | DataType::Binary => unreachable!("text and bytes have no fixed width"),
        }
    }

    fn put<T: ArrowPrimitiveType, const N: usize>(
        self,
        slots: &[u32],
        array: &ArrayRef,
        rows: impl Iterator<Item = usize>,
        encode: impl Fn(T::Native) -> [u8; N],
    ) {
        let values = array.as_primitive::<T>().values();
        for (&slot, row) in slots.iter().zip(rows) {
            let start = slot as usize * self.width + self.at;
            self.bytes[start..start + N].copy_from_slice(&encode(values[row]));
        }
    }
}

/// Bytes of memory that come together.
const LINE: usize = 64;

/// The bytes that a value takes in a slot; 0 if that varies.
fn width_of(data_type: DataType) -> usize {
    match data_type {
        DataType::Boolean => 1,
        DataType::Int32 | DataType::Date | DataType::Float32 => 4,
        DataType::Int64 | DataType::Timestamp | DataType::Float64 => 8,
        DataType::Utf8 | DataType::Binary => 0,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        BinaryViewArray, Float64Array, Int32Array, StringViewArray, TimestampMillisecondArray,
    };

    use super::*;
    use crate::row_codec::RowCodec;

    fn all_types() -> Vec<Column> {
        use DataType::*;
        let types = [Boolean, Int32, Int64, Float32, Float64, Date, Timestamp, Utf8, Binary];
        let column = |data_type: DataType| Column { name: data_type.to_string(), data_type, nullable: true };
        types.map(column).into()
    }

    fn rows() -> Columns {
        let floats = [Some(1.5), None, Some(-2.5)];
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(Int32Array::from(vec![None, Some(-7), Some(7)])),
            Arc::new(PrimitiveArray::<Int64Type>::from(vec![Some(i64::MIN), Some(1), None])),
            Arc::new(
                floats.map(|f| f.map(|f| f as f32)).into_iter().collect::<PrimitiveArray<Float32Type>>(),
            ),
            Arc::new(Float64Array::from(floats.to_vec())),
            Arc::new(PrimitiveArray::<Date32Type>::from(vec![Some(9), None, Some(-9)])),
            Arc::new(TimestampMillisecondArray::from(vec![None, Some(5), Some(-5)]).with_timezone("UTC")),
            Arc::new(StringViewArray::from(vec![Some(""), Some("longer than a view has room for"), None])),
            Arc::new(BinaryViewArray::from(vec![Some(&b"\0"[..]), None, Some(b"bytes")])),
        ];
        Columns::new(3, arrays)
    }

    #[test]
    fn what_is_written_is_read() {
        let mut store = RowStore::new(&all_types());
        store.grow(10);
        store.write(&[7, 2, 4], &rows());
        assert_eq!(store.read(&[7, 2, 4]).arrays, rows().arrays);
        store.write_rows(&[2], &rows(), [2].into_iter());
        let (last, read) = (rows().slice(2, 1), store.read(&[2]));
        assert_eq!(read.arrays, last.arrays, "a slot is used again");
        assert_eq!(store.read(&[7]).arrays, rows().slice(0, 1).arrays, "its neighbours stay");
    }

    #[test]
    fn nothing_is_left_of_what_was_removed() {
        let mut store = RowStore::new(&all_types());
        store.grow(3);
        let empty = store.read(&[0, 1, 2]).arrays;
        store.write(&[0, 1, 2], &rows());
        (0..3).for_each(|slot| store.remove(slot));
        assert_eq!(store.read(&[0, 1, 2]).arrays, empty);
        store.write(&[0, 1, 2], &rows());
        store.clear();
        store.grow(3);
        assert_eq!(store.read(&[0, 1, 2]).arrays, empty);
    }

    #[test]
    fn rows_go_through_a_snapshot() {
        use crate::snapshot::Stored;

        let (columns, mut bytes, mut slots) = (all_types(), Vec::new(), Vec::new());
        let codec = RowCodec::new(&columns);
        let [mut store, mut restored] = [RowStore::new(&columns), RowStore::new(&columns)];
        store.grow(10);
        RowStore::write(&mut store, &[7, 2, 4], &rows());
        Stored::write(&store, &[2, 4, 7], &codec, &mut bytes, |slot, out| out.push(slot as u8));
        let (mut entries, mut left) = (RowStore::entries(&codec), &bytes[..]);
        while let Some((&slot, row)) = left.split_first() {
            left = row;
            <RowStore as Stored>::read(&mut entries, &mut left).expect("just written");
            slots.push(u32::from(slot));
        }
        restored.grow(10);
        restored.put(&slots, entries);
        assert_eq!((slots, restored.read(&[7, 2, 4]).arrays), (vec![2, 4, 7], rows().arrays));
    }
}

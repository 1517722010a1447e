//! Rows as bytes: how lists and maps keep theirs.
//!
//! | part | bytes |
//! |---|---|
//! | null bits | one a column, least significant first, set where the value is null; whole bytes |
//! | then each value that is not null, in the order of the columns | |
//! | boolean | `00` or `01` |
//! | number, date, timestamp | little endian, as wide as the type |
//! | text, bytes | length as a little-endian `u32`, then the bytes |
//!
//! A row says where it ends but not what it is: whoever stores rows stores the columns and [`ROW_FORMAT`] with them.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, StringViewArray, builder::*, cast::AsArray, types::*,
};
use arrow_buffer::NullBuffer;
use millstream_types::{Column, Columns, DataType};

use crate::{
    StateError,
    arrays::{int32_array, int64_array, view_array},
};

/// Version of the form of stored rows.
pub const ROW_FORMAT: u8 = 1;

/// Writes and reads the rows of one state.
#[derive(Clone, Debug)]
pub(crate) struct RowCodec {
    types: Arc<[DataType]>,
}

impl RowCodec {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { types: columns.iter().map(|c| c.data_type).collect() }
    }

    /// A writer of rows of these columns, which have the state's types.
    pub(crate) fn writer<'a>(&self, columns: &'a Columns) -> RowWriter<'a> {
        RowWriter {
            columns: self.types.iter().zip(&columns.arrays).map(|(&t, a)| Values::of(t, a)).collect(),
        }
    }

    /// Cuts a row off the front of `bytes`.
    pub(crate) fn split_row<'a>(&self, bytes: &mut &'a [u8]) -> Result<&'a [u8], StateError> {
        let length = self.length(bytes).ok_or(StateError::DamagedRow)?;
        let (row, rest) = bytes.split_at_checked(length).ok_or(StateError::DamagedRow)?;
        *bytes = rest;
        Ok(row)
    }

    /// The length of the row that `bytes` start with.
    fn length(&self, bytes: &[u8]) -> Option<usize> {
        let mut length = self.types.len().div_ceil(8);
        let nulls = bytes.get(..length)?;
        for (i, data_type) in self.types.iter().enumerate() {
            if nulls[i / 8] >> (i % 8) & 1 == 0 {
                length += match data_type {
                    DataType::Boolean => 1,
                    DataType::Int32 | DataType::Date | DataType::Float32 => 4,
                    DataType::Int64 | DataType::Timestamp | DataType::Float64 => 8,
                    DataType::Utf8 | DataType::Binary => {
                        let (text, _) = bytes.get(length..)?.split_first_chunk::<4>()?;
                        4 + u32::from_le_bytes(*text) as usize
                    }
                };
            }
        }
        Some(length)
    }

    /// A reader that collects rows into columns.
    pub(crate) fn reader(&self, rows: usize) -> RowReader {
        RowReader {
            rows: 0,
            types: self.types.clone(),
            builders: self.types.iter().map(|&t| Builder::new(t, rows)).collect(),
        }
    }
}

/// Columns whose rows are written.
pub(crate) struct RowWriter<'a> {
    columns: Vec<(Values<'a>, Option<&'a NullBuffer>)>,
}

/// The values of a column, its type resolved once and not once a row.
enum Values<'a> {
    Boolean(&'a BooleanArray),
    Four(Four<'a>),
    Eight(Eight<'a>),
    Text(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
}

enum Four<'a> {
    Int(&'a [i32]),
    Float(&'a [f32]),
}

enum Eight<'a> {
    Int(&'a [i64]),
    Float(&'a [f64]),
}

impl<'a> Values<'a> {
    fn of(data_type: DataType, array: &'a ArrayRef) -> (Self, Option<&'a NullBuffer>) {
        let values = match data_type {
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::Int32 => Values::Four(Four::Int(array.as_primitive::<Int32Type>().values())),
            DataType::Date => Values::Four(Four::Int(array.as_primitive::<Date32Type>().values())),
            DataType::Float32 => Values::Four(Four::Float(array.as_primitive::<Float32Type>().values())),
            DataType::Int64 => Values::Eight(Eight::Int(array.as_primitive::<Int64Type>().values())),
            DataType::Timestamp => {
                Values::Eight(Eight::Int(array.as_primitive::<TimestampMillisecondType>().values()))
            }
            DataType::Float64 => Values::Eight(Eight::Float(array.as_primitive::<Float64Type>().values())),
            DataType::Utf8 => Values::Text(array.as_string_view()),
            DataType::Binary => Values::Bytes(array.as_binary_view()),
        };
        (values, array.nulls().filter(|n| n.null_count() > 0))
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Values::Boolean(v) => out.push(u8::from(v.value(row))),
            Values::Four(Four::Int(v)) => out.extend(v[row].to_le_bytes()),
            Values::Four(Four::Float(v)) => out.extend(v[row].to_le_bytes()),
            Values::Eight(Eight::Int(v)) => out.extend(v[row].to_le_bytes()),
            Values::Eight(Eight::Float(v)) => out.extend(v[row].to_le_bytes()),
            Values::Text(v) => write_bytes(v.value(row).as_bytes(), out),
            Values::Bytes(v) => write_bytes(v.value(row), out),
        }
    }
}

impl RowWriter<'_> {
    /// Appends one row.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) {
        let bits = out.len();
        out.resize(bits + self.columns.len().div_ceil(8), 0);
        for (i, (values, nulls)) in self.columns.iter().enumerate() {
            if nulls.is_some_and(|n| n.is_null(row)) {
                out[bits + i / 8] |= 1 << (i % 8);
            } else {
                values.write(row, out);
            }
        }
    }
}

fn write_bytes(value: &[u8], out: &mut Vec<u8>) {
    out.extend((value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
}

/// Rows read so far.
pub(crate) struct RowReader {
    rows: usize,
    types: Arc<[DataType]>,
    builders: Vec<Builder>,
}

enum Builder {
    Boolean(BooleanBuilder),
    Int32(PrimitiveBuilder<Int32Type>),
    Float32(PrimitiveBuilder<Float32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Bytes(BinaryViewBuilder),
}

impl RowReader {
    /// How many rows have been read.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Reads a row off the front of `bytes`.
    pub(crate) fn read(&mut self, bytes: &mut &[u8]) -> Result<(), StateError> {
        self.try_read(bytes).ok_or(StateError::DamagedRow)?;
        self.rows += 1;
        Ok(())
    }

    /// Reads all rows of a run.
    pub(crate) fn read_all(&mut self, mut bytes: &[u8], rows: usize) -> Result<(), StateError> {
        (0..rows).try_for_each(|_| self.read(&mut bytes))?;
        if bytes.is_empty() { Ok(()) } else { Err(StateError::DamagedRow) }
    }

    fn try_read(&mut self, bytes: &mut &[u8]) -> Option<()> {
        let (nulls, rest) = bytes.split_at_checked(self.builders.len().div_ceil(8))?;
        *bytes = rest;
        for (i, builder) in self.builders.iter_mut().enumerate() {
            if nulls[i / 8] >> (i % 8) & 1 == 1 {
                builder.append_null();
            } else {
                builder.read(bytes)?;
            }
        }
        Some(())
    }

    /// Adds a row in which nothing is.
    pub(crate) fn skip(&mut self) {
        self.rows += 1;
        self.builders.iter_mut().for_each(Builder::append_default);
    }

    /// The rows as columns.
    pub(crate) fn finish(self) -> Columns {
        let arrays = self.types.iter().zip(self.builders).map(|(&t, b)| b.finish(t)).collect();
        Columns::new(self.rows, arrays)
    }
}

impl Builder {
    fn new(data_type: DataType, rows: usize) -> Self {
        match data_type {
            DataType::Boolean => Builder::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::Int32 | DataType::Date => Builder::Int32(PrimitiveBuilder::with_capacity(rows)),
            DataType::Float32 => Builder::Float32(PrimitiveBuilder::with_capacity(rows)),
            DataType::Int64 | DataType::Timestamp => Builder::Int64(PrimitiveBuilder::with_capacity(rows)),
            DataType::Float64 => Builder::Float64(PrimitiveBuilder::with_capacity(rows)),
            DataType::Utf8 | DataType::Binary => Builder::Bytes(BinaryViewBuilder::with_capacity(rows)),
        }
    }

    fn read(&mut self, bytes: &mut &[u8]) -> Option<()> {
        match self {
            Builder::Boolean(b) => b.append_value(u8::from_le_bytes(take(bytes)?) != 0),
            Builder::Int32(b) => b.append_value(i32::from_le_bytes(take(bytes)?)),
            Builder::Float32(b) => b.append_value(f32::from_le_bytes(take(bytes)?)),
            Builder::Int64(b) => b.append_value(i64::from_le_bytes(take(bytes)?)),
            Builder::Float64(b) => b.append_value(f64::from_le_bytes(take(bytes)?)),
            Builder::Bytes(b) => {
                let (value, rest) = bytes_of_length(take(bytes)?, bytes)?;
                *bytes = rest;
                b.append_value(value);
            }
        }
        Some(())
    }

    fn append_null(&mut self) {
        match self {
            Builder::Boolean(b) => b.append_null(),
            Builder::Int32(b) => b.append_null(),
            Builder::Float32(b) => b.append_null(),
            Builder::Int64(b) => b.append_null(),
            Builder::Float64(b) => b.append_null(),
            Builder::Bytes(b) => b.append_null(),
        }
    }

    fn append_default(&mut self) {
        match self {
            Builder::Boolean(b) => b.append_value(false),
            Builder::Int32(b) => b.append_value(0),
            Builder::Float32(b) => b.append_value(0.0),
            Builder::Int64(b) => b.append_value(0),
            Builder::Float64(b) => b.append_value(0.0),
            Builder::Bytes(b) => b.append_value([]),
        }
    }

    fn finish(self, data_type: DataType) -> ArrayRef {
        match self {
            Builder::Boolean(mut b) => Arc::new(b.finish()),
            Builder::Int32(mut b) => {
                let (_, values, nulls) = b.finish().into_parts();
                int32_array(data_type, values, nulls)
            }
            Builder::Float32(mut b) => Arc::new(b.finish()),
            Builder::Int64(mut b) => {
                let (_, values, nulls) = b.finish().into_parts();
                int64_array(data_type, values, nulls)
            }
            Builder::Float64(mut b) => Arc::new(b.finish()),
            Builder::Bytes(mut b) => view_array(data_type, b.finish()),
        }
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (value, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*value)
}

fn bytes_of_length<'a>(length: [u8; 4], bytes: &&'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    bytes.split_at_checked(u32::from_le_bytes(length) as usize)
}

#[cfg(test)]
mod tests {
    use arrow_array::*;

    use super::*;

    fn columns() -> (Vec<Column>, Columns) {
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![Some(true), None])),
            Arc::new(Int32Array::from(vec![Some(i32::MIN), None])),
            Arc::new(Int64Array::from(vec![Some(258), None])),
            Arc::new(Float32Array::from(vec![Some(1.5), None])),
            Arc::new(Float64Array::from(vec![Some(-0.0), None])),
            Arc::new(
                TimestampMillisecondArray::from(vec![Some(-1), None])
                    .with_data_type(DataType::Timestamp.to_arrow()),
            ),
            Arc::new(Date32Array::from(vec![Some(3), None])),
            Arc::new(StringViewArray::from(vec![Some("é"), None])),
            Arc::new(BinaryViewArray::from(vec![Some(&b"\0\xff"[..]), None])),
        ];
        let column = |(i, data_type): (usize, &DataType)| Column {
            name: format!("c{i}"),
            data_type: *data_type,
            nullable: true,
        };
        (DataType::ALL.iter().enumerate().map(column).collect(), Columns::new(2, arrays))
    }

    #[test]
    fn golden_bytes() {
        let (declared, columns) = columns();
        let codec = RowCodec::new(&declared);
        let mut bytes = Vec::new();
        codec.writer(&columns).write(0, &mut bytes);
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "0000\
             01\
             00000080\
             0201000000000000\
             0000c03f\
             0000000000000080\
             ffffffffffffffff\
             03000000\
             02000000c3a9\
             0200000000ff"
        );
        bytes.clear();
        codec.writer(&columns).write(1, &mut bytes);
        assert_eq!(bytes, [0xff, 0x01]);
    }

    #[test]
    fn what_was_written_is_read_back() {
        let (declared, columns) = columns();
        let codec = RowCodec::new(&declared);
        let (mut bytes, mut reader) = (Vec::new(), codec.reader(2));
        (0..2).for_each(|row| codec.writer(&columns).write(row, &mut bytes));
        reader.read_all(&bytes, 2).expect("just written");
        assert_eq!(reader.finish().arrays, columns.arrays);
        let mut left = &bytes[..];
        let lengths = [(); 2].map(|()| codec.split_row(&mut left).expect("just written").len());
        assert_eq!((lengths, left.len()), ([bytes.len() - 2, 2], 0));
    }

    #[test]
    fn damaged_rows_are_refused() {
        let (declared, columns) = columns();
        let codec = RowCodec::new(&declared);
        let mut bytes = Vec::new();
        codec.writer(&columns).write(0, &mut bytes);
        for end in 0..bytes.len() {
            let error = codec.reader(1).read_all(&bytes[..end], 1).expect_err("cut short");
            assert_eq!(error, StateError::DamagedRow);
            assert_eq!(codec.split_row(&mut &bytes[..end]), Err(StateError::DamagedRow));
        }
        bytes.push(0);
        assert_eq!(codec.reader(1).read_all(&bytes, 1), Err(StateError::DamagedRow));
    }
}

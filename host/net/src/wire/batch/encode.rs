//! Rows to bytes.

use arrow_array::{
    Array, ArrayRef,
    cast::AsArray,
    types::{
        ByteViewType, Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType,
    },
};
use arrow_buffer::Buffer;
use arrow_data::MAX_INLINE_VIEW_LEN;
use bytes::{BufMut, Bytes};
use millstream_types::{Batch, DataType, NO_TIME, Schema};

use super::{ColumnDescription, Description, LENGTH, UNTIMED_ROWS, compression::compress};
use crate::wire::frame::{COMPRESSED, Header, Kind};

/// Rows that cannot travel, which is a mistake of ours: those of an edge have its schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error("the rows have the columns {found}, and the edge has {expected}")]
    Columns { found: String, expected: String },
    #[error("a batch of {rows} rows takes more than 4 GiB")]
    TooLarge { rows: usize },
}

/// A batch that is about to travel.
pub(crate) struct Encoder<'a> {
    batch: &'a Batch,
    schema: &'a Schema,
    timed: bool,
    description: Vec<u8>,
    length: u32,
    /// Bytes that are copied, about.
    copied: usize,
}

impl<'a> Encoder<'a> {
    /// Finds out how long it gets, without touching its values.
    pub(crate) fn new(batch: &'a Batch, schema: &'a Schema) -> Result<Self, Unsendable> {
        check(batch, schema)?;
        let too_large = || Unsendable::TooLarge { rows: batch.rows() };
        let rows = u32::try_from(batch.rows()).map_err(|_| too_large())?;
        let timed = rows > UNTIMED_ROWS || batch.times().iter().any(|&time| time != NO_TIME);
        let columns = batch.records().columns().iter();
        let columns =
            columns.map(|column| describe(column).ok_or_else(too_large)).collect::<Result<_, _>>()?;
        let positions = batch.positions().map(|positions| positions.portable(batch.rows()));
        let description = Description { rows, timed, columns, positions };
        let bytes = postcard::to_stdvec(&description).expect("plain values have an encoding");
        let length = description.buffers(schema).map(|buffers| buffers + (LENGTH + bytes.len()) as u64);
        let length = length.and_then(|length| u32::try_from(length).ok()).ok_or_else(too_large)?;
        let text: usize = description.columns.iter().map(|column| column.bytes as usize).sum();
        let copied = (length as usize).min(text + description.columns.len() * WORTH_SHARING);
        Ok(Self { batch, schema, timed, description: bytes, length, copied })
    }

    /// Bytes of the payload.
    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    /// The frame, in pieces; compressed if that is wanted and makes it shorter.
    pub(crate) fn encode(self, flags: u8, number: u64, compression: bool) -> Vec<Bytes> {
        let mut pieces = Pieces { done: Vec::new(), small: Vec::with_capacity(self.copied) };
        pieces.small.put_u32_le(self.description.len() as u32);
        pieces.small.extend_from_slice(&self.description);
        if self.timed {
            pieces.put(self.batch.times().inner());
        }
        for (column, field) in self.batch.records().columns().iter().zip(self.schema.fields()) {
            pieces.put_column(column, field.data_type);
        }
        let mut pieces = pieces.finish();
        let (mut flags, mut length) = (flags, self.length);
        if let Some(compressed) = compression.then(|| compress(&pieces)).flatten() {
            (flags, length) = (flags | COMPRESSED, compressed.len() as u32);
            pieces = vec![compressed];
        }
        let payload = pieces.iter().map(|piece| &piece[..]);
        let header = Header::encode(Kind::Batch, flags, number, length, payload);
        pieces.insert(0, Bytes::copy_from_slice(&header));
        pieces
    }
}

fn check(batch: &Batch, schema: &Schema) -> Result<(), Unsendable> {
    let found = batch.records().schema_ref().fields().iter().map(|field| field.data_type());
    let expected = schema.arrow().fields().iter().map(|field| field.data_type());
    if found.eq(expected) {
        return Ok(());
    }
    let found = batch.records().schema_ref().fields().iter();
    let found = found.map(|field| format!("{} {}", field.name(), field.data_type())).collect::<Vec<_>>();
    let expected = schema.fields().iter().map(ToString::to_string).collect::<Vec<_>>();
    Err(Unsendable::Columns { found: found.join(", "), expected: expected.join(", ") })
}

fn describe(column: &ArrayRef) -> Option<ColumnDescription> {
    let bytes = match DataType::from_arrow(column.data_type())? {
        DataType::Utf8 => bytes_of(column.as_string_view()),
        DataType::Binary => bytes_of(column.as_binary_view()),
        _ => 0,
    };
    Some(ColumnDescription { nulls: column.null_count() > 0, bytes: u32::try_from(bytes).ok()? })
}

/// Bytes of the values; what stands where there is none does not count.
fn bytes_of<T: ByteViewType + ?Sized>(column: &arrow_array::GenericByteViewArray<T>) -> u64 {
    lengths(column).map(u64::from).sum()
}

fn lengths<T: ByteViewType + ?Sized>(
    column: &arrow_array::GenericByteViewArray<T>,
) -> impl Iterator<Item = u32> {
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    let value = move |row| nulls.is_none_or(|nulls| nulls.is_valid(row));
    // The length is the low half of a view's first word.
    let length = |view: &u128| *view as u32;
    column.views().iter().enumerate().map(move |(row, view)| if value(row) { length(view) } else { 0 })
}

/// The payload: small buffers copied behind each other, large ones as they lie.
struct Pieces {
    done: Vec<Bytes>,
    small: Vec<u8>,
}

impl Pieces {
    fn put_column(&mut self, column: &ArrayRef, data_type: DataType) {
        if let Some(nulls) = column.nulls().filter(|nulls| nulls.null_count() > 0) {
            self.put_bits(nulls.inner());
        }
        match data_type {
            DataType::Boolean => self.put_bits(column.as_boolean().values()),
            DataType::Int32 => self.put(column.as_primitive::<Int32Type>().values().inner()),
            DataType::Int64 => self.put(column.as_primitive::<Int64Type>().values().inner()),
            DataType::Float32 => self.put(column.as_primitive::<Float32Type>().values().inner()),
            DataType::Float64 => self.put(column.as_primitive::<Float64Type>().values().inner()),
            DataType::Timestamp => {
                self.put(column.as_primitive::<TimestampMillisecondType>().values().inner());
            }
            DataType::Date => self.put(column.as_primitive::<Date32Type>().values().inner()),
            DataType::Utf8 => self.put_values(column.as_string_view()),
            DataType::Binary => self.put_values(column.as_binary_view()),
        }
    }

    fn put_values<T: ByteViewType + ?Sized>(&mut self, column: &arrow_array::GenericByteViewArray<T>) {
        lengths(column).for_each(|length| self.small.put_u32_le(length));
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        let buffers: Vec<&[u8]> = column.data_buffers().iter().map(Buffer::as_slice).collect();
        for (row, view) in column.views().iter().enumerate() {
            if nulls.is_none_or(|nulls| nulls.is_valid(row)) {
                self.put_value(*view, &buffers);
            }
        }
    }

    /// What a view shows: up to twelve bytes in itself, more in a buffer.
    #[inline]
    fn put_value(&mut self, view: u128, buffers: &[&[u8]]) {
        let length = view as u32 as usize;
        if length <= MAX_INLINE_VIEW_LEN as usize {
            self.small.extend_from_slice(&view.to_le_bytes()[4..4 + length]);
        } else {
            let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
            self.small.extend_from_slice(&buffers[buffer][offset..offset + length]);
        }
    }

    /// Bits from the first byte on.
    fn put_bits(&mut self, bits: &arrow_buffer::BooleanBuffer) {
        let bytes = bits.len().div_ceil(8);
        self.put(&bits.sliced().slice_with_length(0, bytes));
    }

    fn put(&mut self, buffer: &Buffer) {
        if buffer.len() < WORTH_SHARING {
            return self.small.extend_from_slice(buffer);
        }
        if !self.small.is_empty() {
            self.done.push(std::mem::take(&mut self.small).into());
        }
        self.done.push(Bytes::from_owner(buffer.clone()));
    }

    fn finish(mut self) -> Vec<Bytes> {
        if !self.small.is_empty() {
            self.done.push(self.small.into());
        }
        self.done
    }
}

/// From so many bytes on a buffer is handed over where it lies.
const WORTH_SHARING: usize = 4096;

//! Bytes to rows. Whoever sent them may be anybody.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, PrimitiveArray,
    types::{
        ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int32Type, Int64Type,
        TimestampMillisecondType,
    },
};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, ScalarBuffer};
use bytes::Buf;
use millstream_types::{Batch, DataType, NO_TIME, Schema};

use super::{ColumnDescription, Description, UNTIMED_ROWS};
use crate::{
    trusted,
    wire::frame::{FrameError, Kind, Payload},
};

/// The rows of a payload, which have to have the columns of the channel.
pub(crate) fn decode(mut payload: Payload, schema: &Schema) -> Result<Batch, FrameError> {
    read(&mut payload, schema).map_err(|problem| FrameError::Undecodable { kind: Kind::Batch, problem })
}

fn read(payload: &mut Payload, schema: &Schema) -> Result<Batch, String> {
    let description = read_description(payload, schema)?;
    let rows = description.rows as usize;
    let times = match description.timed {
        true => ScalarBuffer::new(take(payload, rows * 8), 0, rows),
        false => vec![NO_TIME; rows].into(),
    };
    let columns = description.columns.iter().zip(schema.fields());
    let column = |(column, field): (&ColumnDescription, &millstream_types::Field)| {
        read_column(payload, rows, *column, field.data_type)
            .map_err(|problem| format!("column `{}`: {problem}", field.name))
    };
    let columns = columns.map(column).collect::<Result<Vec<_>, _>>()?;
    let batch = Batch::new(schema, columns, times).map_err(|error| error.to_string())?;
    Ok(batch.with_positions(description.positions.map(Into::into)))
}

/// Nothing is allocated for the buffers before their sizes are known to be those of the payload.
fn read_description(payload: &mut Payload, schema: &Schema) -> Result<Description, String> {
    let length = payload.try_get_u32_le().map_err(|error| error.to_string())? as usize;
    if length > payload.remaining() {
        return Err(format!("a description of {length} bytes in {}", payload.remaining()));
    }
    let bytes = payload.copy_to_bytes(length);
    let (description, rest) =
        postcard::take_from_bytes::<Description>(&bytes).map_err(|error| error.to_string())?;
    if !rest.is_empty() {
        return Err(format!("{} bytes are left over behind the description", rest.len()));
    }
    if description.columns.len() != schema.len() {
        return Err(format!("{} columns, and the channel has {}", description.columns.len(), schema.len()));
    }
    if !description.timed && description.rows > UNTIMED_ROWS {
        return Err(format!("{} rows without event times", description.rows));
    }
    match description.buffers(schema) {
        Some(expected) if expected == payload.remaining() as u64 => Ok(description),
        Some(expected) => {
            Err(format!("{} bytes of buffers, and {expected} are described", payload.remaining()))
        }
        None => Err("more is described than there can be".to_owned()),
    }
}

fn read_column(
    payload: &mut Payload,
    rows: usize,
    column: ColumnDescription,
    data_type: DataType,
) -> Result<ArrayRef, String> {
    let nulls = column.nulls.then(|| NullBuffer::new(take_bits(payload, rows)));
    Ok(match data_type {
        DataType::Boolean => Arc::new(BooleanArray::new(take_bits(payload, rows), nulls)),
        DataType::Int32 => numbers::<Int32Type>(payload, rows, nulls),
        DataType::Int64 => numbers::<Int64Type>(payload, rows, nulls),
        DataType::Float32 => numbers::<Float32Type>(payload, rows, nulls),
        DataType::Float64 => numbers::<Float64Type>(payload, rows, nulls),
        DataType::Date => numbers::<Date32Type>(payload, rows, nulls),
        DataType::Timestamp => {
            let values = take(payload, rows * 8);
            let values = ScalarBuffer::new(values, 0, rows);
            Arc::new(PrimitiveArray::<TimestampMillisecondType>::new(values, nulls).with_timezone("UTC"))
        }
        DataType::Utf8 => {
            let (lengths, values) = take_values(payload, rows, column);
            Arc::new(trusted::text(&lengths, values, nulls)?)
        }
        DataType::Binary => {
            let (lengths, values) = take_values(payload, rows, column);
            let views = trusted::views(&lengths, &values, nulls.as_ref())?;
            let array = BinaryViewArray::try_new(views, vec![values], nulls);
            Arc::new(array.map_err(|error| error.to_string())?)
        }
    })
}

fn numbers<T: ArrowPrimitiveType>(payload: &mut Payload, rows: usize, nulls: Option<NullBuffer>) -> ArrayRef {
    let values = ScalarBuffer::new(take(payload, rows * size_of::<T::Native>()), 0, rows);
    Arc::new(PrimitiveArray::<T>::new(values, nulls))
}

/// The lengths of values and the values.
fn take_values(payload: &mut Payload, rows: usize, column: ColumnDescription) -> (ScalarBuffer<u32>, Buffer) {
    let lengths = ScalarBuffer::new(take(payload, rows * 4), 0, rows);
    (lengths, take(payload, column.bytes as usize))
}

fn take_bits(payload: &mut Payload, rows: usize) -> BooleanBuffer {
    BooleanBuffer::new(take(payload, rows.div_ceil(8)), 0, rows)
}

/// The next bytes, which are there, in a buffer of their own.
fn take(payload: &mut Payload, length: usize) -> Buffer {
    let mut buffer = MutableBuffer::with_capacity(length);
    while buffer.len() < length {
        let piece = payload.chunk();
        let step = piece.len().min(length - buffer.len());
        buffer.extend_from_slice(&piece[..step]);
        payload.advance(step);
    }
    buffer.into()
}

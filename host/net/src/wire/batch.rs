//! Rows, as they travel: raw buffers, with what is needed to read them in front.
//!
//! The payload is the length of the description (four bytes), the description, the event times unless no row has one, and
//! of each column: a bitmap of which rows have a value unless all have, and the values. Booleans are a bitmap, numbers lie
//! as in memory, text and bytes are the length of each (four bytes) and then all of them, without what else their buffers
//! hold. What is large is handed over where it lies. All sizes follow from the description, so a payload is either exactly
//! as long as it says or refused, and each buffer is copied once, into one of its own.
//!
//! All of that can be compressed: then the payload is its length and an LZ4 block. What rows cost is what they take
//! uncompressed, as that is what the receiver has to have room for.

mod compression;
mod decode;
mod encode;
#[cfg(test)]
mod tests;

use millstream_types::{DataType, PortablePositions, Schema};
use serde::{Deserialize, Serialize};

pub(crate) use compression::{decompress, uncompressed_length};
pub(crate) use decode::decode;
pub(crate) use encode::Encoder;

/// What stands in front of the buffers.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Description {
    rows: u32,
    /// Whether rows have event times.
    timed: bool,
    columns: Vec<ColumnDescription>,
    positions: Option<PortablePositions>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ColumnDescription {
    /// Whether there is a bitmap of which rows have a value.
    nulls: bool,
    /// Bytes of all values, where they differ in length.
    bytes: u32,
}

impl Description {
    /// Bytes of all buffers; none if that is no number.
    fn buffers(&self, schema: &Schema) -> Option<u64> {
        let rows = u64::from(self.rows);
        let mut total = if self.timed { rows.checked_mul(8)? } else { 0 };
        for (column, field) in self.columns.iter().zip(schema.fields()) {
            let bitmap = if column.nulls { rows.div_ceil(8) } else { 0 };
            let values = match field.data_type {
                DataType::Boolean => rows.div_ceil(8),
                DataType::Utf8 | DataType::Binary => rows.checked_mul(4)?.checked_add(column.bytes.into())?,
                other => rows.checked_mul(other.fixed_width()? as u64)?,
            };
            total = total.checked_add(bitmap)?.checked_add(values)?;
        }
        Some(total)
    }
}

/// Bytes of the description's length.
const LENGTH: usize = 4;
/// Rows without event times, of which a few bytes may tell, at most.
const UNTIMED_ROWS: u32 = 1 << 20;

//! Bare columns: what crosses the boundary to a function and to state, where the schema is known to both sides.

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;

/// Some columns of equal length, without names. A set without columns still has rows.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// How many rows each column has.
    pub rows: usize,
    /// The columns, in the order that a manifest or schema declares.
    pub arrays: Vec<ArrayRef>,
}

impl Columns {
    /// Columns of `rows` rows each.
    pub fn new(rows: usize, arrays: Vec<ArrayRef>) -> Self {
        debug_assert!(arrays.iter().all(|a| a.len() == rows), "columns of different lengths");
        Self { rows, arrays }
    }

    /// Rows `offset..offset + length`, by reference.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        Self { rows: length, arrays: self.arrays.iter().map(|a| a.slice(offset, length)).collect() }
    }
}

/// Stored values of some keys; a row whose bit is clear means that there is no value.
#[derive(Clone, Debug)]
pub struct Cells {
    /// One bit a row.
    pub present: BooleanBuffer,
    /// The values; what stands in an absent row means nothing.
    pub values: Columns,
}

/// Lists of rows: run i of `items` is `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug)]
pub struct Runs {
    /// One more position than there are runs, ascending, the first is 0 and the last `items.rows`.
    pub offsets: Vec<u32>,
    /// All runs' rows, one run behind the other.
    pub items: Columns,
}

/// Lists of map entries: run i is `offsets[i]..offsets[i + 1]` of both `map_keys` and `values`.
#[derive(Clone, Debug)]
pub struct Entries {
    /// One more position than there are runs.
    pub offsets: Vec<u32>,
    /// Positions into `key_bytes`, one more than there are entries.
    pub key_offsets: Vec<u32>,
    /// The map keys, one behind the other.
    pub key_bytes: Vec<u8>,
    /// The values.
    pub values: Columns,
}

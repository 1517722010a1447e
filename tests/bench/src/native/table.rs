//! Hash tables by numbers and by text, and whose rows are whose.

use std::hash::{BuildHasherDefault, Hasher};

use arrow_array::{cast::AsArray, types::Int64Type};
use hashbrown::HashMap;
use millstream_types::Batch;
use xxhash_rust::xxh3::xxh3_64;

/// A table by 64-bit keys.
pub(super) type NumberMap<V> = HashMap<i64, V, BuildHasherDefault<Folded>>;
/// A table by text.
pub(super) type TextMap<V> = HashMap<Vec<u8>, V, BuildHasherDefault<Folded>>;

/// A multiplication whose two halves are folded into one: enough for tables, and as cheap as it gets.
#[derive(Clone, Copy, Default)]
pub(super) struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = fold(self.0 ^ xxh3_64(bytes));
    }

    fn write_i64(&mut self, number: i64) {
        self.0 = fold(number as u64);
    }

    /// Lengths: the text's own hash has it.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

fn fold(number: u64) -> u64 {
    let product = u128::from(number ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
    (product as u64) ^ (product >> 64) as u64
}

/// The thread of each row by the number in a column.
pub(super) fn targets_of_column(batch: &Batch, column: usize, threads: u32) -> Vec<u32> {
    let keys = batch.column(column).as_primitive::<Int64Type>().values();
    keys.iter().map(|&key| target(fold(key as u64), threads)).collect()
}

/// The thread of a text.
pub(super) fn target_of_text(text: &[u8], threads: u32) -> u32 {
    target(fold(xxh3_64(text)), threads)
}

/// By other bits of the hash than tables use.
fn target(hash: u64, threads: u32) -> u32 {
    (((hash >> 16 & 0xffff) * u64::from(threads)) >> 16) as u32
}

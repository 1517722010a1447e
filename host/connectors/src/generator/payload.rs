//! `bench-shuffle` and `bench-latency`: records of 100 bytes, each batch in memory of its own.

use std::sync::Arc;

use arrow_array::{BinaryViewArray, Int64Array};
use arrow_buffer::Buffer;
use millstream_types::{Batch, DataType, Field, Limits, NO_TIME, Schema};

use super::{Generate, Kind, Numbers};
use crate::{
    clock::nanos,
    mix::{below, mix},
};

/// Columns `key` and `record`: bytes 0 to 7 of a record are the key, big endian, and 8 to 15 its number, or in the
/// latency benchmark the time at which it was made; 16 to 23 are then the time at which it was due.
#[derive(Clone)]
pub(crate) struct Payload {
    schema: Schema,
    keys: u64,
    stamped: bool,
}

/// Bytes of a record.
const LENGTH: usize = 100;

impl Payload {
    /// Keys below `keys`; `stamped` with times in place of numbers.
    pub(crate) fn new(keys: u64, stamped: bool) -> Self {
        let schema =
            Schema::new([Field::new("key", DataType::Int64), Field::new("record", DataType::Binary)]);
        Self { schema, keys, stamped }
    }
}

impl Kind for Payload {
    fn outputs(&self) -> Vec<(String, Schema)> {
        vec![("out".to_owned(), self.schema.clone())]
    }

    fn generator(&self) -> Box<dyn Generate> {
        Box::new(self.clone())
    }

    fn batch_rows(&self) -> usize {
        Limits::rows_of(LENGTH)
    }
}

impl Generate for Payload {
    fn generate(&mut self, numbers: &Numbers) -> Vec<(usize, Batch)> {
        let mut bytes = vec![0; numbers.count * LENGTH];
        let mut keys = Vec::with_capacity(numbers.count);
        let mut views = Vec::with_capacity(numbers.count);
        let (records, _) = bytes.as_chunks_mut::<LENGTH>();
        for ((i, record), offset) in numbers.iter().zip(records).zip((0..).step_by(LENGTH)) {
            let key = below(mix(i), self.keys);
            keys.push(key as i64);
            views.push(view(key, offset));
            record[..8].copy_from_slice(&key.to_be_bytes());
            record[8..16].copy_from_slice(&i.to_be_bytes());
        }
        if self.stamped {
            stamp(numbers, &mut bytes);
        }
        let records = BinaryViewArray::new(views.into(), vec![Buffer::from_vec(bytes)], None);
        let columns = vec![Arc::new(Int64Array::from(keys)) as _, Arc::new(records) as _];
        let times = vec![NO_TIME; numbers.count].into();
        vec![(0, Batch::new(&self.schema, columns, times).expect("a key and a record"))]
    }
}

/// Puts the times into records: when each is made and when it was due.
fn stamp(numbers: &Numbers, bytes: &mut [u8]) {
    let mut due = numbers.pace.iter().flat_map(|pace| pace.schedule(numbers.count));
    for record in bytes.chunks_exact_mut(LENGTH) {
        let now = nanos();
        record[8..16].copy_from_slice(&now.to_be_bytes());
        record[16..24].copy_from_slice(&due.next().unwrap_or(now).to_be_bytes());
    }
}

/// Arrow's view of a record that starts with `key`: length, first four bytes, buffer 0, offset.
fn view(key: u64, offset: u128) -> u128 {
    let prefix = u32::from_le_bytes(((key >> 32) as u32).to_be_bytes());
    LENGTH as u128 | u128::from(prefix) << 32 | offset << 96
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    #[test]
    fn records_are_as_defined() {
        let mut generator = Payload::new(1_000_000, false).generator();
        let (_, batch) = generator.generate(&Numbers { first: 3, stride: 2, count: 2, pace: None }).remove(0);
        let records = batch.column(1).as_binary_view();
        for (row, i) in [(0, 3_u64), (1, 5)] {
            let key = below(mix(i), 1_000_000);
            let mut expected = [key.to_be_bytes(), i.to_be_bytes()].concat();
            expected.resize(LENGTH, 0);
            assert_eq!(records.value(row), expected);
        }
    }

    #[test]
    fn stamped_records_have_their_times() {
        let mut generator = Payload::new(10, true).generator();
        let pace = crate::generator::pace::Pace::new(1000.0, 7);
        let (_, batch) =
            generator.generate(&Numbers { first: 0, stride: 1, count: 2, pace: Some(pace) }).remove(0);
        let time = |row: usize, at: usize| {
            let bytes =
                batch.column(1).as_binary_view().value(row)[at..at + 8].try_into().expect("eight bytes");
            u64::from_be_bytes(bytes)
        };
        assert_eq!([time(0, 16), time(1, 16)], [7, 1_000_007]);
        assert!(time(0, 8) <= time(1, 8));
    }
}

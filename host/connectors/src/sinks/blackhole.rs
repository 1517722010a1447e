//! The `blackhole` sink: takes rows, reads every byte of them and forgets them.

use std::{hint::black_box, ops::Range};

use arrow_array::{
    Array, GenericByteViewArray,
    cast::AsArray,
    types::{BinaryViewType, ByteViewType, StringViewType},
};
use arrow_schema::DataType as ArrowType;
use async_trait::async_trait;
use millstream_operator::{ConnectorError, OperatorContext, Sink, SinkWriter};
use millstream_types::{Batch, Schema};
use serde::Deserialize;
use serde_json::Value;

use crate::options::{OptionsError, parse};

/// Reads rows and forgets them.
pub(crate) struct BlackholeSink;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlackholeOptions {}

impl BlackholeSink {
    pub(crate) fn new(options: &Value) -> Result<Self, OptionsError> {
        parse::<BlackholeOptions>("blackhole", options).map(|BlackholeOptions {}| Self)
    }
}

impl Sink for BlackholeSink {
    fn accepts(&self, _schema: &Schema) -> Result<(), String> {
        Ok(())
    }

    fn writer(
        &self,
        _schema: &Schema,
        _ctx: &OperatorContext,
    ) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(BlackholeWriter { sum: 0 }))
    }
}

struct BlackholeWriter {
    sum: u64,
}

#[async_trait(?Send)]
impl SinkWriter for BlackholeWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError> {
        let columns = batch.records().columns().iter();
        self.sum = columns.fold(self.sum, |sum, column| sum.wrapping_add(sum_column(column)));
        // Without this the compiler would see that nobody wants the sum.
        black_box(self.sum);
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}

/// A sum that takes every byte of a column's rows to know.
fn sum_column(column: &dyn Array) -> u64 {
    match column.data_type() {
        ArrowType::Utf8View => sum_views::<StringViewType>(column.as_string_view()),
        ArrowType::BinaryView => sum_views::<BinaryViewType>(column.as_binary_view()),
        _ => {
            let data = column.to_data();
            let width = column.data_type().primitive_width();
            let bytes = data.buffers().first().map_or(&[][..], |buffer| buffer.as_slice());
            match width {
                Some(width) => sum_bytes(&bytes[data.offset() * width..(data.offset() + data.len()) * width]),
                None => sum_bytes(bytes),
            }
        }
    }
}

/// Short values lie in their views, long ones in a buffer of the column. Those that are neighbours there, as they are in
/// most columns, are read together.
fn sum_views<T: ByteViewType>(column: &GenericByteViewArray<T>) -> u64 {
    let buffers = column.data_buffers();
    let run_sum = |buffer: usize, run: Range<usize>| match run.is_empty() {
        true => 0,
        false => sum_long(&buffers[buffer][run]),
    };
    let (mut sum, mut buffer, mut run) = (0_u64, 0, 0..0);
    for view in column.views() {
        let length = *view as u32 as usize;
        if length <= INLINE {
            sum = sum.wrapping_add(*view as u64).wrapping_add((*view >> 64) as u64);
            continue;
        }
        let (of, start) = ((*view >> 64) as u32 as usize, (*view >> 96) as u32 as usize);
        if (of, start) != (buffer, run.end) {
            sum = sum.wrapping_add(run_sum(buffer, run));
            (buffer, run) = (of, start..start);
        }
        run.end += length;
    }
    sum.wrapping_add(run_sum(buffer, run))
}

/// Bytes that a view holds itself.
const INLINE: usize = 12;

/// Word by word; the last word may overlap the one before it.
fn sum_long(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let last = bytes.last_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
    words.iter().fold(last, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// Word by word, and what is left byte by byte.
fn sum_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use arrow_array::{BinaryViewArray, Int64Array, StringViewArray};

    use super::*;

    #[test]
    fn every_byte_of_a_slice_counts_and_no_other() {
        let numbers = Int64Array::from(vec![1000, 2, 3, 1000]);
        assert_eq!(sum_column(&numbers.slice(1, 2)), 5);
        for length in [1, 3, 8, 12, 13, 16, 20, 100] {
            let bytes = vec![1; length];
            let sum = |bytes: &[u8]| {
                sum_column(&BinaryViewArray::from(vec![&[7; 50][..], bytes, b"x"]).slice(1, 2))
            };
            let found = sum(&bytes);
            for at in 0..length {
                let mut other = bytes.clone();
                other[at] = 2;
                assert_ne!(sum(&other), found, "byte {at} of {length}");
            }
        }
        let text = StringViewArray::from(vec!["a".repeat(50), "b".to_owned()]);
        assert_eq!(sum_column(&text.slice(1, 1)), sum_column(&StringViewArray::from(vec!["b"])));
    }
}

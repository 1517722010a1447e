//! The `blackhole` sink: takes rows, reads every byte of them and forgets them.

use std::hint::black_box;

use arrow_array::{Array, cast::AsArray, types::ByteViewType};
use arrow_array::{
    GenericByteViewArray,
    types::{BinaryViewType, StringViewType},
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

fn sum_views<T: ByteViewType>(column: &GenericByteViewArray<T>) -> u64 {
    column.bytes_iter().fold(0, |sum, bytes| sum.wrapping_add(sum_bytes(bytes)))
}

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
        let bytes = BinaryViewArray::from(vec![&[1; 100][..], &[2; 3], &[0; 50]]);
        assert_eq!(sum_column(&bytes.slice(1, 2)), 6);
        let text = StringViewArray::from(vec!["a".repeat(50), "b".to_owned()]);
        let mut other = "a".repeat(50);
        other.replace_range(49.., "b");
        let other = StringViewArray::from(vec![other, "b".to_owned()]);
        assert_eq!(sum_column(&other).wrapping_sub(sum_column(&text)), 1);
    }
}

//! Workload `wordcount`: lines into words, and a running count of each.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, Int64Array, RecordBatch, builder::make_view, cast::AsArray,
};
use arrow_buffer::ScalarBuffer;
use millstream_types::{Batch, DataType, Field, Schema};

use super::{
    table::{TextMap, target_of_text},
    work::{Out, Work},
};

pub(super) fn wordcount() -> Box<dyn Work> {
    Box::new(Words { schema: Schema::new([word()]), counts: TextMap::default() })
}

/// Words are bytes here, which nobody has to check.
pub(super) fn output(_: &Schema) -> Schema {
    Schema::new([word(), Field::new("count", DataType::Int64)])
}

fn word() -> Field {
    Field::new("word", DataType::Binary)
}

struct Words {
    schema: Schema,
    counts: TextMap<i64>,
}

impl Work for Words {
    fn before(&mut self, _port: usize, batch: Batch) -> Option<Batch> {
        let words: ArrayRef = Arc::new(split(&batch));
        let records = RecordBatch::try_new(self.schema.arrow().clone(), vec![words]);
        records.ok().map(Batch::without_times)
    }

    fn targets(&self, batch: &Batch, threads: u32) -> Option<Vec<u32>> {
        let words = batch.column(0).as_binary_view();
        Some(words.iter().flatten().map(|word| target_of_text(word, threads)).collect())
    }

    fn process(&mut self, batch: Batch, out: &mut Out) -> Result<()> {
        let counted = batch.column(0).as_binary_view().iter().flatten().map(|word| {
            let count = self.counts.entry_ref(word).or_insert(0);
            *count += 1;
            *count
        });
        let counts: Vec<i64> = counted.collect();
        out.write(vec![batch.column(0).clone(), Arc::new(Int64Array::from(counts))])
    }
}

/// The words of all lines, as views into them.
fn split(batch: &Batch) -> BinaryViewArray {
    let lines = batch.column(0).as_string_view();
    let mut views: Vec<u128> = Vec::with_capacity(lines.len() * 10);
    for (line, view) in lines.iter().zip(lines.views()) {
        let line = line.unwrap_or_default().as_bytes();
        let (buffer, offset) = ((view >> 64) as u32, (view >> 96) as u32);
        let mut start = 0;
        while start < line.len() {
            let length = line[start..].iter().position(|&byte| byte == b' ').unwrap_or(line.len() - start);
            views.push(make_view(&line[start..start + length], buffer, offset + start as u32));
            start += length + 1;
        }
    }
    let views = ScalarBuffer::from(views);
    BinaryViewArray::try_new(views, lines.data_buffers().to_vec(), None).expect("words of the lines")
}

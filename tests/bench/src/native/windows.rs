//! Workload `window`: count, sum and maximum by key in tumbling windows of 10 seconds.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;
use arrow_array::{ArrayRef, Int64Array, cast::AsArray, types::Int64Type};
use millstream_types::{Batch, DataType, Field, Limits, Schema};

use super::{
    table::{NumberMap, targets_of_column},
    work::{Out, Work},
};

pub(super) fn tumbling() -> Box<dyn Work> {
    Box::new(Windows::default())
}

pub(super) fn output(_: &Schema) -> Schema {
    Schema::new(["key", "window_end", "count", "sum", "max"].map(|name| Field::new(name, DataType::Int64)))
}

/// Windows, then keys: a table of its own for each window, which goes as a whole.
#[derive(Default)]
struct Windows {
    by_end: BTreeMap<i64, NumberMap<[i64; 3]>>,
    watermark: i64,
}

impl Work for Windows {
    fn targets(&self, batch: &Batch, threads: u32) -> Option<Vec<u32>> {
        Some(targets_of_column(batch, 0, threads))
    }

    fn process(&mut self, batch: Batch, _out: &mut Out) -> Result<()> {
        let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values();
        let (keys, times, values) = (column(0), column(1), column(2));
        let mut row = 0;
        // Runs of rows of one window share a look for its table.
        while row < keys.len() {
            let end = (times[row].div_euclid(SIZE) + 1) * SIZE;
            let stop = (row..keys.len()).find(|&at| times[at] >= end || times[at] < end - SIZE);
            let stop = stop.unwrap_or(keys.len());
            if end - 1 > self.watermark {
                let table = self.by_end.entry(end).or_default();
                for at in row..stop {
                    let [count, sum, max] = table.entry(keys[at]).or_insert([0, 0, i64::MIN]);
                    *count += 1;
                    *sum = sum.wrapping_add(values[at]);
                    *max = values[at].max(*max);
                }
            }
            row = stop;
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Out) -> Result<()> {
        self.watermark = watermark;
        while let Some(entry) = self.by_end.first_entry().filter(|entry| entry.key() - 1 <= watermark) {
            let (end, table) = entry.remove_entry();
            let groups: Vec<_> = table.into_iter().collect();
            for groups in groups.chunks(Limits::BATCH_ROWS) {
                let column = |of: fn(&(i64, [i64; 3])) -> i64| {
                    Arc::new(groups.iter().map(of).collect::<Int64Array>()) as ArrayRef
                };
                let ends = Arc::new(Int64Array::from_value(end, groups.len())) as ArrayRef;
                let [count, sum, max] = [column(|g| g.1[0]), column(|g| g.1[1]), column(|g| g.1[2])];
                out.write(vec![column(|g| g.0), ends, count, sum, max])?;
            }
        }
        Ok(())
    }
}

/// Milliseconds.
const SIZE: i64 = 10_000;

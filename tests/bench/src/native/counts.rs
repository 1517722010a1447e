//! Workload `process`: a count by key, emitted and cleared 30 seconds after the key's first record.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;
use arrow_array::{Int64Array, cast::AsArray, types::Int64Type};
use millstream_types::{Batch, DataType, Field, Limits, Schema};

use super::{
    table::{NumberMap, targets_of_column},
    work::{Out, Work},
};

pub(super) fn with_timers() -> Box<dyn Work> {
    Box::new(Counts::default())
}

pub(super) fn output(_: &Schema) -> Schema {
    Schema::new(["key", "count"].map(|name| Field::new(name, DataType::Int64)))
}

#[derive(Default)]
struct Counts {
    by_key: NumberMap<i64>,
    /// Timers by spans of 16 ms, each with its time and key, in no order.
    wheel: BTreeMap<i64, Vec<(i64, i64)>>,
}

impl Work for Counts {
    fn targets(&self, batch: &Batch, threads: u32) -> Option<Vec<u32>> {
        Some(targets_of_column(batch, 0, threads))
    }

    fn process(&mut self, batch: Batch, _out: &mut Out) -> Result<()> {
        let keys = batch.column(0).as_primitive::<Int64Type>().values();
        let times = batch.column(1).as_primitive::<Int64Type>().values();
        for (&key, time) in keys.iter().zip(times) {
            let count = self.by_key.entry(key).or_insert(0);
            if *count == 0 {
                let due = time + DELAY;
                self.wheel.entry(due >> SPAN_BITS).or_default().push((due, key));
            }
            *count += 1;
        }
        Ok(())
    }

    fn watermark(&mut self, watermark: i64, out: &mut Out) -> Result<()> {
        let mut due = Vec::new();
        while let Some(mut entry) = self.wheel.first_entry().filter(|e| e.key() << SPAN_BITS <= watermark) {
            due.extend(entry.get_mut().extract_if(.., |timer| timer.0 <= watermark));
            if !entry.get().is_empty() {
                break;
            }
            entry.remove();
        }
        for due in due.chunks(Limits::BATCH_ROWS) {
            let fired = due.iter().filter_map(|(_, key)| Some((*key, self.by_key.remove(key)?)));
            let (keys, counts): (Vec<i64>, Vec<i64>) = fired.unzip();
            out.write(vec![Arc::new(Int64Array::from(keys)), Arc::new(Int64Array::from(counts))])?;
        }
        Ok(())
    }
}

/// Milliseconds from a key's first record to its timer.
const DELAY: i64 = 30_000;
const SPAN_BITS: u32 = 4;

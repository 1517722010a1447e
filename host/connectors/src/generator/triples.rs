//! `bench-window` and `bench-process`: three 64-bit integers, event time up to a second out of order.

use std::sync::Arc;

use arrow_array::Int64Array;
use arrow_buffer::ScalarBuffer;
use millstream_types::{Batch, DataType, Field, Schema};

use super::{EventTimes, Generate, Kind, Numbers};
use crate::mix::{below, mix};

/// Columns `key`, `ts` and `value`; `ts` is also the rows' event time.
#[derive(Clone)]
pub(crate) struct Triples {
    schema: Schema,
    keys: u64,
    events_per_second: u64,
}

impl Triples {
    /// Keys below `keys`; so many records to a second of event time.
    pub(crate) fn new(keys: u64, events_per_second: u64) -> Self {
        let column = |name: &str| Field::new(name, DataType::Int64);
        let schema = Schema::new([column("key"), column("ts"), column("value")]);
        Self { schema, keys, events_per_second }
    }
}

impl Kind for Triples {
    fn outputs(&self) -> Vec<(String, Schema)> {
        vec![("out".to_owned(), self.schema.clone())]
    }

    fn generator(&self) -> Box<dyn Generate> {
        Box::new(self.clone())
    }
}

impl Generate for Triples {
    fn generate(&mut self, numbers: &Numbers) -> Vec<(usize, Batch)> {
        let mut times = EventTimes::new(numbers, self.events_per_second);
        let (mut keys, mut ts, mut values) = (rows(numbers), rows(numbers), rows(numbers));
        for i in numbers.iter() {
            let r = mix(i);
            keys.push(below(r, self.keys) as i64);
            ts.push(times.next() - ((r & 0xffff) * 1000 / 65_536) as i64);
            values.push((r >> 16 & 0xffff) as i64);
        }
        let ts = ScalarBuffer::from(ts);
        let column = |values: ScalarBuffer<i64>| Arc::new(Int64Array::new(values, None)) as _;
        let columns = vec![column(keys.into()), column(ts.clone()), column(values.into())];
        vec![(0, Batch::new(&self.schema, columns, ts).expect("three columns of integers"))]
    }
}

fn rows(numbers: &Numbers) -> Vec<i64> {
    Vec::with_capacity(numbers.count)
}

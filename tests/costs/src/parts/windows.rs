//! Tumbling windows with an incremental aggregate: rows added, windows fired.

use std::sync::Arc;

use arrow_array::Int64Array;
use millstream_operator::{Collector, FunctionFactory, Operator, Progress};
use millstream_operators::{
    FIRED_ROWS, KeyColumn, OutputSpec, PortLayout, ProjectionSpec, ReadColumn, RowErrorSpec, Trigger,
    WindowAssigner, WindowBounds, WindowFunction, WindowSpec, window_operator,
};
use millstream_types::{Batch, Carry, Clock, Column, DataType, Field};

use super::{ROWS, Work};
use crate::{
    guest,
    support::{batch, block_on, discard, factory, place},
};

/// Batches of random keys out of 65,536 into one window, which never ends.
pub(super) fn add() -> Box<dyn Work> {
    Box::new(Windows {
        operator: operator(),
        keys: (0..BATCHES).map(random_keys).collect(),
        next: 0,
        fires: false,
    })
}

/// Batches of 8,192 keys, each into a window of its own, which then ends: each row is a group and a result.
pub(super) fn add_and_fire() -> Box<dyn Work> {
    let keys = vec![Int64Array::from_iter_values(0..ROWS as i64)];
    Box::new(Windows { operator: operator(), keys, next: 0, fires: true })
}

struct Windows {
    operator: Box<dyn Operator>,
    keys: Vec<Int64Array>,
    next: usize,
    fires: bool,
}

impl Work for Windows {
    fn run(&mut self, steps: u64) {
        let mut out = Collector::new();
        for _ in 0..steps {
            let start = if self.fires { self.next as i64 * SIZE } else { 0 };
            let rows = rows(&self.keys[self.next % self.keys.len()], start);
            self.next += 1;
            block_on(self.operator.process(0, rows, &mut out)).expect("good rows");
            if self.fires {
                fire(&mut *self.operator, start + SIZE - 1, &mut out);
            }
        }
    }
}

fn fire(operator: &mut dyn Operator, watermark: i64, out: &mut Collector) {
    while block_on(operator.watermark(watermark, out)).expect("it fires") == Progress::More {
        discard(out);
    }
    discard(out);
}

fn rows(keys: &Int64Array, time: i64) -> Batch {
    let value = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let key = Arc::new(keys.clone());
    batch(vec![("key", DataType::Int64, key), ("value", DataType::Int64, value)], time)
}

fn random_keys(index: usize) -> Int64Array {
    let mut random = index as u64 + 1;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 48) as i64
    };
    (0..ROWS).map(|_| next()).collect()
}

fn operator() -> Box<dyn Operator> {
    let assigner = WindowAssigner::Tumbling { size: SIZE, offset: 0 };
    let key = vec![KeyColumn { index: 0, field: Field::new("key", DataType::Int64) }];
    let bounds = WindowBounds { start: None, end: Some("end".into()) };
    let origin = WindowSpec::origin_fields(&key, assigner, &bounds);
    let factory = factory(&guest::aggregate());
    let accumulator: Vec<Column> =
        factory.function().accumulator.iter().flat_map(|a| a.columns.clone()).collect();
    let made: Vec<Field> = accumulator.iter().map(Column::to_field).collect();
    let spec = WindowSpec {
        assigner,
        clock: Clock::Event,
        trigger: Trigger::AtEnd,
        purging: false,
        lateness: 0,
        late_port: None,
        key,
        function: WindowFunction::Aggregate { accumulator, version: 1, migrates_from: Vec::new() },
        input: ProjectionSpec {
            columns: vec![ReadColumn { index: 1, data_type: DataType::Int64, reject_null: false }],
            times: false,
        },
        function_key: Vec::new(),
        output: OutputSpec {
            function: "f".into(),
            ports: vec![PortLayout::new(Carry::Extend, &origin, &made)],
        },
        bounds,
        row_errors: RowErrorSpec::default(),
        lifecycle: Vec::new(),
        fired_rows: FIRED_ROWS,
    };
    window_operator(spec, factory.create(&place()).expect("an aggregate function"), place(), &|| None)
}

/// Milliseconds.
const SIZE: i64 = 10_000;
const BATCHES: usize = 8;

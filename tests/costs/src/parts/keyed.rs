//! The keyed process operator: keys found, values read and written through the guest's imports, timers set and fired.

use std::sync::Arc;

use arrow_array::Int64Array;
use millstream_operator::{Collector, FunctionFactory, Operator, Progress};
use millstream_operators::{
    KeySpec, OutputSpec, PortLayout, ProcessInput, ProcessOperator, ProcessSpec, ProjectionSpec, ReadColumn,
    RowErrorSpec, TimerSpec,
};
use millstream_types::{Batch, Carry, DataType, Field, Schema};

use super::{ROWS, Work};
use crate::{
    guest,
    support::{batch, block_on, discard, factory, place},
};

/// Batches of 8,192 keys out of 65,536, each with a value that is read and written.
pub(super) fn value_state() -> Box<dyn Work> {
    Box::new(Values(Keyed::new(&guest::process())))
}

/// The same, with a timer for each key of a batch, that fires before the next one.
pub(super) fn timers() -> Box<dyn Work> {
    let mut timers = Timers { keyed: Keyed::new(&guest::process_with_timers()), watermark: 0 };
    timers.pass();
    Box::new(timers)
}

struct Keyed {
    operator: ProcessOperator,
    batches: Vec<Batch>,
    next: usize,
}

impl Keyed {
    fn new(guest: &guest::Guest) -> Self {
        let factory = factory(guest);
        let states = factory.function().states.clone();
        let function = factory.create(&place()).expect("a process function");
        let operator = ProcessOperator::new(spec(states), function, place());
        Self { operator, batches: (0..BATCHES).map(keys_of).collect(), next: 0 }
    }

    fn process(&mut self) {
        let mut out = Collector::new();
        let batch = self.batches[self.next % BATCHES].clone();
        self.next += 1;
        block_on(self.operator.process(0, batch, &mut out)).expect("good rows");
        discard(&mut out);
    }
}

struct Values(Keyed);

impl Work for Values {
    fn run(&mut self, steps: u64) {
        (0..steps).for_each(|_| self.0.process());
    }
}

struct Timers {
    keyed: Keyed,
    watermark: i64,
}

impl Timers {
    /// Lets all timers pass that there are.
    fn pass(&mut self) {
        self.watermark += FURTHEST_TIMER;
        let mut out = Collector::new();
        while block_on(self.keyed.operator.watermark(self.watermark, &mut out)).expect("good timers")
            == Progress::More
        {
            discard(&mut out);
        }
        discard(&mut out);
    }
}

impl Work for Timers {
    fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.keyed.process();
            self.pass();
        }
    }
}

/// No key stands twice in a batch: an odd factor makes all multiples below a power of two different.
fn keys_of(index: usize) -> Batch {
    let rows = (index * ROWS..(index + 1) * ROWS).map(|row| (row * 40_503 % (BATCHES * ROWS)) as i64);
    let key = Arc::new(Int64Array::from_iter_values(rows));
    let value = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    batch(vec![("key", DataType::Int64, key), ("value", DataType::Int64, value)], 0)
}

fn spec(states: Vec<millstream_types::State>) -> ProcessSpec {
    let rows = [Field::new("key", DataType::Int64), Field::new("value", DataType::Int64)];
    let made = [Field::nullable("before", DataType::Int64)];
    let output = |origin: &[Field]| OutputSpec {
        function: "f".into(),
        ports: vec![PortLayout::new(Carry::Extend, origin, &made)],
    };
    let value = ReadColumn { index: 1, data_type: DataType::Int64, reject_null: false };
    ProcessSpec {
        inputs: vec![ProcessInput {
            rows: ProjectionSpec { columns: vec![value], times: false },
            key: vec![0],
            output: output(&rows),
        }],
        key: KeySpec { stored: vec![DataType::Int64], declared: Vec::new() },
        states,
        state_ttl: None,
        timers: TimerSpec {
            origin: Schema::new(rows[..1].to_vec()),
            key_of_column: vec![Some(0)],
            unfilled: vec![None],
            key: Schema::new(rows[..1].to_vec()),
            output: output(&rows[..1]),
        },
        row_errors: RowErrorSpec::default(),
        lifecycle: Vec::new(),
    }
}

const BATCHES: usize = 8;
/// How far behind the watermark the guest sets timers, in milliseconds.
const FURTHEST_TIMER: i64 = 1024;

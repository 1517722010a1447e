//! What the host part of windows costs: a row added to tumbling and to sliding windows, and a group (a
//! key in a window) fired. The function is native and does next to nothing.

use std::{pin::pin, sync::Arc, task::Context, task::Poll, task::Waker};

use arrow_array::{Array, ArrayRef, Int64Array, cast::AsArray, types::Int64Type};
use async_trait::async_trait;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use millstream_operator::{
    Accumulated, CallContext, Collector, Fired, FunctionError, FunctionOutput, KeyedInput, Operator,
    OperatorContext, Origin, Outcome, Progress, SystemClock, UserFunction,
};
use millstream_operators::{
    FIRED_ROWS, KeyColumn, OutputSpec, PortLayout, ProjectionSpec, ReadColumn, RowErrorSpec, Trigger,
    WindowAssigner, WindowBounds, WindowFunction, WindowSpec, window_operator,
};
use millstream_types::{
    Attempt, Batch, Carry, Cells, Clock, Column, Columns, DataType, Field, JobName, MaxParallelism,
    OperatorId, Schema, SubtaskIndex, Window,
};

const ROWS: usize = 8192;
/// Batches of a run, one million rows.
const BATCHES: usize = 122;

fn windows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("windows");
    group.sample_size(10);
    let tumbling = WindowAssigner::Tumbling { size: 10_000, offset: 0 };
    let sliding = WindowAssigner::Sliding { size: 60_000, slide: 1_000, offset: 0 };
    let cases = [
        ("tumbling", tumbling, 100_000, 10_000, 0, 1),
        ("sliding_60", sliding, 100_000, 120_000, 60_000, 60),
        ("sliding_60_few_keys", sliding, 2_000, 120_000, 60_000, 60),
    ];
    for (name, assigner, keys, span, warm_up, windows) in cases {
        let batches = batches(keys, span);
        group.throughput(Throughput::Elements((BATCHES * ROWS) as u64));
        group.bench_function(format!("add/{name}"), |bencher| {
            bencher.iter_batched(
                || operator(assigner),
                |mut o| add(&mut *o, &batches),
                BatchSize::PerIteration,
            );
        });
        group.throughput(Throughput::Elements(keys * windows));
        group.bench_function(format!("fire/{name}"), |bencher| {
            let filled = || {
                let mut operator = operator(assigner);
                add(&mut *operator, &batches);
                fire(&mut *operator, warm_up - 1);
                operator
            };
            bencher.iter_batched(filled, |mut o| fire(&mut *o, span - 1), BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn add(operator: &mut dyn Operator, batches: &[Batch]) {
    let mut out = Collector::new();
    for batch in batches {
        block_on(operator.process(0, batch.clone(), &mut out)).expect("good rows");
    }
}

fn fire(operator: &mut dyn Operator, watermark: i64) {
    let mut out = Collector::new();
    while block_on(operator.watermark(watermark, &mut out)).expect("fires") == Progress::More {
        while out.pop().is_some() {}
    }
}

/// Batches whose times go evenly from 0 to `span`, with random keys.
fn batches(keys: u64, span: i64) -> Vec<Batch> {
    let schema = Schema::new(vec![Field::new("key", DataType::Int64), Field::new("value", DataType::Int64)]);
    let mut random = 1u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let batch = |index: usize| {
        let key: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| (next() % keys) as i64)));
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
        let time = |row: usize| (index * ROWS + row) as i64 * span / (BATCHES * ROWS) as i64;
        Batch::new(&schema, vec![key, values], (0..ROWS).map(time).collect()).expect("fits")
    };
    (0..BATCHES).map(batch).collect()
}

fn operator(assigner: WindowAssigner) -> Box<dyn Operator> {
    let key = vec![KeyColumn { index: 0, field: Field::new("key", DataType::Int64) }];
    let bounds = WindowBounds { start: None, end: Some("end".into()) };
    let origin = WindowSpec::origin_fields(&key, assigner, &bounds);
    let count = Column { name: "count".into(), data_type: DataType::Int64, nullable: false };
    let sum = Column { name: "sum".into(), ..count };
    let spec = WindowSpec {
        assigner,
        clock: Clock::Event,
        trigger: Trigger::AtEnd,
        purging: false,
        lateness: 0,
        late_port: None,
        key,
        function: WindowFunction::Aggregate {
            accumulator: vec![count.clone(), sum.clone()],
            version: 1,
            migrates_from: Vec::new(),
        },
        input: ProjectionSpec {
            columns: vec![ReadColumn { index: 1, data_type: DataType::Int64, reject_null: false }],
            times: false,
        },
        function_key: Vec::new(),
        output: OutputSpec {
            function: "count".into(),
            ports: vec![PortLayout::new(Carry::Extend, &origin, &[count.to_field(), sum.to_field()])],
        },
        bounds,
        row_errors: RowErrorSpec::default(),
        lifecycle: Vec::new(),
        fired_rows: FIRED_ROWS,
    };
    let ctx = OperatorContext {
        job: JobName::new("bench"),
        operator: OperatorId::new("window"),
        subtask: SubtaskIndex(0),
        parallelism: 1,
        max_parallelism: MaxParallelism::DEFAULT,
        run: Default::default(),
        attempt: Attempt(0),
        parameters: Arc::default(),
        states: Arc::new([]),
        checkpoints: false,
        restored: false,
        metrics: Arc::default(),
        clock: Arc::new(SystemClock),
    };
    window_operator(spec, Box::new(CountAndSum), ctx, &|| None)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("the function never waits"),
    }
}

/// Counts rows and sums a column.
struct CountAndSum;

type Made<T> = Result<T, FunctionError>;

#[async_trait(?Send)]
impl UserFunction for CountAndSum {
    async fn open(&mut self, _: &mut CallContext) -> Made<()> {
        Ok(())
    }

    async fn map(&mut self, _: &Columns, _: Option<&[i64]>, _: &mut CallContext) -> Made<Outcome> {
        Err(refused())
    }

    async fn process(&mut self, _: &KeyedInput<'_>, _: &mut CallContext) -> Made<Outcome> {
        Err(refused())
    }

    async fn on_timer(&mut self, _: &Fired<'_>, _: &mut CallContext) -> Made<Outcome> {
        Err(refused())
    }

    async fn accumulate(
        &mut self,
        rows: &Columns,
        _: Option<&[i64]>,
        group_of_row: &[u32],
        accumulators: &Cells,
        _: &mut CallContext,
    ) -> Made<Accumulated> {
        let start = |i: usize| {
            let present = &accumulators.present;
            let values = numbers(&accumulators.values, i).iter().enumerate();
            values.map(|(group, &v)| if present.value(group) { v } else { 0 }).collect::<Vec<i64>>()
        };
        let (mut counts, mut sums) = (start(0), start(1));
        for (&value, &group) in numbers(rows, 0).iter().zip(group_of_row) {
            counts[group as usize] += 1;
            sums[group as usize] += value;
        }
        Ok(Accumulated { accumulators: columns([counts, sums]), rejected: Vec::new() })
    }

    async fn merge(&mut self, into: &Columns, other: &Columns, _: &mut CallContext) -> Made<Columns> {
        let add = |i| numbers(into, i).iter().zip(numbers(other, i)).map(|(a, b)| a + b).collect();
        Ok(columns([add(0), add(1)]))
    }

    async fn finish(
        &mut self,
        accumulators: &Columns,
        _: &Columns,
        _: &[u32],
        _: &[Window],
        _: &mut CallContext,
    ) -> Made<Outcome> {
        let (rows, columns) = (accumulators.rows, accumulators.arrays.clone());
        let output = FunctionOutput { port: 0, rows, origin: Origin::Each, columns };
        Ok(Outcome { outputs: vec![output], rejected: Vec::new() })
    }

    async fn apply(
        &mut self,
        _: &Columns,
        _: Option<&[i64]>,
        _: &[u32],
        _: &Columns,
        _: &[u32],
        _: &[Window],
        _: &mut CallContext,
    ) -> Made<Outcome> {
        Err(refused())
    }

    async fn before_barrier(&mut self, _: &mut CallContext) -> Made<Outcome> {
        Err(refused())
    }

    async fn end_of_input(&mut self, _: &mut CallContext) -> Made<Outcome> {
        Err(refused())
    }

    async fn close(&mut self) -> Made<()> {
        Ok(())
    }
}

fn refused() -> FunctionError {
    FunctionError::Refused { function: "count".into(), message: "it only aggregates".into() }
}

fn numbers(columns: &Columns, index: usize) -> &[i64] {
    columns.arrays[index].as_primitive::<Int64Type>().values()
}

fn columns(values: [Vec<i64>; 2]) -> Columns {
    let arrays = values.map(|v| Arc::new(Int64Array::from(v)) as ArrayRef);
    Columns::new(arrays[0].len(), arrays.into())
}

criterion_group!(benches, windows);
criterion_main!(benches);

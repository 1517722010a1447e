//! A window operator over `key:utf8 v:int64?` with functions to see through: an aggregate that counts and sums, and a
//! window function that lists what it gets.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use arrow_array::{Array, ArrayRef, Int64Array, StringViewArray, cast::AsArray, types::Int64Type};
use millstream_operator::{
    Accumulated, FunctionError, FunctionOutput, ManualClock, Operator, OperatorContext, Origin, Outcome,
    Rejected, RowPolicy,
};
use millstream_state::{CacheOptions, InMemoryStore, Overflow, Overflows, ReadTables, conformance::portable};
use millstream_types::{
    Carry, Cells, Clock, Column, Columns, DataType, Field, MaxParallelism, SnapshotRequest, StateFiles,
    StatePart, Window,
};

use crate::{
    KeyColumn, OutputSpec, PortLayout, ProjectionSpec, ReadColumn, RowErrorSpec, Trigger, WindowAssigner,
    WindowBounds, WindowFunction, WindowSpec,
    test_support::{
        Closures, block_on, context_with_clock, end_of_input, process, processing_time, schema,
        text_batch_of, watermark,
    },
    window_operator,
};

/// What differs from test to test.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) assigner: WindowAssigner,
    pub(super) clock: Clock,
    pub(super) trigger: Trigger,
    pub(super) purging: bool,
    pub(super) lateness: i64,
    pub(super) late_port: bool,
    pub(super) keyed: bool,
    /// All rows of a window instead of an aggregate.
    pub(super) contents: bool,
    pub(super) fired_rows: usize,
    pub(super) policy: RowPolicy,
}

impl Setup {
    pub(super) fn new(assigner: WindowAssigner) -> Self {
        Self {
            assigner,
            clock: Clock::Event,
            trigger: Trigger::AtEnd,
            purging: false,
            lateness: 0,
            late_port: false,
            keyed: true,
            contents: false,
            fired_rows: 3,
            policy: RowPolicy::Skip,
        }
    }

    pub(super) fn tumbling(size: i64) -> Self {
        Self::new(WindowAssigner::Tumbling { size, offset: 0 })
    }

    pub(super) fn sliding(size: i64, slide: i64) -> Self {
        Self::new(WindowAssigner::Sliding { size, slide, offset: 0 })
    }

    pub(super) fn session(gap: i64) -> Self {
        Self::new(WindowAssigner::Session { gap })
    }

    pub(super) fn global() -> Self {
        Self::new(WindowAssigner::Global)
    }

    pub(super) fn contents(self) -> Self {
        Self { contents: true, ..self }
    }

    pub(super) fn spec(&self) -> WindowSpec {
        let key: Vec<KeyColumn> = self
            .keyed
            .then(|| KeyColumn { index: 0, field: Field::new("key", DataType::Utf8) })
            .into_iter()
            .collect();
        let bounds = WindowBounds { start: Some("start".into()), end: Some("end".into()) };
        let origin = WindowSpec::origin_fields(&key, self.assigner, &bounds);
        let made = if self.contents {
            vec![Field::new("values", DataType::Utf8)]
        } else {
            vec![Field::new("count", DataType::Int64), Field::new("sum", DataType::Int64)]
        };
        let function = if self.contents {
            WindowFunction::Window { columns: columns(&["v"]) }
        } else {
            WindowFunction::Aggregate {
                accumulator: columns(&["count", "sum"]),
                version: 1,
                migrates_from: Vec::new(),
            }
        };
        WindowSpec {
            assigner: self.assigner,
            clock: self.clock,
            trigger: self.trigger,
            purging: self.purging,
            lateness: self.lateness,
            late_port: self.late_port.then_some(1),
            function_key: Vec::new(),
            key,
            function,
            input: ProjectionSpec {
                columns: vec![ReadColumn { index: 1, data_type: DataType::Int64, reject_null: true }],
                times: self.contents,
            },
            output: OutputSpec {
                function: "f".into(),
                ports: vec![PortLayout::new(Carry::Extend, &origin, &made)],
            },
            bounds,
            row_errors: RowErrorSpec { policy: self.policy, port: 2 },
            lifecycle: Vec::new(),
            fired_rows: self.fired_rows,
        }
    }

    /// An aggregate and a window function.
    pub(super) fn functions() -> Closures {
        Closures::default()
            .accumulate(|rows, _, groups, cells| Ok(accumulate(rows, groups, cells)))
            .merge(|into, other| Ok(merge(into, other)))
            .finish(|accumulators, _, _, _| Ok(finish(accumulators)))
            .apply(|rows, times, offsets, _, _, windows| apply(rows, times, offsets, windows))
    }

    /// The operator with its clock and context.
    pub(super) fn operator(
        &self,
        overflows: &Overflows<'_>,
    ) -> (Box<dyn Operator>, Arc<ManualClock>, OperatorContext) {
        let clock = Arc::new(ManualClock::new(0));
        let ctx = context_with_clock("window", clock.clone());
        let operator = window_operator(self.spec(), Box::new(Self::functions()), ctx.clone(), overflows);
        (operator, clock, ctx)
    }
}

/// Runs a script; each step's output stands under it, indented. Runs it again where memory has room for nothing, and for
/// little: but for the order in which a step emits, that comes out the same.
pub(super) fn run(setup: Setup, script: &[&str]) -> String {
    let in_memory = run_with(&setup, script, &|| None);
    for memory in [0, 3000] {
        let spilled = run_with(&setup, script, &|| Some(overflow(memory)));
        assert_eq!(unordered(&spilled), unordered(&in_memory), "with {memory} bytes of memory");
    }
    in_memory
}

/// A place for what has no room in so many bytes.
pub(super) fn overflow(memory: usize) -> Overflow {
    Overflow::new(Box::<InMemoryStore>::default(), CacheOptions { max: max(), memory })
}

fn max() -> MaxParallelism {
    MaxParallelism::new(4).expect("in range")
}

/// What each step emits, sorted.
fn unordered(output: &str) -> Vec<Vec<&str>> {
    let mut steps: Vec<Vec<&str>> = Vec::new();
    for line in output.lines() {
        match steps.last_mut().filter(|_| line.starts_with(' ')) {
            Some(step) => step.push(line),
            None => steps.push(vec![line]),
        }
    }
    steps.iter_mut().for_each(|step| step.sort_unstable());
    steps
}

fn run_with(setup: &Setup, script: &[&str], overflows: &Overflows<'_>) -> String {
    let (mut operator, clock, ctx) = setup.operator(overflows);
    let steps = script.iter().map(|step| run_step(&mut *operator, &clock, step));
    steps.collect::<String>() + &figures(&ctx)
}

/// Runs a script of which each step is taken by another operator, which goes on from a snapshot of the one before: in
/// memory, with an image as it is, and with one by halves.
pub(super) fn run_restored(setup: &Setup, script: &[&str]) -> String {
    let (mut operator, clock, ctx) = setup.operator(&|| Some(overflow(0)));
    let mut text = String::new();
    for (number, step) in script.iter().enumerate() {
        text += &run_step(&mut *operator, &clock, step);
        let request = SnapshotRequest::in_full(number as u64);
        let parts = block_on(operator.snapshot(&request)).expect("between two steps");
        let function = Box::new(Setup::functions());
        let (memory, parts) = match number % 4 {
            0 => (Some(3000), parts),
            1 => (None, portable(parts, max(), open)),
            2 => (Some(0), parts),
            _ => (Some(3000), parts.iter().flat_map(halves).collect()),
        };
        let made = || memory.map(overflow);
        operator = window_operator(setup.spec(), function, ctx.clone(), &made);
        block_on(operator.restore(parts)).expect("its own state");
    }
    text + &figures(&ctx)
}

fn open(files: &StateFiles) -> Box<dyn ReadTables> {
    Box::new(InMemoryStore::of(files).expect("its own image"))
}

/// An image as two that have half of the key groups each; anything else as it is.
fn halves(part: &StatePart) -> Vec<StatePart> {
    let Some(files) = &part.files else { return vec![part.clone()] };
    let half = |groups| StatePart { files: Some(files.of_groups(groups)), ..part.clone() };
    vec![half(0..max().groups() / 2), half(max().groups() / 2..max().groups())]
}

fn run_step(operator: &mut dyn Operator, clock: &ManualClock, step: &str) -> String {
    let output = match step.split_once(' ') {
        Some(("watermark", time)) => watermark(operator, time.parse().expect("a time")),
        Some(("time", time)) => {
            let now = time.parse().expect("a time");
            clock.set(now);
            processing_time(operator, now)
        }
        None if step == "end" => end_of_input(operator),
        _ => {
            let lines: Vec<&str> = step.split(';').map(str::trim).collect();
            process(operator, text_batch_of(&schema("key:utf8 v:int64?"), &lines))
        }
    };
    let output = output.unwrap_or_else(|e| format!("error: {e}\n"));
    output.lines().fold(format!("{step}\n"), |text, line| text + "    " + line + "\n")
}

/// What the metrics of an operator say.
fn figures(ctx: &OperatorContext) -> String {
    let mut text = String::new();
    let metrics = &ctx.metrics;
    let figures = [
        ("late dropped", metrics.late_dropped.load(Relaxed)),
        ("rejected", metrics.rejected.load(Relaxed)),
        ("timers dropped", metrics.timers_dropped.load(Relaxed)),
    ];
    figures.iter().filter(|(_, n)| *n > 0).for_each(|(name, n)| text += &format!("{name}: {n}\n"));
    text
}

fn columns(names: &[&str]) -> Vec<Column> {
    names
        .iter()
        .map(|n| Column { name: (*n).to_owned(), data_type: DataType::Int64, nullable: false })
        .collect()
}

pub(super) fn numbers(columns: &Columns, index: usize) -> &[i64] {
    columns.arrays[index].as_primitive::<Int64Type>().values()
}

fn int64(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

/// Counts and sums; refuses negative values.
pub(super) fn accumulate(rows: &Columns, groups: &[u32], cells: &Cells) -> Accumulated {
    let start = |i| {
        numbers(&cells.values, i).iter().zip(&cells.present).map(|(&v, p)| if p { v } else { 0 }).collect()
    };
    let (mut counts, mut sums): (Vec<i64>, Vec<i64>) = (start(0), start(1));
    let mut rejected = Vec::new();
    for (row, (&v, &group)) in numbers(rows, 0).iter().zip(groups).enumerate() {
        if v < 0 {
            rejected.push(Rejected { row: row as u32, reason: "negative".into(), retryable: false });
            continue;
        }
        counts[group as usize] += 1;
        sums[group as usize] += v;
    }
    Accumulated { accumulators: Columns::new(counts.len(), vec![int64(counts), int64(sums)]), rejected }
}

fn merge(into: &Columns, other: &Columns) -> Columns {
    let sum = |i| int64(numbers(into, i).iter().zip(numbers(other, i)).map(|(a, b)| a + b).collect());
    Columns::new(into.rows, vec![sum(0), sum(1)])
}

fn finish(accumulators: &Columns) -> Outcome {
    let (rows, columns) = (accumulators.rows, accumulators.arrays.clone());
    let output = FunctionOutput { port: 0, rows, origin: Origin::Each, columns };
    Outcome { outputs: vec![output], rejected: Vec::new() }
}

/// Lists the values of each window, with the time of each behind it.
fn apply(
    rows: &Columns,
    times: Option<&[i64]>,
    offsets: &[u32],
    windows: &[Window],
) -> Result<Outcome, FunctionError> {
    assert_eq!(offsets.len(), windows.len() + 1);
    assert_eq!(rows.arrays[0].len(), times.expect("asked for").len());
    let times = times.expect("asked for");
    let list = |run: &[u32]| {
        let show = |i: u32| format!("{}@{}", numbers(rows, 0)[i as usize], times[i as usize]);
        (run[0]..run[1]).map(show).collect::<Vec<_>>().join(",")
    };
    let lists: ArrayRef =
        Arc::new(offsets.windows(2).map(|run| Some(list(run))).collect::<StringViewArray>());
    let output = FunctionOutput { port: 0, rows: windows.len(), origin: Origin::Each, columns: vec![lists] };
    Ok(Outcome { outputs: vec![output], rejected: Vec::new() })
}

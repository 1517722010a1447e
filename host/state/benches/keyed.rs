//! Keyed state and timers by batches of 8,192 rows over random keys: how long a row takes.
//!
//! The limits to compare with: looking up and updating a value 12 to 18 ns, with a timer 27, an accumulator of a window
//! 13. What is measured is the CPU time of the thread, so that other load does not count; each group reports elements
//! (rows) per second.

use std::{
    hint::black_box,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use arrow_array::{ArrayRef, Int64Array, cast::AsArray, types::Int64Type};
use arrow_buffer::BooleanBuffer;
use criterion::{
    BatchSize, Criterion, Throughput, criterion_group, criterion_main,
    measurement::{Measurement, ValueFormatter, WallTime},
};
use millstream_state::{
    Grouping, KeyTable, KeyedContext, MemoryAccumulators, WindowAccumulators, WindowState,
};
use millstream_types::{
    Cells, Clock, Column, Columns, DataType, EncodedKeys, State, StateKind, Window, encode_keys,
};

const ROWS: usize = 8192;
const BATCHES: usize = 256;

/// Batches of random keys below `keys`, made once.
fn batches(keys: u64) -> Vec<ArrayRef> {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % keys) as i64
    };
    (0..BATCHES).map(|_| Arc::new((0..ROWS).map(|_| next()).collect::<Int64Array>()) as ArrayRef).collect()
}

fn encoded(batches: &[ArrayRef]) -> Vec<EncodedKeys> {
    let encode = |batch: &ArrayRef| {
        let mut keys = EncodedKeys::new();
        encode_keys(&[batch], ROWS, &mut keys).expect("short keys");
        keys
    };
    batches.iter().map(encode).collect()
}

fn sum() -> Vec<Column> {
    vec![Column { name: "sum".into(), data_type: DataType::Int64, nullable: false }]
}

fn state() -> State {
    let (name, redistribution) = ("sum".into(), Default::default());
    State {
        name,
        kind: StateKind::Value,
        columns: sum(),
        version: 1,
        migrates_from: Vec::new(),
        redistribution,
    }
}

/// What an instance of a function would do: one more for each row of a key.
fn count(cells: &Cells, group_of_row: &[u32]) -> Columns {
    let mut sums = cells.values.arrays[0].as_primitive::<Int64Type>().values().to_vec();
    group_of_row.iter().for_each(|&group| sums[group as usize] += 1);
    Columns::new(sums.len(), vec![Arc::new(Int64Array::from(sums))])
}

fn encode(c: &mut Criterion<CpuTime>) {
    let batches = batches(1_000_000);
    let (mut keys, mut at) = (EncodedKeys::new(), 0);
    let mut group = c.benchmark_group("encode");
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("int64", |b| {
        b.iter(|| {
            at = (at + 1) % BATCHES;
            encode_keys(&[&batches[at]], ROWS, &mut keys).expect("short keys");
        });
    });
}

fn resolve(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("resolve");
    group.throughput(Throughput::Elements(ROWS as u64));
    for keys in [10_000, 1_000_000] {
        let keys_of_batch = encoded(&batches(keys));
        let (mut table, mut grouping, mut at) = (KeyTable::new(), Grouping::default(), 0);
        group.bench_function(format!("{keys} keys"), |b| {
            b.iter(|| {
                at = (at + 1) % BATCHES;
                grouping.start(ROWS);
                table.resolve(&keys_of_batch[at], &mut grouping);
                black_box(grouping.groups())
            });
        });
    }
}

/// A call as the process operator makes it: keys, values, timers.
fn call(keyed: &mut KeyedContext, keys: &EncodedKeys, timers_at: Option<i64>, all: &[u32]) {
    keyed.begin(keys).expect("in memory");
    let id = keyed.state(StateKind::Value, "sum").expect("declared");
    let positions = &all[..keyed.keys()];
    let cells = keyed.read_values(id, positions).expect("in memory");
    let values = count(&cells, &keyed.grouping().group_of_row);
    let present = vec![true; values.rows].into();
    let before = cells.present;
    keyed.write_values(id, positions, Cells { present, values }).expect("in memory");
    if let Some(time) = timers_at {
        let new: Vec<u32> = positions.iter().copied().filter(|&k| !before.value(k as usize)).collect();
        let times: Vec<i64> = new.iter().map(|&key| time + i64::from(key) / 41).collect();
        keyed.set_timers(Clock::Event, &new, &times).expect("in memory");
    }
    keyed.commit().expect("in memory");
}

fn values(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("value state");
    group.throughput(Throughput::Elements(ROWS as u64));
    let all: Vec<u32> = (0..ROWS as u32).collect();
    for keys in [10_000, 1_000_000] {
        let keys_of_batch = encoded(&batches(keys));
        let (mut keyed, mut at) = (KeyedContext::in_memory(&[state()]), 0);
        group.bench_function(format!("{keys} keys"), |b| {
            b.iter(|| {
                at = (at + 1) % BATCHES;
                call(&mut keyed, &keys_of_batch[at], None, &all);
            });
        });
    }
}

/// As the benchmark `process` has it: the first row of a key sets a timer, which clears the key's state.
fn timers(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("value state and a timer for each new key");
    group.throughput(Throughput::Elements(ROWS as u64));
    let all: Vec<u32> = (0..ROWS as u32).collect();
    let keys_of_batch = encoded(&batches(1_000_000));
    let (mut keyed, mut at, mut now) = (KeyedContext::in_memory(&[state()]), 0, 0);
    group.bench_function("1000000 keys", |b| {
        b.iter(|| {
            at = (at + 1) % BATCHES;
            now += 200;
            call(&mut keyed, &keys_of_batch[at], Some(now + 30_000), &all);
            fire(&mut keyed, now, &all);
        });
    });
}

fn fire(keyed: &mut KeyedContext, now: i64, all: &[u32]) {
    let id = keyed.state(StateKind::Value, "sum").expect("declared");
    loop {
        let fired = keyed.begin_timers(Clock::Event, now, ROWS).expect("in memory");
        if fired == 0 {
            break;
        }
        let mut cells = keyed.read_values(id, &all[..fired]).expect("in memory");
        cells.present = BooleanBuffer::new_unset(fired);
        keyed.write_values(id, &all[..fired], cells).expect("in memory");
        keyed.commit().expect("in memory");
    }
}

fn windows(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("window accumulators");
    group.throughput(Throughput::Elements(ROWS as u64));
    let keys_of_batch = encoded(&batches(100_000));
    let (mut state, mut at) = (MemoryAccumulators::new(&sum()), 0);
    let window = Window::new(0, 10);
    group.bench_function("add, 100000 keys", |b| {
        b.iter(|| {
            at = (at + 1) % BATCHES;
            state.begin(ROWS).expect("in memory");
            state.resolve(window, &keys_of_batch[at], None).expect("in memory");
            let sums = count(&state.read().expect("in memory"), &state.grouping().group_of_row);
            state.write(&sums, &[]).expect("fits");
        });
    });
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("scan and clear, 100000 keys", |b| {
        b.iter_batched(
            || filled(&keys_of_batch, window),
            |mut state| {
                let mut cursor = Some(millstream_state::Cursor::default());
                while let Some(at) = cursor {
                    cursor = black_box(state.scan(window, at, ROWS).expect("in memory")).next;
                }
                state.clear(window).expect("in memory");
            },
            BatchSize::LargeInput,
        );
    });
}

/// A window with nearly all of 100,000 keys.
fn filled(keys_of_batch: &[EncodedKeys], window: Window) -> MemoryAccumulators {
    let mut state = MemoryAccumulators::new(&sum());
    for keys in &keys_of_batch[..64] {
        state.begin(ROWS).expect("in memory");
        state.resolve(window, keys, None).expect("in memory");
        let sums = count(&state.read().expect("in memory"), &state.grouping().group_of_row);
        state.write(&sums, &[]).expect("fits");
    }
    state
}

/// CPU time of the measuring thread as Linux accounts it, to a few milliseconds; elsewhere wall time.
struct CpuTime;

impl CpuTime {
    fn now() -> Duration {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|n| n.parse().ok());
        nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
    }
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Measurement for CpuTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        Self::now()
    }

    fn end(&self, start: Duration) -> Duration {
        Self::now().saturating_sub(start).max(Duration::from_nanos(1))
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .sample_size(20);
    targets = encode, resolve, values, timers, windows
}
criterion_main!(benches);

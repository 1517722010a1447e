//! How long a subtask waits at a checkpoint of much state in memory, and how much a checkpoint writes.
//!
//! Ten million keys, each with a text of 100 bytes; between two checkpoints one in a hundred changes. Figures are of the
//! part of a checkpoint for which a subtask waits: finding and copying out what has changed. The limits to compare with:
//! 20 ms at the 99th percentile, 3 % of the state written, twice the state read by a restore, which takes 10 s.
//!
//! `cargo run --release -p millstream-state --example checkpoint_pause [KEYS [CHECKPOINTS]]`

use std::{
    collections::BTreeMap,
    env,
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant},
};

use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use millstream_state::{KeyedBackend, MemoryBackend};
use millstream_types::{
    Cells, ChunkKind, Column, Columns, DataType, EncodedKeys, KeyGroup, MaxParallelism, SnapshotRequest,
    State, StateChunk, StateForm, StateKind, StatePart, encode_keys,
};

/// What the command has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1).map(|argument| argument.parse().ok());
    let keys = arguments.next().flatten().unwrap_or(10_000_000);
    let checkpoints = arguments.next().flatten().unwrap_or(300);
    let mut out = io::stdout();
    let mut job = Job::new(keys as u64);
    let whole = job.checkpoint();
    writeln!(out, "{keys} keys, {} MB; the first checkpoint took {:?}", whole.written / MB, whole.pause)?;
    let mut taken: Vec<Taken> = (0..checkpoints).map(|_| job.change_and_checkpoint(keys / 100)).collect();
    let written: usize = taken.iter().map(|t| t.written).sum();
    let most = taken.iter().map(|t| t.written).max().unwrap_or(0);
    let changes = taken.iter().map(|t| t.changes).sum::<usize>() / checkpoints;
    let share = |of: &[Taken], share: f64| ((of.len() - 1) as f64 * share) as usize;
    taken.sort_by_key(|t| t.pause);
    let pause = |s| taken[share(&taken, s)].pause;
    writeln!(out, "pause: median {:?}, p99 {:?}, most {:?}", pause(0.5), pause(0.99), pause(1.0))?;
    taken.sort_by_key(|t| t.cpu);
    let cpu = |s| taken[share(&taken, s)].cpu;
    writeln!(out, "processor: median {:?}, p99 {:?}, most {:?}", cpu(0.5), cpu(0.99), cpu(1.0))?;
    writeln!(
        out,
        "written by a checkpoint: {:.2} % of the state, most {:.2} %; changes alone {:.2} %",
        percent(written / checkpoints, whole.written),
        percent(most, whole.written),
        percent(changes, whole.written),
    )?;
    let read: usize = job.chains.values().flatten().flat_map(|(_, chain)| chain).map(|c| c.bytes.len()).sum();
    let since = Instant::now();
    let restored = job.restored();
    writeln!(
        out,
        "a restore reads {:.0} % of the state, {:?} for {} keys",
        percent(read, whole.written),
        since.elapsed(),
        restored.key_count()
    )
}

/// An operator with its state, and what its last checkpoint has.
struct Job {
    states: Vec<State>,
    backend: MemoryBackend,
    keys: u64,
    seed: u64,
    chains: BTreeMap<(String, StateForm), BTreeMap<KeyGroup, Vec<StateChunk>>>,
    last: u64,
}

/// A checkpoint that has been taken.
struct Taken {
    pause: Duration,
    /// The processor's time in it: less than the pause where others want the processor too.
    cpu: Duration,
    written: usize,
    changes: usize,
}

impl Job {
    fn new(keys: u64) -> Self {
        let columns = vec![Column { name: "text".into(), data_type: DataType::Utf8, nullable: false }];
        let (name, redistribution) = ("text".into(), Default::default());
        let states = vec![State {
            name,
            kind: StateKind::Value,
            columns,
            version: 1,
            redistribution,
            migrates_from: Vec::new(),
        }];
        let backend = MemoryBackend::new(&states);
        let mut job = Self { states, backend, keys, seed: SEED, chains: BTreeMap::new(), last: 0 };
        let all: Vec<i64> = (0..keys as i64).collect();
        all.chunks(BATCH).for_each(|keys| job.write(keys));
        job
    }

    fn write(&mut self, keys: &[i64]) {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.iter().copied()));
        let mut encoded = EncodedKeys::new();
        encode_keys(&[&column], keys.len(), &mut encoded).expect("short keys");
        self.backend.begin(&encoded).expect("in memory");
        let groups: Vec<u32> = (0..self.backend.grouping().groups() as u32).collect();
        let text = |i: &u32| format!("{:0100}", u64::from(*i) + self.seed % 1000);
        let values = Columns::new(
            groups.len(),
            vec![Arc::new(StringViewArray::from_iter_values(groups.iter().map(text)))],
        );
        let present = vec![true; groups.len()].into();
        self.backend.write_values(0, &groups, Cells { present, values }).expect("in memory");
        self.backend.commit().expect("in memory");
    }

    fn change_and_checkpoint(&mut self, changes: usize) -> Taken {
        let keys: Vec<i64> = (0..changes).map(|_| (self.next() % self.keys) as i64).collect();
        keys.chunks(BATCH).for_each(|keys| self.write(keys));
        self.checkpoint()
    }

    fn checkpoint(&mut self) -> Taken {
        let base = (self.last > 0).then_some(self.last);
        self.last += 1;
        let request = SnapshotRequest { checkpoint: self.last, base, base_of_later: true };
        let (since, cpu) = (Instant::now(), cpu_time());
        let parts =
            self.backend.snapshot(&self.states, MaxParallelism::DEFAULT, &request).expect("in memory");
        let (pause, cpu) = (since.elapsed(), cpu_time().saturating_sub(cpu));
        let written = parts.iter().map(StatePart::len).sum();
        let of_changes = parts.iter().flat_map(|p| &p.chunks).filter(|c| c.kind == ChunkKind::Changes);
        let changes = of_changes.map(|c| c.bytes.len()).sum();
        parts.into_iter().for_each(|part| self.keep(part));
        Taken { pause, cpu, written, changes }
    }

    fn keep(&mut self, part: StatePart) {
        let chains = self.chains.entry((part.name, part.form)).or_default();
        for chunk in part.chunks {
            let chain = chains.entry(chunk.key_group.expect("keyed")).or_default();
            if chunk.kind == ChunkKind::Whole {
                chain.clear();
            }
            chain.push(chunk);
        }
    }

    fn restored(&mut self) -> MemoryBackend {
        let mut backend = MemoryBackend::new(&self.states);
        for ((name, form), chains) in std::mem::take(&mut self.chains) {
            let chunks = chains.into_values().flatten().collect();
            let columns = if form == StateForm::Value { self.states[0].columns.clone() } else { Vec::new() };
            let part =
                StatePart { name, form, version: 1, columns, base: Some(self.last), chunks, files: None };
            backend.restore(&self.states, &part).expect("its own state");
        }
        backend
    }

    fn next(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }
}

/// The time that this thread has had a processor, as Linux accounts it.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).map_or(Duration::ZERO, Duration::from_nanos)
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

const BATCH: usize = 8192;
const MB: usize = 1_000_000;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

//! Whatever happens between snapshots, and whatever becomes of them: a restore has what was there.

use std::collections::BTreeMap;

use arrow_array::{Int64Array, StringViewArray};
use millstream_types::{
    Cells, ChunkKind, Clock, Columns, EncodedKeys, KeyGroup, MaxParallelism, Runs, SnapshotRequest,
    StateChunk, StateForm, StatePart, hash_key,
};
use proptest::prelude::*;

use super::*;
use crate::{MapKeys, conformance, fold};

/// The chunks of each state by key group, as the metadata of a checkpoint names them.
type Chains = BTreeMap<(String, StateForm), BTreeMap<KeyGroup, Vec<StateChunk>>>;

/// A backend with its checkpoints: what a run of a job has.
struct Run {
    backend: MemoryBackend,
    states: Vec<State>,
    /// Complete ones.
    complete: BTreeMap<u64, Chains>,
    last: u64,
}

fn max() -> MaxParallelism {
    MaxParallelism::new(8).expect("in range")
}

impl Run {
    fn new() -> Self {
        let states = conformance::states();
        let mut backend = MemoryBackend::new(&states);
        // Even the smallest state is written as changes here.
        backend.whole_bytes = usize::MAX;
        Self { backend, states, complete: BTreeMap::new(), last: 0 }
    }

    /// Takes a snapshot, which becomes a checkpoint if it `completes`. Returns the bytes that were written.
    fn checkpoint(&mut self, completes: bool) -> usize {
        self.last += 1;
        let base = self.complete.keys().last().copied();
        let request = SnapshotRequest { checkpoint: self.last, base, base_of_later: true };
        let parts = self.backend.snapshot(&self.states, max(), &request).expect("between calls");
        self.backend.whole_bytes = usize::MAX;
        let written = parts.iter().map(StatePart::len).sum();
        let mut chains = Chains::new();
        for part in parts {
            let name = (part.name.clone(), part.form);
            let before = part.base.and_then(|base| self.complete[&base].get(&name).cloned());
            let chain = chains.entry(name).or_insert(before.unwrap_or_default());
            for chunk in part.chunks {
                let of_group = chain.entry(chunk.key_group.expect("keyed")).or_default();
                if chunk.kind == ChunkKind::Whole {
                    of_group.clear();
                }
                of_group.push(chunk);
            }
        }
        if completes {
            self.complete.insert(self.last, chains);
        }
        written
    }

    /// What the last checkpoint has of some key groups, in another backend.
    fn restored(&self, groups: std::ops::Range<u16>, base: Option<u64>) -> MemoryBackend {
        let mut backend = MemoryBackend::new(&self.states);
        let Some((_, chains)) = self.complete.last_key_value() else { return backend };
        for ((name, form), by_group) in chains {
            let of_groups = by_group.range(KeyGroup(groups.start)..KeyGroup(groups.end));
            let chunks = of_groups.flat_map(|(_, chunks)| chunks).cloned().collect();
            let columns = self.states.iter().find(|s| s.name == *name).map(|s| s.columns.clone());
            let columns = columns.unwrap_or_default();
            let (name, form) = (name.clone(), *form);
            let part = StatePart { name, form, version: 1, columns, base, chunks, files: None };
            // All of it, if it is not to be built on, may as well have its changes applied before.
            let folded = fold(&part).expect("its own chunks");
            let part = if base.is_none() && groups == (0..8) { folded.as_ref() } else { &part };
            backend.restore(&self.states, part).expect("its own state");
        }
        backend.whole_bytes = usize::MAX;
        backend
    }
}

/// All that a backend has, by state and key.
fn dump(backend: &mut MemoryBackend) -> BTreeMap<(String, StateForm, Vec<u8>), Vec<u8>> {
    let (states, mut all) = (conformance::states(), BTreeMap::new());
    for (at, content) in backend.contents().iter().enumerate() {
        let Some(content) = content else { continue };
        let part = content.part(states.get(at), None, Vec::new()).expect("of a state or a clock");
        for slot in backend.keys.occupied().filter(|&slot| content.has(slot)) {
            let mut bytes = Vec::new();
            content.write(&[slot], &mut bytes);
            all.insert((part.name.clone(), part.form, backend.keys.key(slot).to_vec()), bytes);
        }
    }
    all
}

#[derive(Clone, Debug)]
enum Step {
    /// Writes into state 0, 1 or 2, timers of a clock (3, 4), or clears there.
    Write {
        keys: Vec<u8>,
        store: usize,
        clear: bool,
        value: i64,
        good: bool,
    },
    Fire(i64),
    Checkpoint {
        completes: bool,
    },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let keys = prop::collection::btree_set(0u8..40, 1..6);
    let write = (keys, 0usize..5, prop::bool::weighted(0.4), 0i64..50, prop::bool::weighted(0.9));
    let write = write.prop_map(|(keys, store, clear, value, good)| {
        let keys = keys.into_iter().collect();
        Step::Write { keys, store, clear, value, good }
    });
    prop_oneof![
        12 => write,
        1 => (0i64..50).prop_map(Step::Fire),
        4 => prop::bool::weighted(0.6).prop_map(|completes| Step::Checkpoint { completes }),
        1 => Just(Step::Restart),
    ]
}

fn rows(count: usize, value: i64) -> Columns {
    let numbers = Int64Array::from_iter_values((0..count as i64).map(|i| value + i));
    let texts = StringViewArray::from_iter((0..count).map(|i| (i % 2 == 0).then(|| format!("text {value}"))));
    Columns::new(count, vec![std::sync::Arc::new(numbers), std::sync::Arc::new(texts)])
}

fn write(backend: &mut MemoryBackend, keys: &[u8], store: usize, clear: bool, value: i64, good: bool) {
    let mut encoded = EncodedKeys::new();
    keys.iter().for_each(|&key| encoded.push(&[key], hash_key(&[key])));
    backend.begin(&encoded).expect("in memory");
    let all: Vec<u32> = (0..keys.len() as u32).collect();
    let count = all.len();
    let cells = || Cells { present: vec![!clear; count].into(), values: rows(count, value) };
    let written = match store {
        0 => backend.write_values(0, &all, cells()),
        1 if clear => backend.clear_lists(1, &all),
        1 => {
            let runs = Runs { offsets: (0..=count as u32).collect(), items: rows(count, value) };
            backend.append_lists(1, &all, runs)
        }
        2 => {
            let (offsets, bytes) = ((0..=count as u32).collect::<Vec<_>>(), vec![value as u8 % 3; count]);
            backend.write_entries(2, &all, MapKeys { offsets: &offsets, bytes: &bytes }, cells())
        }
        _ => {
            let clock = if store == 3 { Clock::Event } else { Clock::Processing };
            let times = vec![value; count];
            if clear {
                backend.clear_timers(clock, &all, &times)
            } else {
                backend.set_timers(clock, &all, &times)
            }
        }
    };
    written.expect("in memory");
    if good {
        backend.commit().expect("in memory");
    } else {
        backend.rollback();
    }
}

fn fire(backend: &mut MemoryBackend, now: i64) {
    while backend.begin_timers(Clock::Event, now, 3).expect("in memory") > 0 {
        backend.commit().expect("in memory");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_restore_has_what_the_last_complete_checkpoint_had(steps in prop::collection::vec(step(), 1..60)) {
        let mut run = Run::new();
        let mut expected = BTreeMap::new();
        for step in steps {
            match step {
                Step::Write { keys, store, clear, value, good } => {
                    write(&mut run.backend, &keys, store, clear, value, good);
                }
                Step::Fire(now) => fire(&mut run.backend, now),
                Step::Checkpoint { completes } => {
                    run.checkpoint(completes);
                    if completes {
                        expected = dump(&mut run.backend);
                    }
                }
                Step::Restart => run.backend = run.restored(0..8, run.complete.keys().last().copied()),
            }
            let mut whole = run.restored(0..8, None);
            prop_assert_eq!(&dump(&mut whole), &expected);
            // At another parallelism, each gets what is its own.
            let mut parts = [0..3, 3..8].map(|groups| run.restored(groups, None));
            prop_assert_eq!(parts.iter().map(|p| p.keys.len()).sum::<usize>(), whole.keys.len());
            let of_parts: BTreeMap<_, _> = parts.iter_mut().flat_map(dump).collect();
            prop_assert_eq!(&of_parts, &expected);
        }
    }
}

/// Of 1,000 keys with a hundred bytes each, 10 change between two checkpoints.
#[test]
fn in_the_long_run_changes_are_written_and_read_a_few_times() {
    let mut run = Run::new();
    let key = |i: u32| i.to_be_bytes();
    let update = |run: &mut Run, keys: std::ops::Range<u32>| {
        let mut encoded = EncodedKeys::new();
        keys.clone().for_each(|i| encoded.push(&key(i % 1000), hash_key(&key(i % 1000))));
        run.backend.begin(&encoded).expect("in memory");
        let all: Vec<u32> = (0..keys.len() as u32).collect();
        let texts = StringViewArray::from_iter_values(all.iter().map(|i| format!("{i:0100}")));
        let numbers = Int64Array::from_iter_values(all.iter().map(|&i| i64::from(i)));
        let values = Columns::new(all.len(), vec![std::sync::Arc::new(numbers), std::sync::Arc::new(texts)]);
        let present = vec![true; all.len()].into();
        run.backend.write_values(0, &all, Cells { present, values }).expect("in memory");
        run.backend.commit().expect("in memory");
    };
    update(&mut run, 0..1000);
    let whole = run.checkpoint(true);
    assert!(whole > 100_000, "{whole}");
    let (mut written, mut most) = (0, 0);
    for round in 0..400 {
        update(&mut run, round * 10..round * 10 + 10);
        let bytes = run.checkpoint(round % 7 != 0);
        written += bytes;
        most = most.max(bytes);
        let chains = run.complete.last_key_value().expect("there is one").1;
        let read: usize = chains.values().flat_map(BTreeMap::values).flatten().map(|c| c.bytes.len()).sum();
        assert!(read <= 2 * whole, "{read} of {whole}");
        run.complete.retain(|&id, _| id + 10 > run.last);
    }
    assert!(written <= 400 * whole * 3 / 100, "{written} in 400 rounds of {whole}");
    assert_eq!(dump(&mut run.restored(0..8, None)), dump(&mut run.backend));
}

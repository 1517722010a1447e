//! The cache against the memory backend: whatever is done to both, both say the same.

use std::sync::Arc;

use arrow_array::{Array, Int64Array, StringViewArray, cast::AsArray, types::Int64Type};
use millstream_types::{Cells, Columns, Runs, StateFiles, hash_key};
use proptest::prelude::*;

use super::*;
use crate::{InMemoryStore, conformance};

fn cached(states: &[State], memory: usize) -> CachedBackend {
    let max = MaxParallelism::new(8).expect("in range");
    CachedBackend::new(states, Box::new(InMemoryStore::default()), CacheOptions { max, memory })
}

#[test]
fn conforms_whatever_fits() {
    for memory in [0, 2_000, 50_000, usize::MAX] {
        let open = |files: &StateFiles| -> Box<dyn crate::ReadTables> {
            Box::new(InMemoryStore::of(files).expect("its own image"))
        };
        conformance::run_with(|states| Box::new(cached(states, memory)), open);
    }
}

/// Memory for about ten of the keys of these tests.
const TEN_KEYS: usize = 6_000;

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<(u8, Option<i64>)>),
    Append(Vec<(u8, Vec<i64>)>),
    ClearLists(Vec<u8>),
    Entries(Vec<(u8, u8, Option<i64>)>),
    ClearMaps(Vec<u8>),
    Set(bool, Vec<(u8, i64)>),
    Clear(bool, Vec<(u8, i64)>),
    Read(Vec<u8>),
    Scan(Vec<u8>, u8, u8),
}

#[derive(Clone, Debug)]
enum Call {
    Keys { steps: Vec<Step>, commit: bool },
    Round { processing: bool, now: i64, limit: usize, commit: bool },
    Drop { processing: bool },
    Snapshot,
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..40, 1..12)
}

fn step() -> impl Strategy<Value = Step> {
    let some = |n| prop::option::weighted(0.7, 0i64..n);
    prop_oneof![
        3 => prop::collection::vec((0u8..40, some(1000)), 1..12).prop_map(Step::Write),
        2 => prop::collection::vec((0u8..40, prop::collection::vec(0i64..9, 0..4)), 1..6).prop_map(Step::Append),
        1 => keys().prop_map(Step::ClearLists),
        4 => prop::collection::vec((0u8..40, 0u8..6, some(1000)), 1..20).prop_map(Step::Entries),
        1 => prop::collection::vec(0u8..40, 1..3).prop_map(Step::ClearMaps),
        2 => (any::<bool>(), prop::collection::vec((0u8..40, 0i64..100), 1..8)).prop_map(|(p, t)| Step::Set(p, t)),
        1 => (any::<bool>(), prop::collection::vec((0u8..40, 0i64..100), 1..8)).prop_map(|(p, t)| Step::Clear(p, t)),
        2 => keys().prop_map(Step::Read),
        2 => (keys(), 0u8..6, 1u8..5).prop_map(|(k, s, l)| Step::Scan(k, s, l)),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => (prop::collection::vec(step(), 1..4), prop::bool::weighted(0.9))
            .prop_map(|(steps, commit)| Call::Keys { steps, commit }),
        3 => (any::<bool>(), 0i64..100, 1usize..6, prop::bool::weighted(0.8))
            .prop_map(|(processing, now, limit, commit)| Call::Round { processing, now, limit, commit }),
        1 => any::<bool>().prop_map(|processing| Call::Drop { processing }),
        1 => Just(Call::Snapshot),
    ]
}

fn clock(processing: bool) -> Clock {
    if processing { Clock::Processing } else { Clock::Event }
}

fn columns(rows: impl Iterator<Item = i64> + Clone) -> Columns {
    let texts: StringViewArray = rows
        .clone()
        .map(|n| {
            (n % 3 != 0).then(|| {
                if n % 2 == 0 { "short".to_owned() } else { format!("a longer text than has room {n}") }
            })
        })
        .collect();
    let numbers: Int64Array = rows.collect();
    Columns::new(numbers.len(), vec![Arc::new(numbers), Arc::new(texts)])
}

fn show(columns: &Columns) -> Vec<String> {
    let (numbers, texts) =
        (columns.arrays[0].as_primitive::<Int64Type>(), columns.arrays[1].as_string_view());
    (0..columns.rows)
        .map(|i| format!("{} {}", numbers.value(i), if texts.is_null(i) { "-" } else { texts.value(i) }))
        .collect()
}

fn show_cells(cells: &Cells) -> Vec<Option<String>> {
    show(&cells.values)
        .into_iter()
        .zip(&cells.present)
        .map(|(text, present)| present.then_some(text))
        .collect()
}

fn cells(rows: &[Option<i64>]) -> Cells {
    let values = columns(rows.iter().map(|r| r.unwrap_or_default()).collect::<Vec<_>>().into_iter());
    Cells { present: rows.iter().map(Option::is_some).collect(), values }
}

/// The positions of the states of [`conformance::states`].
const VALUE: usize = 0;
const LIST: usize = 1;
const MAP: usize = 2;

fn name(key: u8) -> Vec<u8> {
    format!("key {key}").into_bytes()
}

fn begin_all(backend: &mut dyn KeyedBackend) {
    let mut all = EncodedKeys::new();
    (0..40).map(name).for_each(|key| all.push(&key, hash_key(&key)));
    backend.begin(&all).expect("a call");
}

fn map_keys(keys: impl Iterator<Item = u8>) -> (Vec<u32>, Vec<u8>) {
    let bytes: Vec<u8> = keys.collect();
    ((0..=bytes.len() as u32).collect(), bytes)
}

/// Takes a step of a call over the keys that are named and says what is to be seen. The call has just these keys, so that
/// others can be evicted.
fn take(backend: &mut dyn KeyedBackend, step: &Step, position: &impl Fn(u8) -> u32) -> Vec<String> {
    let at = |keys: &mut dyn Iterator<Item = u8>| keys.map(position).collect::<Vec<u32>>();
    match step {
        Step::Write(rows) => {
            let values = cells(&rows.iter().map(|r| r.1).collect::<Vec<_>>());
            backend.write_values(VALUE, &at(&mut rows.iter().map(|r| r.0)), values).expect("a write");
        }
        Step::Append(runs) => {
            let mut offsets = vec![0];
            runs.iter().for_each(|(_, run)| offsets.push(offsets.last().expect("one") + run.len() as u32));
            let items = columns(runs.iter().flat_map(|(_, run)| run.iter().copied()));
            let runs_at = at(&mut runs.iter().map(|r| r.0));
            backend.append_lists(LIST, &runs_at, Runs { offsets, items }).expect("a write");
        }
        Step::ClearLists(keys) => backend.clear_lists(LIST, &at(&mut keys.iter().copied())).expect("a write"),
        Step::Entries(entries) => {
            let (offsets, bytes) = map_keys(entries.iter().map(|e| e.1));
            let values = cells(&entries.iter().map(|e| e.2).collect::<Vec<_>>());
            let keys = at(&mut entries.iter().map(|e| e.0));
            let map_keys = MapKeys { offsets: &offsets, bytes: &bytes };
            backend.write_entries(MAP, &keys, map_keys, values).expect("a write");
        }
        Step::ClearMaps(keys) => backend.clear_maps(MAP, &at(&mut keys.iter().copied())).expect("a write"),
        Step::Set(processing, timers) => {
            let (keys, times): (Vec<u32>, Vec<i64>) = timers.iter().map(|&(k, t)| (position(k), t)).unzip();
            backend.set_timers(clock(*processing), &keys, &times).expect("a timer");
        }
        Step::Clear(processing, timers) => {
            let (keys, times): (Vec<u32>, Vec<i64>) = timers.iter().map(|&(k, t)| (position(k), t)).unzip();
            backend.clear_timers(clock(*processing), &keys, &times).expect("a timer");
        }
        Step::Read(keys) => return read(backend, &at(&mut keys.iter().copied())),
        Step::Scan(keys, start, limit) => {
            let keys = at(&mut keys.iter().copied());
            let entries =
                backend.scan_entries(MAP, &keys, Some(&[*start]), u32::from(*limit)).expect("a scan");
            let found = format!("{:?} {:?}", entries.offsets, entries.key_bytes);
            return [found].into_iter().chain(show(&entries.values)).collect();
        }
    }
    Vec::new()
}

/// All that some keys have.
fn read(backend: &mut dyn KeyedBackend, keys: &[u32]) -> Vec<String> {
    let mut text: Vec<String> = show_cells(&backend.read_values(VALUE, keys).expect("a read"))
        .iter()
        .map(|c| format!("{c:?}"))
        .collect();
    let lists = backend.read_lists(LIST, keys).expect("a read");
    text.push(format!("{:?} {:?}", lists.offsets, show(&lists.items)));
    let pairs: Vec<(u32, u8)> = keys.iter().flat_map(|&key| (0..6).map(move |m| (key, m))).collect();
    let (offsets, bytes) = map_keys(pairs.iter().map(|p| p.1));
    let of: Vec<u32> = pairs.iter().map(|p| p.0).collect();
    let entries =
        backend.read_entries(MAP, &of, MapKeys { offsets: &offsets, bytes: &bytes }).expect("a read");
    text.push(format!("{:?}", show_cells(&entries)));
    let all = backend.scan_entries(MAP, keys, None, 100).expect("a scan");
    text.push(format!("{:?} {:?} {:?}", all.offsets, all.key_bytes, show(&all.values)));
    text
}

fn run(backend: &mut dyn KeyedBackend, call: &Call) -> Vec<String> {
    match call {
        Call::Keys { steps, commit } => {
            let mut names: Vec<u8> = steps.iter().flat_map(keys_of).collect();
            names.sort_unstable();
            names.dedup();
            let mut keys = EncodedKeys::new();
            names.iter().map(|&n| name(n)).for_each(|key| keys.push(&key, hash_key(&key)));
            backend.begin(&keys).expect("a call");
            let position = |key: u8| names.binary_search(&key).expect("it is named") as u32;
            let seen = steps.iter().flat_map(|step| take(backend, step, &position)).collect();
            end(backend, *commit);
            seen
        }
        Call::Round { processing, now, limit, commit } => {
            let fired = backend.begin_timers(clock(*processing), *now, *limit).expect("a round");
            let keys = backend.keys().into_iter().map(|k| String::from_utf8_lossy(k).into_owned());
            let mut seen: Vec<String> = Vec::new();
            if fired > 0 {
                // Which of several keys of one time come first is not said, so a limited round is about times.
                let times = backend.fired_times().to_vec();
                let keys: Vec<String> = keys.collect();
                seen = if fired < *limit {
                    let mut pairs: Vec<_> = times.iter().zip(keys).map(|(t, k)| format!("{t} {k}")).collect();
                    pairs.sort();
                    pairs
                } else {
                    times.iter().map(i64::to_string).collect()
                };
                // Then it is as if it had not been.
                end(backend, *commit && fired < *limit);
            }
            seen
        }
        Call::Drop { processing } => {
            vec![backend.drop_timers(clock(*processing)).expect("no disk").to_string()]
        }
        Call::Snapshot => Vec::new(),
    }
}

fn keys_of(step: &Step) -> Vec<u8> {
    match step {
        Step::Write(rows) => rows.iter().map(|r| r.0).collect(),
        Step::Append(runs) => runs.iter().map(|r| r.0).collect(),
        Step::Entries(entries) => entries.iter().map(|e| e.0).collect(),
        Step::Set(_, timers) | Step::Clear(_, timers) => timers.iter().map(|t| t.0).collect(),
        Step::ClearLists(keys) | Step::ClearMaps(keys) | Step::Read(keys) | Step::Scan(keys, ..) => {
            keys.clone()
        }
    }
}

fn end(backend: &mut dyn KeyedBackend, commit: bool) {
    if commit { backend.commit().expect("no disk") } else { backend.rollback() }
}

/// Goes on with a backend that was restored from what this one has.
fn restored(backend: &mut CachedBackend, memory: usize) -> CachedBackend {
    let states = conformance::states();
    let parts =
        backend.snapshot(&states, backend.layout.max, &SnapshotRequest::in_full(1)).expect("between calls");
    let mut restored = cached(&states, memory);
    parts.iter().for_each(|part| restored.restore(&states, part).expect("its own state"));
    restored
}

fn check(calls: &[Call], memory: usize) -> Result<(), TestCaseError> {
    let states = conformance::states();
    let (mut plain, mut cached) = (MemoryBackend::new(&states), cached(&states, memory));
    for call in calls {
        prop_assert_eq!(run(&mut cached, call), run(&mut plain, call), "after {:?}", call);
        if matches!(call, Call::Snapshot) {
            cached = restored(&mut cached, memory);
        }
        prop_assert_eq!(cached.key_count(), plain.key_count(), "after {:?}", call);
        for clock in CLOCKS {
            prop_assert_eq!(cached.pending_timers(clock), plain.pending_timers(clock), "after {:?}", call);
            let (early, next) = (cached.next_timer(clock), plain.timers_of(clock).times_in_order().next());
            prop_assert_eq!(early.is_some(), next.is_some());
            prop_assert!(early <= next, "{:?} hides {:?}", early, next);
        }
    }
    begin_all(&mut plain);
    begin_all(&mut cached);
    let all: Vec<u32> = (0..40).collect();
    prop_assert_eq!(read(&mut cached, &all), read(&mut plain, &all));
    Ok(())
}

proptest! {
    #[test]
    fn behaves_like_memory(calls in prop::collection::vec(call(), 1..40), memory in prop_oneof![Just(0), Just(TEN_KEYS)]) {
        check(&calls, memory)?;
    }
}

#[test]
fn what_fits_never_reaches_the_store() {
    let states = conformance::states();
    let mut backend = cached(&states, 1 << 20);
    let calls: Vec<u8> = (0..40).collect();
    let rows: Vec<(u8, Option<i64>)> = calls.iter().map(|&k| (k, Some(i64::from(k)))).collect();
    run(&mut backend, &Call::Keys { steps: vec![Step::Write(rows)], commit: true });
    backend.snapshot(&states, backend.layout.max, &SnapshotRequest::in_full(1)).expect("between calls");
    assert!(!backend.elsewhere.used && backend.elsewhere.keys == 0);
}

#[test]
fn the_cache_stays_within_its_memory() {
    let states = conformance::states();
    let memory = 64 << 10;
    let mut backend = cached(&states, memory);
    for start in (0..20_000u64).step_by(100) {
        let mut keys = EncodedKeys::new();
        (start..start + 100).for_each(|n| keys.push(&n.to_be_bytes(), hash_key(&n.to_be_bytes())));
        let positions: Vec<u32> = (0..100).collect();
        backend.begin(&keys).expect("a call");
        backend.write_values(VALUE, &positions, cells(&[Some(5); 100])).expect("a write");
        backend.set_timers(Clock::Event, &positions, &[start as i64; 100]).expect("a timer");
        backend.commit().expect("no disk");
        assert!(backend.taken() <= memory, "{} bytes", backend.taken());
    }
    assert!(backend.cache.keys.slots() < 1000, "slots are used again");
    assert_eq!((backend.key_count(), backend.pending_timers(Clock::Event)), (20_000, 20_000));
    let mut fired = 0;
    loop {
        match backend.begin_timers(Clock::Event, i64::MAX, 128).expect("a round") {
            0 => break,
            count => fired += count,
        }
        backend.commit().expect("no disk");
    }
    assert_eq!((fired, backend.pending_timers(Clock::Event)), (20_000, 0));
}

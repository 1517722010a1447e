//! Windows in front of a store, against maps that keep everything.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::Int64Array;
use arrow_array::{cast::AsArray, types::Int64Type};
use millstream_types::{
    Column, Columns, DataType, EncodedKeys, MaxParallelism, SnapshotRequest, StatePart, Window, hash_key,
};

use super::{OpenImage, portable};
use crate::{
    Cursor, MemoryAccumulators, MemoryContents, Overflow, StateName, WindowAccumulators, WindowContents,
    WindowState,
};

/// Makes a place with so many bytes of memory before it.
pub type MakeOverflow<'a> = dyn Fn(usize) -> Overflow + 'a;

/// Checks windows in front of the stores that `make` makes, whatever has room.
///
/// # Panics
/// Where they are not what they should be.
pub fn run_windows(make: &MakeOverflow<'_>, open: OpenImage) {
    for memory in [0, 20_000, 1 << 30] {
        accumulators(memory, make, open);
        contents(memory, make, open);
        merges(memory, make);
    }
}

/// What a window should have, by key.
type Model<T> = BTreeMap<(Window, u32), T>;

const NAME: StateName<'_> = StateName { name: "windows", version: 3 };
const KEYS: u64 = 400;

fn accumulators(memory: usize, make: &MakeOverflow<'_>, open: OpenImage) {
    let mut random = Random(1);
    let mut state = MemoryAccumulators::with_overflow(&columns(), Some(make(memory)));
    let mut model: Model<i64> = BTreeMap::new();
    for call in 0..120 {
        let window = window(random.below(3) + call / 40);
        let rows: Vec<(u32, i64)> = (0..60).map(|i| (random.below(KEYS) as u32, i)).collect();
        add(&mut state, window, &rows);
        rows.iter().for_each(|&(key, value)| *model.entry((window, key)).or_default() += value);
        if call % 7 == 0 {
            let group = state.grouping().group_of_row[0];
            state.remove_groups(&[group]).expect("a store");
            model.remove(&(window, rows[0].0));
        }
        if call % 50 == 49 {
            let first = state.next_window(None).expect("there are some");
            state.clear(first).expect("a store");
            model.retain(|(window, _), _| *window != first);
        }
        if call % 20 == 19 {
            let parts = state.snapshot(NAME, max(), &request()).expect("between calls");
            let (parts, memory) = moved(parts, call / 20, memory, open);
            state = MemoryAccumulators::with_overflow(&columns(), memory.map(make));
            parts.iter().for_each(|part| state.restore(part).expect("its own"));
        }
    }
    let mut found: Model<i64> = BTreeMap::new();
    for window in windows(&state) {
        let mut cursor = Some(Cursor::default());
        while let Some(at) = cursor {
            let slice = state.scan(window, at, 64).expect("a scan");
            for (key, &sum) in slice.keys.iter().zip(ints(&slice.accumulators)) {
                assert_eq!(found.insert((window, number(key)), sum), None, "seen twice");
            }
            cursor = slice.next;
        }
    }
    assert_eq!(found, model, "with {memory} bytes");
}

fn contents(memory: usize, make: &MakeOverflow<'_>, open: OpenImage) {
    let mut random = Random(2);
    let mut state = MemoryContents::with_overflow(&columns(), Some(make(memory)));
    let mut model: Model<Vec<i64>> = BTreeMap::new();
    for call in 0..120i64 {
        let window = window(random.below(3) + call as u64 / 40);
        let rows: Vec<(u32, i64)> = (0..60).map(|i| (random.below(KEYS) as u32, call * 100 + i)).collect();
        state.begin(rows.len()).expect("a store");
        state.resolve(window, &keys(&rows), None).expect("a store");
        state.append(&values(&rows)).expect("a store");
        rows.iter().for_each(|&(key, value)| model.entry((window, key)).or_default().push(value));
        let group = state.grouping().group_of_row[0];
        let expected = &model[&(window, rows[0].0)];
        assert_eq!(state.rows_of_groups(&[group]), Ok(vec![expected.len() as u32]));
        assert_eq!(ints(&state.read_groups(&[group]).expect("a store").rows.items), expected);
        if call % 7 == 0 {
            state.remove_groups(&[group]).expect("a store");
            model.remove(&(window, rows[0].0));
        }
        if call % 20 == 19 {
            let parts = state.snapshot(NAME, max(), &request()).expect("between calls");
            let (parts, memory) = moved(parts, call as u64 / 20, memory, open);
            state = MemoryContents::with_overflow(&columns(), memory.map(make));
            parts.iter().for_each(|part| state.restore(part).expect("its own"));
        }
    }
    let mut found: Model<Vec<i64>> = BTreeMap::new();
    for window in windows(&state) {
        let mut cursor = Some(Cursor::default());
        while let Some(at) = cursor {
            let slice = state.scan(window, at, 64).expect("a scan");
            for (i, key) in slice.keys.iter().enumerate() {
                let run = slice.rows.offsets[i] as usize..slice.rows.offsets[i + 1] as usize;
                let rows = ints(&slice.rows.items)[run].to_vec();
                assert_eq!(found.insert((window, number(key)), rows), None, "seen twice");
            }
            cursor = slice.next;
        }
    }
    assert_eq!(found, model, "with {memory} bytes");
}

/// Windows merged into one another, in steps.
fn merges(memory: usize, make: &MakeOverflow<'_>) {
    let mut state = MemoryAccumulators::with_overflow(&columns(), Some(make(memory)));
    let mut random = Random(3);
    let mut sums = BTreeMap::new();
    for at in 0..4 {
        let rows: Vec<(u32, i64)> = (0..300).map(|i| (random.below(KEYS) as u32, i)).collect();
        add(&mut state, window(at), &rows);
        rows.iter().for_each(|&(key, value)| *sums.entry(key).or_insert(0) += value);
    }
    let whole = Window::new(0, 1000);
    for at in 0..4 {
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            let step = state.merge(whole, window(at), from, 50).expect("a merge");
            let merged = ints(&step.into).iter().zip(ints(&step.other)).map(|(a, b)| a + b).collect();
            state.finish_merge(&of(merged)).expect("a merge");
            cursor = step.next;
        }
    }
    let (mut found, mut cursor) = (BTreeMap::new(), Some(Cursor::default()));
    while let Some(at) = cursor {
        let slice = state.scan(whole, at, 70).expect("a scan");
        found.extend(slice.keys.iter().map(number).zip(ints(&slice.accumulators).iter().copied()));
        cursor = slice.next;
    }
    assert_eq!(found, sums, "with {memory} bytes");
}

/// A snapshot as the next one to restore it gets it, and that one's memory, if it has a store.
pub(super) fn moved(
    parts: Vec<StatePart>,
    round: u64,
    memory: usize,
    open: OpenImage,
) -> (Vec<StatePart>, Option<usize>) {
    let mut parts = match round % 3 {
        // By halves, as two subtasks would have it.
        1 => parts.iter().flat_map(halves).collect(),
        2 => return (portable(parts, max(), open), None),
        _ => parts,
    };
    parts.sort_by_key(|part| part.files.is_none());
    (parts, Some(memory))
}

fn halves(part: &StatePart) -> Vec<StatePart> {
    let Some(files) = &part.files else { return vec![part.clone()] };
    let half = |groups| StatePart { files: Some(files.of_groups(groups)), ..part.clone() };
    vec![half(0..max().groups() / 2), half(max().groups() / 2..max().groups())]
}

fn add(state: &mut MemoryAccumulators, window: Window, rows: &[(u32, i64)]) {
    state.begin(rows.len()).expect("a store");
    state.resolve(window, &keys(rows), None).expect("a store");
    let cells = state.read().expect("a store");
    let before = ints(&cells.values).iter().zip(&cells.present);
    let mut sums: Vec<i64> = before.map(|(&sum, present)| if present { sum } else { 0 }).collect();
    let groups = state.grouping().group_of_row.iter();
    groups.zip(rows).for_each(|(&group, row)| sums[group as usize] += row.1);
    state.write(&of(sums), &[]).expect("a store");
}

fn windows(state: &dyn WindowState) -> Vec<Window> {
    let behind = |w: &Window| state.next_window(Some(Window::new(w.start + 1, w.end)));
    std::iter::successors(state.next_window(None), behind).collect()
}

fn window(at: u64) -> Window {
    Window::new(at as i64 * 10, at as i64 * 10 + 10)
}

fn keys(rows: &[(u32, i64)]) -> EncodedKeys {
    let mut keys = EncodedKeys::new();
    rows.iter().for_each(|(key, _)| keys.push(&key.to_be_bytes(), hash_key(&key.to_be_bytes())));
    keys
}

fn values(rows: &[(u32, i64)]) -> Columns {
    of(rows.iter().map(|row| row.1).collect())
}

pub(super) fn number(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().expect("four bytes"))
}

pub(super) fn columns() -> Vec<Column> {
    vec![Column { name: "sum".into(), data_type: DataType::Int64, nullable: false }]
}

pub(super) fn of(values: Vec<i64>) -> Columns {
    Columns::new(values.len(), vec![Arc::new(Int64Array::from(values))])
}

pub(super) fn ints(columns: &Columns) -> &[i64] {
    columns.arrays[0].as_primitive::<Int64Type>().values()
}

pub(super) fn max() -> MaxParallelism {
    MaxParallelism::new(8).expect("in range")
}

pub(super) fn request() -> SnapshotRequest {
    SnapshotRequest::in_full(1)
}

/// Numbers that look random, the same ones for a seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

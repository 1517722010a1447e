//! Sessions in front of a store, beside the same ones in memory.

use millstream_types::{EncodedKeys, MIN_WATERMARK, Window, hash_key};

use super::{
    OpenImage,
    windows::{MakeOverflow, Random, columns, ints, max, moved, number, of, request},
};
use crate::{
    Cursor, Grouping, MemorySessionAccumulators, MemorySessionContents, SessionAccumulators, SessionContents,
    SessionState, StateName,
};

/// Checks sessions in front of the stores that `make` makes, whatever has room.
///
/// # Panics
/// Where they are not what they should be.
pub fn run_sessions(make: &MakeOverflow<'_>, open: OpenImage) {
    for memory in [0, 30_000, 1 << 30] {
        for lateness in [0, 25] {
            accumulators(memory, lateness, make, open);
            contents(memory, lateness, make, open);
        }
    }
}

const NAME: StateName<'_> = StateName { name: "windows", version: 1 };
const GAP: i64 = 20;

fn accumulators(memory: usize, lateness: i64, make: &MakeOverflow<'_>, open: OpenImage) {
    let mut expected = MemorySessionAccumulators::new(&columns(), lateness);
    let mut state = MemorySessionAccumulators::with_overflow(&columns(), lateness, Some(make(memory)));
    let (mut random, mut clock) = (Random(4), MIN_WATERMARK);
    for call in 0..100 {
        let rows = rows(&mut random, call as i64);
        assert_eq!(add(&mut state, &rows, clock), add(&mut expected, &rows, clock));
        assert_eq!(state.session_count(), expected.session_count());
        if call % 5 == 4 {
            clock = call as i64 * 6 - 30;
            assert_eq!(due(&mut state, clock), due(&mut expected, clock), "at {clock} in {memory} bytes");
        }
        if call % 15 == 14 {
            let parts = state.snapshot(NAME, max(), &request()).expect("between calls");
            let (parts, memory) = moved(parts, call / 15, memory, open);
            state = MemorySessionAccumulators::with_overflow(&columns(), lateness, memory.map(make));
            parts.iter().for_each(|part| state.restore(part).expect("its own"));
        }
    }
    assert_eq!(scanned(&mut state), scanned(&mut expected), "with {memory} bytes");
    assert_eq!(due(&mut state, i64::MAX - 1), due(&mut expected, i64::MAX - 1));
    assert_eq!((state.session_count(), state.next_time()), (0, None));
}

fn contents(memory: usize, lateness: i64, make: &MakeOverflow<'_>, open: OpenImage) {
    let mut expected = MemorySessionContents::new(&columns(), lateness);
    let mut state = MemorySessionContents::with_overflow(&columns(), lateness, Some(make(memory)));
    let (mut random, mut clock) = (Random(5), MIN_WATERMARK);
    for call in 0..60 {
        let rows = rows(&mut random, call as i64);
        for state in [&mut state, &mut expected] {
            let (keys, times) = split(&rows);
            state.assign(&keys, &times, GAP, clock).expect("a store");
            state.append(&of(rows.iter().map(|row| row.2).collect())).expect("a store");
        }
        if call % 5 == 4 {
            clock = call as i64 * 6 - 30;
            assert_eq!(due_rows(&mut state, clock), due_rows(&mut expected, clock), "at {clock}");
        }
        if call % 15 == 14 {
            let parts = state.snapshot(NAME, max(), &request()).expect("between calls");
            let (parts, memory) = moved(parts, call / 15, memory, open);
            state = MemorySessionContents::with_overflow(&columns(), lateness, memory.map(make));
            parts.iter().for_each(|part| state.restore(part).expect("its own"));
        }
    }
    assert_eq!(due_rows(&mut state, i64::MAX - 1), due_rows(&mut expected, i64::MAX - 1));
    assert_eq!(state.session_count(), 0);
}

type Row = (u32, i64, i64);

fn rows(random: &mut Random, call: i64) -> Vec<Row> {
    let row = |_| (random.below(300) as u32, call * 6 + random.below(40) as i64, random.below(100) as i64);
    (0..50).map(row).collect()
}

fn split(rows: &[Row]) -> (EncodedKeys, Vec<i64>) {
    let mut keys = EncodedKeys::new();
    rows.iter().for_each(|row| keys.push(&row.0.to_be_bytes(), hash_key(&row.0.to_be_bytes())));
    (keys, rows.iter().map(|row| row.1).collect())
}

/// Adds rows up; says which are late.
fn add(state: &mut MemorySessionAccumulators, rows: &[Row], clock: i64) -> Vec<u32> {
    let (keys, times) = split(rows);
    let late = state.assign(&keys, &times, GAP, clock).expect("a store");
    while let Some(step) = state.next_merge().expect("a store") {
        let merged = ints(&step.into).iter().zip(ints(&step.other)).map(|(a, b)| a + b).collect();
        state.finish_merge(&of(merged)).expect("it fits");
    }
    let cells = state.read().expect("a store");
    let before = ints(&cells.values).iter().zip(&cells.present);
    let mut sums: Vec<i64> = before.map(|(&sum, present)| if present { sum } else { 0 }).collect();
    for (&group, row) in state.grouping().group_of_row.iter().zip(rows) {
        if group != Grouping::NONE {
            sums[group as usize] += row.2;
        }
    }
    state.write(&of(sums), &[]).expect("it fits");
    late
}

/// Sessions that are over: they come in the order of their ends, and otherwise in none.
fn due(state: &mut MemorySessionAccumulators, now: i64) -> Vec<(i64, i64, u32, i64)> {
    let mut found = Vec::new();
    loop {
        let slice = state.take_due(now, 7, false).expect("a store");
        if slice.windows.is_empty() {
            break;
        }
        let each = slice.keys.iter().zip(&slice.windows).zip(ints(&slice.values));
        found.extend(each.map(|((key, w), &sum)| (w.end, w.start, number(key), sum)));
    }
    assert!(found.is_sorted_by_key(|session| session.0), "{found:?}");
    found.sort_unstable();
    found
}

fn due_rows(state: &mut MemorySessionContents, now: i64) -> Vec<(Window, u32, Vec<i64>)> {
    let mut found = Vec::new();
    loop {
        let slice = state.take_due(now, 7, false).expect("a store");
        if slice.windows.is_empty() {
            break;
        }
        for (i, (key, window)) in slice.keys.iter().zip(&slice.windows).enumerate() {
            let run = slice.values.offsets[i] as usize..slice.values.offsets[i + 1] as usize;
            found.push((*window, number(key), ints(&slice.values.items)[run].to_vec()));
        }
    }
    found.sort_unstable_by_key(|session| (session.0.end, session.0.start, session.1));
    found
}

fn scanned(state: &mut MemorySessionAccumulators) -> Vec<(u32, i64, i64)> {
    let (mut found, mut cursor) = (Vec::new(), Some(Cursor::default()));
    while let Some(at) = cursor {
        let slice = state.scan(at, 40).expect("a scan");
        let each = slice.keys.iter().zip(&slice.windows).zip(ints(&slice.values));
        found.extend(each.map(|((key, w), &sum)| (number(key), w.start, sum)));
        cursor = slice.next;
    }
    found.sort_unstable();
    found
}

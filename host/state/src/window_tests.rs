//! Windows in memory, as the window operator uses them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringViewArray, cast::AsArray, types::Int64Type};
use millstream_types::{
    Column, Columns, DataType, EncodedKeys, MaxParallelism, SnapshotRequest, Window, hash_key,
};

use crate::{
    ContentSlice, Cursor, MemoryAccumulators, MemoryContents, StateError, StateName, WindowAccumulators,
    WindowContents, WindowState,
};

const FIRST: Window = Window { start: 0, end: 10 };
const NAME: StateName<'_> = StateName { name: "window", version: 1 };
const SECOND: Window = Window { start: 10, end: 20 };

fn columns() -> Vec<Column> {
    vec![Column { name: "sum".into(), data_type: DataType::Int64, nullable: false }]
}

fn keys(names: &[&str]) -> EncodedKeys {
    let mut keys = EncodedKeys::new();
    names.iter().for_each(|n| keys.push(n.as_bytes(), hash_key(n.as_bytes())));
    keys
}

fn of(values: &[i64]) -> Columns {
    Columns::new(values.len(), vec![Arc::new(Int64Array::from(values.to_vec()))])
}

fn ints(columns: &Columns) -> Vec<i64> {
    columns.arrays[0].as_primitive::<Int64Type>().values().to_vec()
}

/// Adds rows up that fall into windows: key, window, value.
fn add(state: &mut MemoryAccumulators, rows: &[(&str, Window, i64)]) {
    let keys = keys(&rows.iter().map(|r| r.0).collect::<Vec<_>>());
    state.begin(rows.len()).expect("in memory");
    for window in [FIRST, SECOND] {
        let of_window: Vec<u32> = (0..).zip(rows).filter(|(_, r)| r.1 == window).map(|(i, _)| i).collect();
        if !of_window.is_empty() {
            state.resolve(window, &keys, Some(&of_window)).expect("in memory");
        }
    }
    let cells = state.read().expect("in memory");
    let before = ints(&cells.values).into_iter().zip(&cells.present);
    let mut sums: Vec<i64> = before.map(|(sum, present)| if present { sum } else { 0 }).collect();
    let groups = state.grouping().group_of_row.iter();
    groups.zip(rows).for_each(|(&group, row)| sums[group as usize] += row.2);
    state.write(&of(&sums), &[]).expect("fits");
}

fn scan(state: &mut MemoryAccumulators, window: Window, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), Some(Cursor::default()));
    while let Some(at) = cursor {
        let slice = state.scan(window, at, limit).expect("in memory");
        assert!(slice.keys.len() <= limit);
        let keys = slice.keys.iter().map(String::from_utf8_lossy);
        found.extend(keys.zip(ints(&slice.accumulators)).map(|(key, sum)| format!("{key} {sum}")));
        cursor = slice.next;
    }
    found
}

#[test]
fn a_batch_spans_windows_and_each_has_its_own_keys() {
    let mut state = MemoryAccumulators::new(&columns());
    add(&mut state, &[("a", SECOND, 1), ("b", FIRST, 2), ("a", FIRST, 4), ("a", SECOND, 8)]);
    add(&mut state, &[("b", FIRST, 16), ("c", FIRST, 32)]);
    assert_eq!(scan(&mut state, FIRST, 2), ["b 18", "a 4", "c 32"]);
    assert_eq!(scan(&mut state, SECOND, 100), ["a 9"]);
    assert_eq!((state.keys_of(FIRST), state.keys_of(Window::GLOBAL)), (3, 0));
    assert_eq!((state.next_window(None), state.next_window(Some(SECOND))), (Some(FIRST), Some(SECOND)));
    state.clear(FIRST).expect("in memory");
    assert_eq!((state.next_window(None), scan(&mut state, FIRST, 2)), (Some(SECOND), Vec::new()));
}

#[test]
fn a_call_rolled_back_leaves_no_key_and_no_window() {
    let mut state = MemoryAccumulators::new(&columns());
    add(&mut state, &[("a", FIRST, 1)]);
    state.begin(2).expect("in memory");
    let keys = keys(&["a", "b"]);
    state.resolve(FIRST, &keys, None).expect("in memory");
    state.resolve(SECOND, &keys, Some(&[1])).expect("in memory");
    state.rollback();
    assert_eq!((scan(&mut state, FIRST, 9), state.next_window(Some(SECOND))), (vec!["a 1".to_owned()], None));
}

#[test]
fn skipped_groups_keep_what_they_have() {
    let mut state = MemoryAccumulators::new(&columns());
    add(&mut state, &[("a", FIRST, 1)]);
    state.begin(3).expect("in memory");
    state.resolve(FIRST, &keys(&["b", "a", "c"]), None).expect("in memory");
    state.write(&of(&[5, 6, 7]), &[0, 1]).expect("fits");
    assert_eq!(scan(&mut state, FIRST, 9), ["a 1", "c 7"]);
    let refused = state.write(&of(&[5]), &[]).expect_err("too few");
    assert!(matches!(refused, StateError::Shape { .. }), "{refused}");
}

#[test]
fn removed_groups_are_gone_and_an_empty_window_with_them() {
    let mut state = MemoryAccumulators::new(&columns());
    add(&mut state, &[("a", FIRST, 1), ("b", FIRST, 2), ("a", SECOND, 3)]);
    state.remove_groups(&[0, 2]).expect("in memory");
    assert_eq!((scan(&mut state, FIRST, 1), state.next_window(Some(SECOND))), (vec!["b 2".to_owned()], None));
    add(&mut state, &[("c", FIRST, 4)]);
    assert_eq!(scan(&mut state, FIRST, 9), ["c 4", "b 2"], "the place of a removed key is used again");
}

#[test]
fn merging_copies_new_keys_and_hands_out_pairs() {
    let mut state = MemoryAccumulators::new(&columns());
    add(&mut state, &[("a", FIRST, 1), ("b", FIRST, 2), ("b", SECOND, 4), ("c", SECOND, 8)]);
    let whole = Window::new(0, 20);
    for from in [FIRST, SECOND] {
        let mut cursor = Some(Cursor::default());
        while let Some(at) = cursor {
            let step = state.merge(whole, from, at, 1).expect("in memory");
            let sums: Vec<i64> = ints(&step.into).iter().zip(ints(&step.other)).map(|(a, b)| a + b).collect();
            state.finish_merge(&of(&sums)).expect("fits");
            cursor = step.next;
        }
    }
    assert_eq!(scan(&mut state, whole, 9), ["a 1", "b 6", "c 8"]);
    assert_eq!(scan(&mut state, FIRST, 9), ["a 1", "b 2"], "the source stays");
}

fn content_columns() -> Vec<Column> {
    let text = Column { name: "text".into(), data_type: DataType::Utf8, nullable: true };
    columns().into_iter().chain([text]).collect()
}

fn append(state: &mut MemoryContents, rows: &[(&str, Window, i64)]) {
    let keys = keys(&rows.iter().map(|r| r.0).collect::<Vec<_>>());
    state.begin(rows.len()).expect("in memory");
    for window in [FIRST, SECOND] {
        let of_window: Vec<u32> = (0..).zip(rows).filter(|(_, r)| r.1 == window).map(|(i, _)| i).collect();
        state.resolve(window, &keys, Some(&of_window)).expect("in memory");
    }
    let texts: ArrayRef =
        Arc::new(StringViewArray::from_iter(rows.iter().map(|r| (r.2 != 0).then_some(r.0))));
    let numbers = of(&rows.iter().map(|r| r.2).collect::<Vec<_>>());
    let rows = Columns::new(rows.len(), vec![numbers.arrays[0].clone(), texts]);
    state.append(&rows).expect("fits");
}

fn shown(slice: &ContentSlice) -> Vec<String> {
    let numbers = ints(&slice.rows.items);
    let runs = slice.rows.offsets.windows(2).map(|w| &numbers[w[0] as usize..w[1] as usize]);
    slice
        .keys
        .iter()
        .zip(runs)
        .map(|(key, run)| format!("{} {run:?}", String::from_utf8_lossy(key)))
        .collect()
}

#[test]
fn contents_are_the_rows_of_each_key_in_order_of_arrival() {
    let mut state = MemoryContents::new(&content_columns());
    append(&mut state, &[("a", FIRST, 1), ("b", FIRST, 0), ("a", SECOND, 3)]);
    append(&mut state, &[("b", FIRST, 4), ("a", FIRST, 5), ("c", FIRST, 6)]);
    assert_eq!(state.rows_of_groups(&[0, 1, 2]), Ok(vec![2, 2, 1]));
    assert_eq!(shown(&state.read_groups(&[2, 0]).expect("in memory")), ["c [6]", "b [0, 4]"]);
    let first = state.scan(FIRST, Cursor::default(), 3).expect("in memory");
    assert_eq!(shown(&first), ["a [1, 5]", "b [0, 4]"]);
    let texts = first.rows.items.arrays[1].as_string_view();
    assert_eq!(texts.iter().collect::<Vec<_>>(), [Some("a"), Some("a"), None, Some("b")]);
    let rest = state.scan(FIRST, first.next.expect("c is left"), 3).expect("in memory");
    assert_eq!((shown(&rest), rest.next), (vec!["c [6]".to_owned()], None));
    state.clear(FIRST).expect("in memory");
    assert_eq!(shown(&state.scan(FIRST, Cursor::default(), 3).expect("in memory")), Vec::<String>::new());
    assert_eq!(shown(&state.scan(SECOND, Cursor::default(), 3).expect("in memory")), ["a [3]"]);
}

fn sorted(state: &mut MemoryAccumulators, window: Window) -> Vec<String> {
    let mut found = scan(state, window, 10);
    found.sort();
    found
}

#[test]
fn windows_are_there_again_after_a_restore() {
    let max = MaxParallelism::new(4).expect("in range");
    let mut state = MemoryAccumulators::new(&columns());
    add(&mut state, &[("a", FIRST, 1), ("b", FIRST, 2), ("a", SECOND, 4), ("c", SECOND, 8)]);
    let part = state.snapshot(NAME, max, &SnapshotRequest::in_full(1)).expect("between calls");
    let mut restored = MemoryAccumulators::new(&columns());
    restored.restore(&part[0]).expect("its own state");
    assert_eq!(
        restored.snapshot(NAME, max, &SnapshotRequest::in_full(1)).expect("between calls"),
        part,
        "the same bytes"
    );
    for state in [&mut state, &mut restored] {
        add(state, &[("b", FIRST, 16), ("d", FIRST, 32)]);
        assert_eq!(sorted(state, FIRST), ["a 1", "b 18", "d 32"]);
        assert_eq!(sorted(state, SECOND), ["a 4", "c 8"]);
    }
}

#[test]
fn rows_of_windows_are_there_again_after_a_restore() {
    let max = MaxParallelism::new(4).expect("in range");
    let mut contents = MemoryContents::new(&columns());
    contents.begin(3).expect("in memory");
    contents.resolve(FIRST, &keys(&["a", "b", "a"]), None).expect("in memory");
    contents.append(&of(&[1, 2, 3])).expect("fits");
    let part = contents.snapshot(NAME, max, &SnapshotRequest::in_full(1)).expect("between calls");
    let mut restored = MemoryContents::new(&columns());
    restored.restore(&part[0]).expect("its own state");
    assert_eq!(
        restored.snapshot(NAME, max, &SnapshotRequest::in_full(1)).expect("between calls"),
        part,
        "the same bytes"
    );
    let slice = restored.scan(FIRST, Cursor::default(), 10).expect("in memory");
    assert_eq!(slice.rows.items.rows, 3);
    let wrong = MemoryContents::new(&[]).restore(&part[0]).expect_err("other columns");
    assert!(matches!(wrong, StateError::OtherColumns { .. }));
}

//! Keys: which there are, and that none is left behind.

use std::sync::Arc;

use arrow_array::{Int64Array, StringViewArray};
use millstream_types::{Cells, Clock, Columns, EncodedKeys, StateKind, hash_key};

use super::{Subject, cells, show};

pub(super) fn run(fresh: impl Fn() -> Subject) {
    rows_of_a_key_are_one_position(fresh());
    a_key_that_is_only_looked_at_leaves_nothing(fresh());
    keys_of_every_length(fresh());
    a_million_keys(fresh());
    dead_keys_make_room_for_new_ones(fresh());
}

fn rows_of_a_key_are_one_position(mut s: Subject) {
    s.begin(&["b", "a", "b", "c", "a"]);
    assert_eq!(s.keyed.grouping().group_of_row, [0, 1, 0, 2, 1]);
    assert_eq!(s.keyed.grouping().first_row_of_group, [0, 1, 3]);
    assert_eq!(s.keyed.call_keys(), [b"b", b"a", b"c"]);
    s.commit();
    assert_eq!(s.keyed.keys(), 0, "no call, no keys");
}

fn a_key_that_is_only_looked_at_leaves_nothing(mut s: Subject) {
    let id = s.id(StateKind::Value, "value");
    for round in 0..1000 {
        let name = round.to_string();
        s.call(&[&name], |s| s.keyed.read_values(id, &[0]).expect("a read"));
    }
    assert_eq!(s.keyed.key_count(), 0);
}

fn keys_of_every_length(mut s: Subject) {
    let id = s.id(StateKind::Value, "value");
    let names: Vec<String> = (0..40).chain([1000, 65_536]).map(|length| "k".repeat(length)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let positions: Vec<u32> = (0..names.len() as u32).collect();
    let rows: Vec<_> = names.iter().map(|n| Some((n.len() as i64, None))).collect();
    s.call(&names, |s| s.keyed.write_values(id, &positions, cells(&rows)).expect("a write"));
    assert_eq!(s.keyed.key_count(), names.len());
    let read = s.call(&names, |s| s.keyed.read_values(id, &positions).expect("a read"));
    (0..names.len()).for_each(|i| assert_eq!(show(&read.values, i), format!("{} -", names[i].len())));
}

fn numbered(range: std::ops::Range<u64>) -> EncodedKeys {
    let mut keys = EncodedKeys::new();
    range.for_each(|n| keys.push(&n.to_be_bytes(), hash_key(&n.to_be_bytes())));
    keys
}

fn a_million_keys(mut s: Subject) {
    let id = s.id(StateKind::Value, "value");
    const BATCH: u64 = 10_000;
    let positions: Vec<u32> = (0..BATCH as u32).collect();
    for start in (0..1_000_000).step_by(BATCH as usize) {
        s.keyed.begin(&numbered(start..start + BATCH)).expect("a call");
        let numbers = Arc::new((start as i64..(start + BATCH) as i64).collect::<Int64Array>());
        let texts = Arc::new(StringViewArray::new_null(BATCH as usize));
        let values = Columns::new(BATCH as usize, vec![numbers, texts]);
        let written = Cells { present: vec![true; BATCH as usize].into(), values };
        s.keyed.write_values(id, &positions, written).expect("a write");
        s.commit();
    }
    assert_eq!(s.keyed.key_count(), 1_000_000);
    for start in [0, 123_456, 999_990] {
        s.keyed.begin(&numbered(start..start + 10)).expect("a call");
        let read = s.keyed.read_values(id, &positions[..10]).expect("a read");
        (0..10).for_each(|i| assert_eq!(show(&read.values, i), format!("{} -", start + i as u64)));
        s.commit();
    }
}

fn dead_keys_make_room_for_new_ones(mut s: Subject) {
    let id = s.id(StateKind::Value, "value");
    for round in 0..100 {
        s.keyed.begin(&numbered(round * 100..(round + 1) * 100)).expect("a call");
        let positions: Vec<u32> = (0..100).collect();
        let value = Some((round as i64, Some("a text that does not lie in place")));
        s.keyed.write_values(id, &positions, cells(&[value; 100])).expect("a write");
        s.keyed.set_timers(Clock::Event, &positions, &[round as i64; 100]).expect("timers");
        s.commit();
        assert_eq!(s.keyed.key_count(), 100);
        assert_eq!(s.keyed.begin_timers(Clock::Event, round as i64, 200).expect("a round"), 100);
        s.keyed.write_values(id, &positions, cells(&[None; 100])).expect("a write");
        s.commit();
        assert_eq!(s.keyed.key_count(), 0);
    }
}

//! Value state.

use std::sync::Arc;

use arrow_array::*;
use millstream_types::{Cells, Columns, DataType, StateKind::Value};

use super::{Row, Subject, cells, show_cells};
use crate::StateError;

pub(super) fn run(fresh: impl Fn() -> Subject) {
    what_is_written_is_read_in_the_call_and_after_it(fresh());
    a_write_counts_before_the_commit_and_only_for_its_keys(fresh());
    what_is_rolled_back_was_never_there(fresh());
    absent_cells_clear(fresh());
    the_last_write_of_a_key_counts(fresh());
    every_type_keeps_nulls_and_extremes(fresh());
    long_and_short_text_take_turns(fresh());
    shapes_are_checked(fresh());
}

impl Subject {
    fn write(&mut self, keys: &[u32], rows: &[Option<Row>]) {
        let id = self.id(Value, "value");
        self.keyed.write_values(id, keys, cells(rows)).expect("a write");
    }

    fn read(&mut self, keys: &[u32]) -> Vec<String> {
        let id = self.id(Value, "value");
        show_cells(&self.keyed.read_values(id, keys).expect("a read"))
    }
}

fn what_is_written_is_read_in_the_call_and_after_it(mut s: Subject) {
    s.begin(&["a", "b", "a"]);
    assert_eq!(s.keyed.keys(), 2);
    assert_eq!(s.read(&[0, 1]), ["absent", "absent"]);
    s.write(&[0, 1], &[Some((1, Some("x"))), Some((2, None))]);
    s.commit();
    let read = s.call(&["c", "b", "a"], |s| s.read(&[2, 1, 0, 1]));
    assert_eq!(read, ["1 x", "2 -", "absent", "2 -"]);
}

fn a_write_counts_before_the_commit_and_only_for_its_keys(mut s: Subject) {
    s.call(&["a", "b", "c"], |s| {
        s.write(&[0, 1, 2], &[Some((1, Some("a"))), Some((2, Some("b"))), Some((3, None))])
    });
    s.begin(&["c", "b", "a"]);
    s.write(&[2], &[Some((10, None))]);
    s.write(&[0, 2], &[None, Some((20, Some("twice")))]);
    assert_eq!(s.read(&[2, 1, 0]), ["20 twice", "2 b", "absent"]);
    s.commit();
    assert_eq!(s.call(&["a", "b", "c"], |s| s.read(&[0, 1, 2])), ["20 twice", "2 b", "absent"]);
}

fn what_is_rolled_back_was_never_there(mut s: Subject) {
    s.call(&["a"], |s| s.write(&[0], &[Some((1, None))]));
    s.begin(&["a", "b"]);
    s.write(&[0, 1], &[Some((5, None)), Some((6, None))]);
    s.keyed.rollback();
    assert_eq!(s.keyed.key_count(), 1);
    assert_eq!(s.call(&["b", "a"], |s| s.read(&[0, 1])), ["absent", "1 -"]);
    // A call that nobody ends counts as one that failed.
    s.begin(&["a"]);
    s.write(&[0], &[Some((7, None))]);
    assert_eq!(s.call(&["a"], |s| s.read(&[0])), ["1 -"]);
}

fn absent_cells_clear(mut s: Subject) {
    s.call(&["a", "b"], |s| {
        s.write(&[0, 1], &[Some((1, Some("a text that is longer than sixteen bytes"))), Some((2, None))])
    });
    s.call(&["a", "b"], |s| s.write(&[0, 1], &[None, Some((3, None))]));
    assert_eq!(s.call(&["a", "b"], |s| s.read(&[0, 1])), ["absent", "3 -"]);
}

fn the_last_write_of_a_key_counts(mut s: Subject) {
    s.call(&["a", "b"], |s| {
        s.write(&[0, 0, 1, 1, 0], &[Some((1, None)), None, Some((2, None)), None, Some((3, Some("z")))]);
        assert_eq!(s.read(&[0, 1]), ["3 z", "absent"]);
    });
    assert_eq!(s.call(&["a", "b"], |s| s.read(&[0, 1])), ["3 z", "absent"]);
}

fn every_type_keeps_nulls_and_extremes(mut s: Subject) {
    let times = TimestampMillisecondArray::from(vec![Some(i64::MIN), None, Some(i64::MAX), Some(0)]);
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
        Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX), Some(0)])),
        Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX), Some(0)])),
        Arc::new(Float32Array::from(vec![Some(f32::MIN), None, Some(f32::INFINITY), Some(-0.0)])),
        Arc::new(Float64Array::from(vec![
            Some(f64::MIN_POSITIVE),
            None,
            Some(f64::NEG_INFINITY),
            Some(-0.0),
        ])),
        Arc::new(times.with_data_type(DataType::Timestamp.to_arrow())),
        Arc::new(Date32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX), Some(0)])),
        Arc::new(StringViewArray::from(vec![Some(""), None, Some("été"), Some(&"long ".repeat(5_000))])),
        Arc::new(BinaryViewArray::from(vec![Some(&b""[..]), None, Some(&[0, 255, 0]), Some(&[7; 17])])),
    ];
    let id = s.id(Value, "all");
    let values = Columns::new(4, arrays.clone());
    let written = Cells { present: vec![true; 4].into(), values };
    s.call(&["a", "b", "c", "d"], |s| s.keyed.write_values(id, &[0, 1, 2, 3], written).expect("a write"));
    let read = s.call(&["d", "c", "b", "a"], |s| s.keyed.read_values(id, &[3, 2, 1, 0]).expect("a read"));
    assert_eq!(read.values.arrays, arrays);
    assert_eq!(read.present.count_set_bits(), 4);
}

fn long_and_short_text_take_turns(mut s: Subject) {
    for text in ["short", "a text that does not fit into sixteen bytes", "", "sixteen bytes ok"] {
        s.call(&["a"], |s| s.write(&[0], &[Some((0, Some(text)))]));
        assert_eq!(s.call(&["a"], |s| s.read(&[0])), [format!("0 {text}")]);
    }
}

fn shapes_are_checked(mut s: Subject) {
    let id = s.id(Value, "value");
    s.begin(&["a"]);
    let row = || cells(&[Some((1, None))]);
    assert_eq!(s.keyed.read_values(id, &[1]).err(), Some(StateError::NoSuchKey { position: 1, keys: 1 }));
    assert_eq!(
        s.keyed.write_values(id, &[3], row()).err(),
        Some(StateError::NoSuchKey { position: 3, keys: 1 })
    );
    let mut refused = |cells: Cells| s.keyed.write_values(id, &[0], cells).expect_err("refused").to_string();
    assert_eq!(refused(cells(&[])), "state `value`: 0 rows found, 1 expected");
    let mut wrong = row();
    wrong.values.arrays.pop();
    assert_eq!(refused(wrong), "state `value`: 1 columns found, 2 declared");
    let mut wrong = row();
    wrong.values.arrays.swap(0, 1);
    assert_eq!(refused(wrong), "state `value`: column `n` is Utf8View, declared is int64");
    let mut wrong = row();
    wrong.present = vec![true; 2].into();
    assert_eq!(refused(wrong), "state `value`: 2 presence bits found, 1 expected");
    assert!(s.keyed.read_lists(id, &[0]).is_err(), "a value is no list");
    let unknown = s.keyed.state(Value, "list").expect_err("another kind").to_string();
    assert_eq!(
        unknown,
        "no value state `list` in the manifest: declared are value (value), list (list), map (map), all (value)"
    );
}

//! Aggregate and window functions, and life-cycle calls: what goes in stands in the right place, and what comes out is
//! checked against groups and windows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use arrow_buffer::BooleanBuffer;
use millstream_operator::{CallContext, FunctionError, Origin, UserFunction};
use millstream_types::{Cells, Columns, Window};

use super::{
    guest::{Wat, open_and_close},
    map::function,
};
use crate::{FunctionLimits, executor::block_on};

/// An outcome of one output on port 0: `rows` rows from each input, with these columns.
fn outcome(rows: &str, columns: &str, column_count: &str) -> String {
    format!(
        "(i32.store (i32.const 256) (i32.const 0))
         (i32.store (i32.const 260) (i32.const 512))
         (i32.store (i32.const 264) (i32.const 1))
         (i32.store (i32.const 268) (i32.const 0))
         (i32.store (i32.const 272) (i32.const 0))
         (i32.store (i32.const 512) (i32.const 0))
         (i32.store (i32.const 516) {rows})
         (i32.store (i32.const 520) (i32.const 0))
         (i32.store (i32.const 532) {columns})
         (i32.store (i32.const 536) {column_count})
         (i32.const 256)"
    )
}

/// An aggregate function that keeps what it has: `accumulate` returns the accumulators as they came, with `rows` as
/// their number, `merge` the second ones, and `finish` makes them rows.
fn aggregate(rows: &str) -> Wat {
    let manifest = r#"{"manifest":1,"module":{"name":"test"},"functions":[{"name":"f","kind":"aggregate",
        "inputs":[{"name":"input","columns":[{"name":"s","type":"utf8"}],"times":true}],
        "key":[{"name":"k","type":"int64"}],
        "outputs":[{"name":"output","columns":[{"name":"sum","type":"int64"}],"carry":"extend"}],
        "accumulator":{"columns":[{"name":"sum","type":"int64"}]}}]}"#;
    let batch = |rows: &str, columns: &str, count: &str| {
        format!(
            "(i32.store (i32.const 256) (i32.const 0))
             (i32.store (i32.const 260) {rows})
             (i32.store (i32.const 264) {columns})
             (i32.store (i32.const 268) {count})
             (i32.store (i32.const 272) (i32.const 0))
             (i32.store (i32.const 276) (i32.const 0))
             (i32.const 256)"
        )
    };
    let body = format!(
        r#"{open_and_close}
          (func (export "millstream:function/aggregate-function@0.1.0#accumulate")
            (param $rows i32) (param i32 i32) (param $has_times i32) (param $times i32) (param i32)
            (param $group_of_row i32) (param i32) (param $present i32) (param i32)
            (param $groups i32) (param $columns i32) (param $count i32) (result i32)
            ;; The first sum becomes the first time plus ten times the last row's group, if the second group is new.
            (i64.store (i32.load (i32.add (local.get $columns) (i32.const 16)))
              (i64.add (i64.load (local.get $times))
                (i64.extend_i32_u (i32.mul (i32.const 10)
                  (i32.load (i32.add (local.get $group_of_row)
                    (i32.mul (i32.const 4) (i32.sub (local.get $rows) (i32.const 1)))))))))
            (if (i32.and (i32.load8_u (local.get $present)) (i32.const 2)) (then unreachable))
            {accumulated})
          (func (export "millstream:function/aggregate-function@0.1.0#merge")
            (param i32 i32 i32) (param $groups i32) (param $columns i32) (param $count i32) (result i32) {merged})
          (func (export "millstream:function/aggregate-function@0.1.0#finish")
            (param $groups i32) (param $columns i32) (param $count i32) (param i32 i32 i32) (param i32 i32)
            (param $windows i32) (param $window_count i32) (result i32)
            ;; The first result is the end of the first window.
            (i64.store (i32.load (i32.add (local.get $columns) (i32.const 16)))
              (i64.load (i32.add (local.get $windows) (i32.const 8))))
            {finished})"#,
        open_and_close = open_and_close("aggregate-function"),
        accumulated = batch(rows, "(local.get $columns)", "(local.get $count)"),
        merged = batch("(local.get $groups)", "(local.get $columns)", "(local.get $count)"),
        finished = outcome("(local.get $groups)", "(local.get $columns)", "(local.get $count)"),
    );
    Wat::new("aggregate-module", manifest, body)
}

fn int64s(values: &[i64]) -> Columns {
    Columns::new(values.len(), vec![Arc::new(Int64Array::from(values.to_vec()))])
}

fn accumulate(function: &mut dyn UserFunction) -> Result<Columns, FunctionError> {
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "c"]));
    let rows = Columns::new(3, vec![text]);
    let cells = Cells { present: BooleanBuffer::from(vec![true, false]), values: int64s(&[1, 2]) };
    let times = Some(&[1000, 2000, 3000][..]);
    let call = &mut CallContext::default();
    block_on(function.accumulate(&rows, times, &[0, 1, 1], &cells, call)).map(|a| a.accumulators)
}

#[test]
fn accumulators_go_through_their_three_calls() {
    let mut function = function(&aggregate("(local.get $groups)").build(), FunctionLimits::default());
    let call = &mut CallContext::default();
    assert_eq!(accumulate(&mut *function).expect("accumulated").arrays, int64s(&[1010, 2]).arrays);
    let merged = block_on(function.merge(&int64s(&[1, 2]), &int64s(&[3, 4]), call)).expect("merged");
    assert_eq!(merged.arrays, int64s(&[3, 4]).arrays);
    let windows = [Window::new(0, 60), Window::new(60, 120)];
    let finished = block_on(function.finish(&int64s(&[5, 6]), &int64s(&[9]), &[0, 0], &windows, call))
        .expect("finished");
    assert_eq!(finished.outputs[0].origin, Origin::Each);
    assert_eq!(finished.outputs[0].columns, int64s(&[60, 6]).arrays);
}

#[test]
fn there_is_one_accumulator_a_group() {
    let mut function = function(&aggregate("(local.get $rows)").build(), FunctionLimits::default());
    let error = accumulate(&mut *function).expect_err("three for two").to_string();
    assert_eq!(
        error,
        "function `f` returned from `accumulate` what cannot be taken: the batch of accumulators has 3 rows: expected 2"
    );
}

#[test]
fn a_window_function_sees_rows_by_window() {
    let manifest = r#"{"manifest":1,"module":{"name":"test"},"functions":[{"name":"f","kind":"window",
        "inputs":[{"name":"input","columns":[{"name":"n","type":"int64"}]}],
        "key":[{"name":"k","type":"utf8"}],
        "outputs":[{"name":"output","columns":[{"name":"k","type":"utf8"}]}]}]}"#;
    let body = format!(
        r#"{open_and_close}
          (func (export "millstream:function/window-function@0.1.0#apply")
            (param $rows i32) (param i32 i32) (param i32 i32 i32) (param $offsets i32) (param $offset_count i32)
            (param $keys i32) (param $columns i32) (param $count i32) (param i32 i32)
            (param $windows i32) (param $window_count i32) (result i32)
            (if (i32.ne (local.get $offset_count) (i32.add (local.get $window_count) (i32.const 1))) (then unreachable))
            {outcome})"#,
        open_and_close = open_and_close("window-function"),
        outcome = outcome("(local.get $window_count)", "(local.get $columns)", "(local.get $count)")
    );
    let mut function =
        function(&Wat::new("window-module", manifest, body).build(), FunctionLimits::default());
    let keys: ArrayRef = Arc::new(StringViewArray::from(vec!["a key longer than a view", "b"]));
    let keys = Columns::new(2, vec![keys]);
    let windows = [Window::new(0, 10), Window::new(0, 10)];
    let call = &mut CallContext::default();
    let applied =
        block_on(function.apply(&int64s(&[1, 2, 3]), None, &[0, 2, 3], &keys, &[0, 1], &windows, call));
    assert_eq!(applied.expect("applied").outputs[0].columns, keys.arrays);
    let one = block_on(function.apply(&int64s(&[1, 2, 3]), None, &[0, 3], &keys, &[0], &windows[..1], call));
    let error = one.expect_err("two rows for one window").to_string();
    assert!(
        error.ends_with("column `k` of output port 0 (`output`) has 3 offsets: expected 2 for 1 rows"),
        "{error}"
    );
}

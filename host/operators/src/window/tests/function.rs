//! What the function is handed, what it may refuse, and what is left when it fails.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use arrow_array::{ArrayRef, Int32Array, StringViewArray, cast::AsArray, types::Int64Type};
use millstream_operator::{
    Accumulated, FunctionError, FunctionOutput, Operator, Origin, Outcome, Rejected, RowPolicy,
};
use millstream_types::{
    Alignment, Barrier, BarrierKind, Batch, Carry, Columns, DataType, Field, Lifecycle, Schema, Window,
};

use super::support::{Setup, numbers};
use crate::{
    KeyColumn, PortLayout, ReadColumn, WindowBounds,
    test_support::{Closures, block_on, context, drain, end_of_input, process, rows, text_batch, watermark},
    window_operator,
};

fn operator(setup: &Setup, function: Closures) -> Box<dyn Operator> {
    window_operator(setup.spec(), Box::new(function), context("window"), &|| None)
}

fn send(operator: &mut dyn Operator, lines: &[&str]) -> Result<String, String> {
    let lines: Vec<&str> = std::iter::once("key:utf8 v:int64?").chain(lines.iter().copied()).collect();
    process(operator, text_batch(&lines)).map_err(|e| e.to_string())
}

#[test]
fn keys_are_widened_and_handed_over_as_the_function_declares_them() {
    type Seen = Vec<(Vec<i64>, Vec<u32>, Vec<Window>)>;
    let seen: Rc<RefCell<Seen>> = Rc::default();
    let noted = seen.clone();
    let function = Setup::functions().finish(move |accumulators, keys, key_of_group, windows| {
        assert_eq!(keys.arrays.len(), 1, "only the key column that is asked for");
        let key_of = keys.arrays[0].as_primitive::<Int64Type>().values().to_vec();
        noted.borrow_mut().push((key_of, key_of_group.to_vec(), windows.to_vec()));
        let (rows, columns) = (accumulators.rows, accumulators.arrays.clone());
        let output = FunctionOutput { port: 0, rows, origin: Origin::Each, columns };
        Ok(Outcome { outputs: vec![output], rejected: Vec::new() })
    });
    let key = |index, name: &str, data_type| KeyColumn { index, field: Field::new(name, data_type) };
    let mut spec = Setup::tumbling(10).spec();
    spec.key = vec![key(0, "name", DataType::Utf8), key(2, "number", DataType::Int32)];
    spec.function_key = vec![ReadColumn { index: 1, data_type: DataType::Int64, reject_null: false }];
    spec.bounds = WindowBounds::default();
    let made = [Field::new("count", DataType::Int64), Field::new("sum", DataType::Int64)];
    spec.output.ports = vec![PortLayout::new(Carry::Replace, &[], &made)];
    let mut operator = window_operator(spec, Box::new(function), context("window"), &|| None);

    let schema = Schema::new(vec![
        Field::new("name", DataType::Utf8),
        Field::nullable("v", DataType::Int64),
        Field::new("number", DataType::Int32),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from(vec!["a", "a", "b"])),
        Arc::new(arrow_array::Int64Array::from(vec![1, 2, 4])),
        Arc::new(Int32Array::from(vec![7, 8, 7])),
    ];
    process(&mut *operator, Batch::new(&schema, columns, vec![1, 2, 3].into()).expect("fits"))
        .expect("goes on");
    assert_eq!(
        watermark(&mut *operator, 9).expect("fires"),
        rows(&["0: @9 1 1", "0: @9 1 2", "0: @9 1 4", "watermark 9"])
    );
    assert_eq!(*seen.borrow(), [(vec![7, 8, 7], vec![0, 1, 2], vec![Window::new(0, 10); 3])]);
}

#[test]
fn groups_that_the_function_refuses_to_finish_are_dead_letters_with_key_and_window() {
    let function = Setup::functions().finish(|_, _, _, windows| {
        let row = windows.len() as u32 - 1;
        Ok(Outcome {
            outputs: Vec::new(),
            rejected: vec![Rejected { row, reason: "no".into(), retryable: false }],
        })
    });
    let setup = Setup { policy: RowPolicy::DeadLetter, ..Setup::tumbling(10) };
    let mut operator = operator(&setup, function);
    send(&mut *operator, &["@1 a 1", "@2 b 2"]).expect("goes on");
    let letter = r#"2: @9 window 0 null no {"key":"b","start":"1970-01-01T00:00:00Z","end":"1970-01-01T00:00:00.010Z"}"#;
    assert_eq!(watermark(&mut *operator, 9).expect("goes on"), rows(&[letter, "watermark 9"]));
}

#[test]
fn rows_that_the_function_refuses_in_a_whole_window_are_dead_letters() {
    let function = Setup::functions().apply(|_, _, _, _, _, _| {
        Ok(Outcome {
            outputs: Vec::new(),
            rejected: vec![Rejected { row: 1, reason: "no".into(), retryable: false }],
        })
    });
    let setup = Setup { policy: RowPolicy::DeadLetter, ..Setup::tumbling(10).contents() };
    let mut operator = operator(&setup, function);
    send(&mut *operator, &["@1 a 1", "@2 a 2"]).expect("goes on");
    let expected = rows(&[r#"2: @2 window 0 null no {"v":2}"#, "watermark 9"]);
    assert_eq!(watermark(&mut *operator, 9).expect("goes on"), expected);
}

/// A function that traps at the value 13.
fn superstitious() -> Closures {
    let trap = || {
        let message = "thirteen".to_owned();
        FunctionError::Trapped { function: "f".into(), call: "accumulate", message, backtrace: String::new() }
    };
    Setup::functions().accumulate(move |rows: &Columns, _, groups, cells| {
        if numbers(rows, 0).contains(&13) {
            return Err(trap());
        }
        let made: Accumulated = super::support::accumulate(rows, groups, cells);
        Ok(made)
    })
}

#[test]
fn a_call_that_fails_leaves_windows_as_they_were() {
    for setup in [Setup::tumbling(10), Setup::sliding(20, 2), Setup::session(10)] {
        let outcome = |fails: bool| {
            let mut operator = operator(&setup, superstitious());
            send(&mut *operator, &["@1 a 1"]).expect("goes on");
            if fails {
                let error = send(&mut *operator, &["@5 a 2", "@25 b 13"]).expect_err("traps");
                assert!(error.contains("thirteen"), "{error}");
            }
            send(&mut *operator, &["@8 a 4"]).expect("goes on");
            end_of_input(&mut *operator).expect("fires")
        };
        assert_eq!(outcome(true), outcome(false));
    }
}

#[test]
fn a_barrier_changes_nothing() {
    let run = |barriers: bool| {
        let mut operator = operator(&Setup::sliding(10, 1), Setup::functions());
        let mut out = millstream_operator::Collector::new();
        let mut output = String::new();
        for time in 0..40i64 {
            let lines: Vec<String> = (0..3).map(|back| format!("@{} a {time}", time - back)).collect();
            output += &send(&mut *operator, &lines.iter().map(String::as_str).collect::<Vec<_>>())
                .expect("goes on");
            output += &watermark(&mut *operator, time - 2).expect("fires");
            if barriers && time % 3 == 0 {
                let barrier = Barrier {
                    id: 1,
                    kind: BarrierKind::Checkpoint,
                    alignment: Alignment::Aligned,
                    triggered: 0,
                    stop: false,
                    base: None,
                };
                block_on(operator.before_barrier(&barrier, &mut out)).expect("goes on");
                assert_eq!(drain(&mut out), "");
            }
        }
        output
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn life_cycle_calls_are_made_where_they_are_wanted() {
    for setup in [Setup::tumbling(10), Setup::session(10)] {
        let calls: Rc<RefCell<Vec<&str>>> = Rc::default();
        let run = |lifecycle: Vec<Lifecycle>| {
            let noted = |name| {
                let calls = calls.clone();
                move |_: &mut millstream_operator::CallContext| {
                    calls.borrow_mut().push(name);
                    let column: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![5]));
                    let (origin, columns) = (Origin::Made(vec![7]), vec![column]);
                    let output = FunctionOutput { port: 0, rows: 1, origin, columns };
                    Ok(Outcome { outputs: vec![output], rejected: Vec::new() })
                }
            };
            let function = Setup::functions().before_barrier(noted("barrier")).end_of_input(noted("end"));
            let mut spec = setup.spec();
            spec.lifecycle = lifecycle;
            spec.output.ports =
                vec![PortLayout::new(Carry::Replace, &[], &[Field::new("n", DataType::Int64)])];
            let mut operator = window_operator(spec, Box::new(function), context("window"), &|| None);
            let mut out = millstream_operator::Collector::new();
            let barrier = Barrier {
                id: 1,
                kind: BarrierKind::Checkpoint,
                alignment: Alignment::Aligned,
                triggered: 0,
                stop: false,
                base: None,
            };
            block_on(operator.before_barrier(&barrier, &mut out)).expect("goes on");
            drain(&mut out) + &end_of_input(&mut *operator).expect("ends")
        };
        assert_eq!(run(Vec::new()), rows(&["watermark end"]));
        let both = vec![Lifecycle::BeforeBarrier, Lifecycle::EndOfInput];
        assert_eq!(run(both), rows(&["0: @7 5", "watermark end", "0: @7 5"]));
        assert_eq!(*calls.borrow(), ["barrier", "end"]);
    }
}

#[test]
fn a_row_with_a_key_that_is_too_long_follows_the_policy() {
    let long = "x".repeat(millstream_types::Limits::KEY_BYTES);
    for setup in [Setup::tumbling(10), Setup::session(10)] {
        let mut operator = operator(&setup, Setup::functions());
        send(&mut *operator, &["@1 a 1", &format!("@2 {long} 2"), "@3 b 4"]).expect("skipped");
        let fired = watermark(&mut *operator, 30).expect("fires");
        assert_eq!(fired.lines().count(), 3, "a, b and the watermark: {fired}");
        let mut strict = self::operator(&Setup { policy: RowPolicy::Fail, ..setup }, Setup::functions());
        let error = send(&mut *strict, &[&format!("@2 {long} 2")]).expect_err("refused");
        assert!(error.contains("its key takes 65539 bytes"), "{error}");
    }
}

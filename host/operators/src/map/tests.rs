//! The map operator over functions that work, refuse and trap.

use std::{cell::RefCell, rc::Rc, sync::Arc, sync::atomic::Ordering::Relaxed};

use arrow_array::{ArrayRef, Int64Array, cast::AsArray, types::Int64Type};
use millstream_operator::{FunctionOutput, MetricValue, Origin, RowPolicy};
use millstream_types::{
    Alignment, BarrierKind, Carry, Columns, DataType, Field, Positions, RecordNumbers, RecordUnit,
};

use super::*;
use crate::{
    PortLayout, ReadColumn,
    test_support::{Closures, block_on, context, drain, end_of_input, process, rows, schema, text_batch},
};

const COLUMNS: &str = "name:utf8 n:int64?";

fn spec(policy: RowPolicy, on_trap: OnTrap) -> MapSpec {
    let made = [Field::new("double", DataType::Int64)];
    let port = PortLayout::new(Carry::Extend, schema(COLUMNS).fields(), &made);
    MapSpec {
        input: ProjectionSpec {
            columns: vec![ReadColumn { index: 1, data_type: DataType::Int64, reject_null: true }],
            times: false,
        },
        output: OutputSpec { function: "double".into(), ports: vec![port] },
        row_errors: RowErrorSpec { policy, port: 1 },
        on_trap,
        lifecycle: Vec::new(),
    }
}

fn numbers(columns: &Columns) -> &[i64] {
    columns.arrays[0].as_primitive::<Int64Type>().values()
}

/// Doubles its number; refuses negative ones, panics at multiples of 100, leaves 7 out.
fn double(input: &Columns) -> Result<Outcome, FunctionError> {
    if let Some(n) = numbers(input).iter().find(|&&n| n > 0 && n % 100 == 0) {
        let message = format!("no {n} please");
        return Err(FunctionError::Trapped {
            function: "double".into(),
            call: "apply",
            message,
            backtrace: String::new(),
        });
    }
    let mut picked = Vec::new();
    let mut rejected = Vec::new();
    for (row, &n) in numbers(input).iter().enumerate() {
        match n {
            ..0 => rejected.push(Rejected {
                row: row as u32,
                reason: format!("{n} is negative"),
                retryable: false,
            }),
            7 => {}
            _ => picked.push(row as u32),
        }
    }
    let made: ArrayRef =
        Arc::new(picked.iter().map(|&r| numbers(input)[r as usize] * 2).collect::<Int64Array>());
    let output =
        FunctionOutput { port: 0, rows: picked.len(), origin: Origin::Picked(picked), columns: vec![made] };
    Ok(Outcome { outputs: vec![output], rejected })
}

fn operator(policy: RowPolicy, on_trap: OnTrap) -> MapOperator {
    let function = Closures::default().map(|input, _, call| {
        call.counts.push(("rows".into(), input.rows as u64));
        double(input)
    });
    MapOperator::new(spec(policy, on_trap), Box::new(function), context("double"))
}

#[test]
fn rows_go_through_with_what_they_carry() {
    let mut operator = operator(RowPolicy::Fail, OnTrap::Fail);
    let output =
        process(&mut operator, text_batch(&[COLUMNS, "@1 a 1", "@2 b 7", "@3 c 3"])).expect("good rows");
    assert_eq!(output, rows(&["0: @1 a 1 2", "0: @3 c 3 6"]));
    assert_eq!(operator.calls.ctx().metrics.user()["rows"], MetricValue::Counter(3));
}

#[test]
fn refused_rows_and_nulls_follow_the_policy() {
    let batch = || text_batch(&[COLUMNS, "@1 a -1", "@2 b null", "@3 c 3"]);
    let mut skipping = operator(RowPolicy::Skip, OnTrap::Fail);
    assert_eq!(process(&mut skipping, batch()).expect("skips"), rows(&["0: @3 c 3 6"]));
    assert_eq!(skipping.calls.ctx().metrics.rejected.load(Relaxed), 2);

    let output = process(&mut operator(RowPolicy::DeadLetter, OnTrap::Fail), batch()).expect("keeps");
    let expected = [
        r#"1: @2 double 0 null "column `n` is null and the function takes no null in it" {"name":"b","n":null}"#,
        r#"1: @1 double 0 null "-1 is negative" {"name":"a","n":-1}"#,
        "0: @3 c 3 6",
    ];
    assert_eq!(output, rows(&expected));

    let error =
        process(&mut operator(RowPolicy::Fail, OnTrap::Fail), batch()).expect_err("fails").to_string();
    assert!(error.contains("column `n` is null") && error.contains(r#"{"name":"b","n":null}"#), "{error}");
}

/// Rows 1 to 1,000: ten of them are multiples of 100.
fn thousand() -> Batch {
    let lines: Vec<String> = (1..=1000).map(|n| format!("@{n} r{n} {n}")).collect();
    let lines: Vec<&str> = std::iter::once(COLUMNS).chain(lines.iter().map(String::as_str)).collect();
    text_batch(&lines)
}

#[test]
fn isolation_finds_ten_poison_rows_in_a_thousand() {
    let mut operator = operator(RowPolicy::DeadLetter, OnTrap::Isolate);
    let output = process(&mut operator, thousand()).expect("isolates");
    let (good, dead): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| line.starts_with("0:"));
    // 7 is left out by the function itself.
    assert_eq!((good.len(), dead.len()), (989, 10));
    assert!(
        good.iter().map(|l| l.split(' ').nth(3).expect("n").parse::<i64>().expect("a number")).is_sorted()
    );
    assert_eq!(dead[0], r#"1: @100 double 0 null "no 100 please" {"name":"r100","n":100}"#);
    assert_eq!(dead[9], r#"1: @1000 double 0 null "no 1000 please" {"name":"r1000","n":1000}"#);
    let user = operator.calls.ctx().metrics.user();
    assert_eq!(user["rows"], MetricValue::Counter(990), "calls that trapped count nothing");
}

#[test]
fn isolation_under_fail_names_the_row() {
    let error =
        process(&mut operator(RowPolicy::Fail, OnTrap::Isolate), thousand()).expect_err("fails").to_string();
    assert!(error.contains("no 100 please") && error.contains(r#"{"name":"r100","n":100}"#), "{error}");
}

#[test]
fn without_isolation_a_trap_fails_the_subtask() {
    let error = process(&mut operator(RowPolicy::Skip, OnTrap::Fail), thousand()).expect_err("fails");
    assert!(matches!(error, OperatorError::Function(FunctionError::Trapped { .. })), "{error}");
}

#[test]
fn a_refused_call_is_not_isolated() {
    let calls = Rc::new(RefCell::new(0));
    let counted = calls.clone();
    let function = Closures::default().map(move |_, _, _| {
        *counted.borrow_mut() += 1;
        Err(FunctionError::Refused { function: "f".into(), message: "not today".into() })
    });
    let spec = spec(RowPolicy::Skip, OnTrap::Isolate);
    let mut operator = MapOperator::new(spec, Box::new(function), context("f"));
    let error = process(&mut operator, thousand()).expect_err("fails");
    assert!(error.to_string().contains("not today"));
    assert_eq!(*calls.borrow(), 1);
}

#[test]
fn life_cycle_calls_are_made_where_they_are_wanted() {
    let made = |value: i64, time| {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![value]));
        let output =
            FunctionOutput { port: 0, rows: 1, origin: Origin::Made(vec![time]), columns: vec![column] };
        Ok(Outcome { outputs: vec![output], rejected: Vec::new() })
    };
    let function =
        || Closures::default().before_barrier(move |_| made(1, 10)).end_of_input(move |_| made(2, 20));
    let mut spec = spec(RowPolicy::Fail, OnTrap::Fail);
    spec.output.ports[0] = PortLayout::new(Carry::Replace, &[], &[Field::new("n", DataType::Int64)]);
    let barrier = Barrier {
        id: 1,
        kind: BarrierKind::Checkpoint,
        alignment: Alignment::Aligned,
        triggered: 0,
        stop: false,
        base: None,
    };
    let run = |lifecycle: Vec<Lifecycle>| {
        let spec = MapSpec { lifecycle, ..spec.clone() };
        let mut operator = MapOperator::new(spec, Box::new(function()), context("f"));
        let mut out = Collector::new();
        block_on(operator.before_barrier(&barrier, &mut out)).expect("goes on");
        drain(&mut out) + &end_of_input(&mut operator).expect("ends")
    };
    assert_eq!(run(vec![]), "watermark end\n");
    assert_eq!(
        run(vec![Lifecycle::BeforeBarrier, Lifecycle::EndOfInput]),
        rows(&["0: @10 1", "watermark end", "0: @20 2"])
    );
}

#[test]
fn a_life_cycle_call_without_rows_makes_nothing_of_a_port_that_extends() {
    let nothing = || {
        let column: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
        let output = FunctionOutput { port: 0, rows: 0, origin: Origin::Each, columns: vec![column] };
        Ok(Outcome { outputs: vec![output], rejected: Vec::new() })
    };
    let function = Closures::default().end_of_input(move |_| nothing());
    let spec = MapSpec { lifecycle: vec![Lifecycle::EndOfInput], ..spec(RowPolicy::Fail, OnTrap::Fail) };
    let mut operator = MapOperator::new(spec, Box::new(function), context("f"));
    assert_eq!(end_of_input(&mut operator).expect("ends"), "watermark end\n");
}

/// Lines 2 and on of a file.
fn lines_of(batch: Batch) -> Batch {
    let numbers = RecordNumbers::Even { first: 2, stride: 1, rows: batch.rows() };
    batch.with_positions(Some(Positions::read("n.csv".into(), RecordUnit::Line, numbers)))
}

#[test]
fn refused_rows_keep_their_place_in_the_source_behind_other_operators() {
    let mut first = operator(RowPolicy::Fail, OnTrap::Fail);
    let batch = lines_of(text_batch(&[COLUMNS, "a 1", "b 7", "c 3", "d 100", "e 5"]).slice(0, 3));
    let mut out = Collector::new();
    block_on(first.process(0, batch, &mut out)).expect("good rows");
    let Some((0, millstream_types::StreamElement::Batch(batch))) = out.pop() else { panic!("a batch") };
    let refusing = Closures::default().map(|input, _, _| {
        let reject = |row| Rejected { row, reason: "no".into(), retryable: false };
        Ok(Outcome { outputs: Vec::new(), rejected: (0..input.rows as u32).map(reject).collect() })
    });
    let spec = spec(RowPolicy::DeadLetter, OnTrap::Fail);
    let mut second = MapOperator::new(spec, Box::new(refusing), context("second"));
    let output = process(&mut second, batch).expect("goes on");
    let expected = [
        r#"1: second 0 n.csv:2 no {"name":"a","n":1,"double":2}"#,
        r#"1: second 0 n.csv:4 no {"name":"c","n":3,"double":6}"#,
    ];
    assert_eq!(output, rows(&expected));
}

#[test]
fn a_row_that_traps_is_told_with_its_place() {
    let mut operator = operator(RowPolicy::DeadLetter, OnTrap::Isolate);
    let output = process(&mut operator, lines_of(text_batch(&[COLUMNS, "a 1", "b null", "c 100"])));
    let expected = [
        r#"1: double 0 n.csv:3 "column `n` is null and the function takes no null in it" {"name":"b","n":null}"#,
        "0: a 1 2",
        r#"1: double 0 n.csv:4 "no 100 please" {"name":"c","n":100}"#,
    ];
    assert_eq!(output.expect("goes on"), rows(&expected));
}

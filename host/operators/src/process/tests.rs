//! The process operator over functions that count, set timers and fail.

use std::{cell::RefCell, rc::Rc, sync::Arc, sync::atomic::Ordering::Relaxed};

use arrow_array::{Int64Array, StringViewArray, cast::AsArray, types::Int64Type};
use arrow_buffer::BooleanBuffer;
use millstream_operator::{FunctionOutput, ManualClock, Origin, Rejected, RowPolicy};
use millstream_types::{Alignment, BarrierKind, Carry, Cells, Column, Columns, DataType, StateKind};

use super::*;
use crate::{
    DeclaredKey, PortLayout, ReadColumn,
    test_support::{
        Closures, block_on, context, context_with_clock, drain, end_of_input, process, processing_time, rows,
        schema, text_batch, watermark,
    },
};

const COLUMNS: &str = "name:utf8 key:int32? n:int64";

fn state() -> State {
    let column = Column { name: "sum".into(), data_type: DataType::Int64, nullable: false };
    State {
        name: "sum".into(),
        kind: StateKind::Value,
        columns: vec![column],
        version: 1,
        migrates_from: Vec::new(),
        redistribution: Default::default(),
    }
}

/// Keyed by `key`, which the function sees as int64 and not null; it reads `n`. Port 0 extends with `sum`, port 1 has
/// the key and what a timer makes, port 2 is for dead letters.
fn spec(policy: RowPolicy) -> ProcessSpec {
    let made = [Field::new("sum", DataType::Int64)];
    let key = [Field::nullable("key", DataType::Int32)];
    let rows = PortLayout::new(Carry::Extend, schema(COLUMNS).fields(), &made);
    let timers = PortLayout::new(Carry::Extend, &key, &made);
    let output = |ports| OutputSpec { function: "sums".into(), ports };
    ProcessSpec {
        inputs: vec![ProcessInput {
            rows: ProjectionSpec {
                columns: vec![ReadColumn { index: 2, data_type: DataType::Int64, reject_null: false }],
                times: true,
            },
            key: vec![1],
            output: output(vec![rows.clone(), timers.clone()]),
        }],
        key: KeySpec {
            stored: vec![DataType::Int32],
            declared: vec![DeclaredKey { data_type: DataType::Int64, reject_null: true }],
        },
        states: vec![state()],
        state_ttl: None,
        timers: TimerSpec {
            origin: Schema::new(key.to_vec()),
            key_of_column: vec![Some(0)],
            unfilled: vec![None, None],
            key: Schema::new(key.to_vec()),
            output: output(vec![rows, timers]),
        },
        row_errors: RowErrorSpec { policy, port: 2 },
        lifecycle: Vec::new(),
    }
}

fn ints(columns: &Columns, index: usize) -> Vec<i64> {
    columns.arrays[index].as_primitive::<Int64Type>().values().to_vec()
}

fn output(port: usize, origin: Origin, made: Vec<i64>) -> FunctionOutput {
    FunctionOutput { port, rows: made.len(), origin, columns: vec![Arc::new(Int64Array::from(made))] }
}

fn outcome(outputs: Vec<FunctionOutput>) -> Result<Outcome, FunctionError> {
    Ok(Outcome { outputs, rejected: Vec::new() })
}

fn refused() -> FunctionError {
    FunctionError::Refused { function: "sums".into(), message: "no".into() }
}

fn all_keys(call: &CallContext) -> Vec<u32> {
    (0..call.keyed.as_ref().expect("keyed").keys() as u32).collect()
}

/// The sums of all keys of a call.
fn read(call: &mut CallContext) -> Vec<i64> {
    let keys = all_keys(call);
    let keyed = call.keyed.as_mut().expect("keyed");
    let id = keyed.state(StateKind::Value, "sum").expect("declared");
    let cells = keyed.read_values(id, &keys).expect("reads");
    ints(&cells.values, 0)
        .iter()
        .zip(&cells.present)
        .map(|(&sum, present)| if present { sum } else { 0 })
        .collect()
}

fn write(call: &mut CallContext, sums: Vec<i64>) {
    let keys = all_keys(call);
    let keyed = call.keyed.as_mut().expect("keyed");
    let id = keyed.state(StateKind::Value, "sum").expect("declared");
    let present = BooleanBuffer::new_set(sums.len());
    let values = Columns::new(sums.len(), vec![Arc::new(Int64Array::from(sums))]);
    keyed.write_values(id, &keys, Cells { present, values }).expect("writes");
}

fn set(call: &mut CallContext, clock: Clock, keys: &[u32], times: &[i64]) {
    call.keyed.as_mut().expect("keyed").set_timers(clock, keys, times).expect("sets");
}

/// Adds `n` to the key's sum and makes the sum so far; with a negative `n` the whole call is refused.
fn add_up(input: &KeyedInput<'_>, call: &mut CallContext) -> Result<Outcome, FunctionError> {
    let mut sums = read(call);
    let running = input.key_of_row.iter().zip(ints(input.rows, 0)).map(|(&key, n)| {
        sums[key as usize] += n;
        sums[key as usize]
    });
    let made = running.collect();
    write(call, sums);
    if ints(input.rows, 0).iter().any(|&n| n < 0) {
        Err(refused())
    } else {
        outcome(vec![output(0, Origin::Each, made)])
    }
}

fn operator(policy: RowPolicy, function: Closures) -> ProcessOperator {
    ProcessOperator::new(spec(policy), Box::new(function), context("sums"))
}

#[test]
fn state_is_kept_by_key_from_call_to_call() {
    let mut operator = operator(RowPolicy::Fail, Closures::default().process(add_up));
    let first = process(&mut operator, text_batch(&[COLUMNS, "@1 a 7 1", "@2 b 8 10", "@3 c 7 2"]));
    assert_eq!(first.expect("good"), rows(&["0: @1 a 7 1 1", "0: @2 b 8 10 10", "0: @3 c 7 2 3"]));
    let second = process(&mut operator, text_batch(&[COLUMNS, "@4 d 8 5", "@5 e 7 4"]));
    assert_eq!(second.expect("good"), rows(&["0: @4 d 8 5 15", "0: @5 e 7 4 7"]));
}

#[test]
fn the_function_sees_distinct_keys_times_and_the_watermark() {
    let function = Closures::default().process(|input, _| {
        assert_eq!(ints(input.keys, 0), [7, 8]);
        assert_eq!(input.key_of_row, [0, 1, 0]);
        assert_eq!((input.times, input.watermark), (Some(&[1, 2, 3][..]), 0));
        outcome(Vec::new())
    });
    let mut operator = operator(RowPolicy::Fail, function);
    assert_eq!(watermark(&mut operator, 0).expect("goes on"), "watermark 0\n");
    process(&mut operator, text_batch(&[COLUMNS, "@1 a 7 1", "@2 b 8 10", "@3 c 7 2"])).expect("good");
}

#[test]
fn a_failed_call_writes_nothing() {
    let mut operator = operator(RowPolicy::Fail, Closures::default().process(add_up));
    process(&mut operator, text_batch(&[COLUMNS, "@1 a 7 1"])).expect("good");
    let error = process(&mut operator, text_batch(&[COLUMNS, "@1 a 7 5", "@1 a 9 -1"])).expect_err("refused");
    assert_eq!(error.to_string(), "function `sums` refused the call: no");
    assert_eq!(operator.keyed.as_ref().map(KeyedContext::key_count), Some(1));
    let after = process(&mut operator, text_batch(&[COLUMNS, "@2 b 7 1"])).expect("good");
    assert_eq!(after, rows(&["0: @2 b 7 1 2"]));
}

#[test]
fn null_keys_and_refused_rows_follow_the_policy_and_keep_the_rest() {
    let function = Closures::default().process(|input, call| {
        let mut outcome = add_up(input, call)?;
        outcome.rejected.push(Rejected { row: 1, reason: "odd".into(), retryable: false });
        Ok(outcome)
    });
    let mut operator = operator(RowPolicy::DeadLetter, function);
    let shown = process(&mut operator, text_batch(&[COLUMNS, "@1 a null 1", "@2 b 7 2", "@3 c 7 3"]))
        .expect("goes on");
    let expected = [
        r#"2: @1 sums 0 null "column `key` is null and the function takes no null in it" {"name":"a","key":null,"n":1}"#,
        r#"2: @3 sums 0 null odd {"name":"c","key":7,"n":3}"#,
        "0: @2 b 7 2 2",
        "0: @3 c 7 3 5",
    ];
    assert_eq!(shown, rows(&expected));
}

/// Sets an event timer at `n` for each row; a timer makes its round's number, and one at 10 sets another at 15.
fn with_timers() -> Closures {
    let mut round = 0;
    Closures::default()
        .process(|input, call| {
            set(call, Clock::Event, input.key_of_row, &ints(input.rows, 0));
            outcome(Vec::new())
        })
        .on_timer(move |fired, call| {
            round += 1;
            let again: Vec<u32> =
                (0..).zip(fired.times).filter(|&(_, &t)| t == 10).map(|(key, _)| key).collect();
            set(call, Clock::Event, &again, &vec![15; again.len()]);
            outcome(vec![output(1, Origin::Each, vec![round; fired.times.len()])])
        })
}

#[test]
fn timers_fire_in_rounds_before_the_watermark_goes_on() {
    let mut operator = operator(RowPolicy::Fail, with_timers());
    let batch = text_batch(&[COLUMNS, "a 1 30", "b 2 20", "c 1 10", "d 1 30", "e 3 99"]);
    assert_eq!(process(&mut operator, batch).expect("good"), "");
    assert_eq!(watermark(&mut operator, 9).expect("goes on"), "watermark 9\n");
    let fired = watermark(&mut operator, 40).expect("fires");
    // Key 1 has timers at 10 and 30 and sets one at 15 with the first round.
    let expected = ["1: @10 1 1", "1: @20 2 1", "1: @15 1 2", "1: @30 1 3", "watermark 40"];
    assert_eq!(fired, rows(&expected));
    assert_eq!(end_of_input(&mut operator).expect("ends"), rows(&["1: @99 3 4", "watermark end"]));
    assert_eq!(operator.keyed.as_ref().map(KeyedContext::key_count), Some(0));
}

#[test]
fn a_timer_set_behind_the_watermark_fires_with_the_next_one() {
    let mut operator = operator(RowPolicy::Fail, with_timers());
    watermark(&mut operator, 100).expect("goes on");
    process(&mut operator, text_batch(&[COLUMNS, "a 1 30"])).expect("good");
    assert_eq!(watermark(&mut operator, 100).expect("fires"), rows(&["1: @30 1 1", "watermark 100"]));
}

#[test]
fn a_round_is_bounded() {
    let mut operator = operator(RowPolicy::Fail, with_timers());
    let keys = Limits::BATCH_ROWS + 5;
    let lines: Vec<String> = (0..keys).map(|key| format!("a {key} 20")).collect();
    let lines: Vec<&str> = std::iter::once(COLUMNS).chain(lines.iter().map(String::as_str)).collect();
    process(&mut operator, text_batch(&lines)).expect("good");
    let mut out = Collector::new();
    assert_eq!(block_on(operator.watermark(20, &mut out)).expect("fires"), Progress::More);
    assert_eq!(drain(&mut out).lines().count(), Limits::BATCH_ROWS);
    assert_eq!(watermark(&mut operator, 20).expect("fires").lines().count(), 5 + 1);
}

#[test]
fn a_failed_round_leaves_its_timers_due() {
    let failing = Rc::new(RefCell::new(true));
    let fails = failing.clone();
    let function = Closures::default()
        .process(|input, call| {
            set(call, Clock::Event, input.key_of_row, &ints(input.rows, 0));
            outcome(Vec::new())
        })
        .on_timer(move |fired, _| {
            if *fails.borrow() {
                Err(refused())
            } else {
                outcome(vec![output(1, Origin::Each, fired.times.to_vec())])
            }
        });
    let mut operator = operator(RowPolicy::Fail, function);
    process(&mut operator, text_batch(&[COLUMNS, "a 1 30"])).expect("good");
    watermark(&mut operator, 50).expect_err("refused");
    *failing.borrow_mut() = false;
    assert_eq!(watermark(&mut operator, 50).expect("fires"), rows(&["1: @30 1 30", "watermark 50"]));
}

#[test]
fn processing_timers_wake_the_operator_and_are_dropped_at_the_end() {
    let clock = Arc::new(ManualClock::new(0));
    let function = Closures::default()
        .process(|input, call| {
            set(call, Clock::Processing, input.key_of_row, &ints(input.rows, 0));
            outcome(Vec::new())
        })
        .on_timer(|fired, call| {
            assert_eq!((fired.clock, call.now), (Clock::Processing, 60));
            outcome(vec![output(1, Origin::Each, fired.times.to_vec())])
        });
    let ctx = context_with_clock("sums", clock.clone());
    let mut operator = ProcessOperator::new(spec(RowPolicy::Fail), Box::new(function), ctx);
    assert_eq!(operator.next_wakeup(), None);
    process(&mut operator, text_batch(&[COLUMNS, "a 1 50", "b 2 60", "c 3 70", "d 3 80"])).expect("good");
    assert_eq!(operator.next_wakeup(), Some(50));
    assert_eq!(watermark(&mut operator, 1_000).expect("goes on"), "watermark 1000\n");
    clock.set(60);
    assert_eq!(processing_time(&mut operator, 60).expect("fires"), rows(&["1: @50 1 50", "1: @60 2 60"]));
    assert_eq!(operator.next_wakeup(), Some(70));
    assert_eq!(end_of_input(&mut operator).expect("ends"), "watermark end\n");
    assert_eq!(operator.calls.ctx().metrics.timers_dropped.load(Relaxed), 2);
    assert_eq!(operator.next_wakeup(), None);
}

#[test]
fn state_that_nothing_touches_expires() {
    let clock = Arc::new(ManualClock::new(0));
    let ctx = context_with_clock("sums", clock.clone());
    let spec = ProcessSpec { state_ttl: Some(1600), ..spec(RowPolicy::Fail) };
    let mut operator = ProcessOperator::new(spec, Box::new(Closures::default().process(add_up)), ctx);
    process(&mut operator, text_batch(&[COLUMNS, "@1 a 7 1", "@2 b 8 10"])).expect("good");
    assert_eq!(operator.next_wakeup(), Some(1700), "so that it goes though no row comes");
    clock.set(1000);
    process(&mut operator, text_batch(&[COLUMNS, "@3 c 8 10"])).expect("good");
    clock.set(1700);
    // Nobody has looked at the clock before the row.
    let made = process(&mut operator, text_batch(&[COLUMNS, "@4 d 7 5", "@5 e 8 5"])).expect("good");
    assert_eq!(made, rows(&["0: @4 d 7 5 5", "0: @5 e 8 5 25"]));
    assert_eq!(operator.calls.ctx().metrics.keys_expired.load(Relaxed), 1);
    processing_time(&mut operator, 9000).expect("good");
    assert_eq!((operator.next_wakeup(), operator.calls.ctx().metrics.keys_expired.load(Relaxed)), (None, 3));
}

#[test]
fn what_a_timer_cannot_carry_is_null() {
    let mut spec = spec(RowPolicy::Fail);
    let fields = vec![Field::nullable("name", DataType::Utf8), Field::nullable("key", DataType::Int32)];
    spec.timers.output.ports[1] =
        PortLayout::new(Carry::Extend, &fields, &[Field::new("sum", DataType::Int64)]);
    spec.timers.origin = Schema::new(fields);
    spec.timers.key_of_column = vec![None, Some(0)];
    let mut operator = ProcessOperator::new(spec, Box::new(with_timers()), context("sums"));
    process(&mut operator, text_batch(&[COLUMNS, "a 1 30"])).expect("good");
    assert_eq!(watermark(&mut operator, 30).expect("fires"), rows(&["1: @30 null 1 1", "watermark 30"]));
}

#[test]
fn keys_of_text_and_of_none_declared_work_too() {
    let mut spec = spec(RowPolicy::Fail);
    spec.inputs[0].key = vec![0];
    spec.key = KeySpec { stored: vec![DataType::Utf8], declared: Vec::new() };
    spec.timers.origin = Schema::new(vec![Field::new("name", DataType::Utf8)]);
    spec.timers.output.ports[1] =
        PortLayout::new(Carry::Extend, spec.timers.origin.fields(), &[Field::new("sum", DataType::Int64)]);
    let function = Closures::default().process(|input, call| {
        assert_eq!((input.keys.rows, input.keys.arrays.len()), (2, 0));
        set(call, Clock::Event, &[0, 1], &[5, 5]);
        add_up(input, call)
    });
    let function = function.on_timer(|fired, call| {
        assert_eq!((fired.keys.rows, fired.keys.arrays.len()), (2, 0));
        let sums = read(call);
        outcome(vec![output(1, Origin::Picked(vec![1, 0]), sums)])
    });
    let mut operator = ProcessOperator::new(spec, Box::new(function), context("sums"));
    process(&mut operator, text_batch(&[COLUMNS, "a null 1", "b null 10", "a 3 2"])).expect("good");
    assert_eq!(
        watermark(&mut operator, 5).expect("fires"),
        rows(&["1: @5 b 3", "1: @5 a 10", "watermark 5"])
    );
}

#[test]
fn two_inputs_share_the_state_of_their_keys() {
    let mut spec = spec(RowPolicy::Fail);
    let other = schema("sum:int64 k:int32");
    spec.inputs.push(ProcessInput {
        rows: ProjectionSpec {
            columns: vec![ReadColumn { index: 0, data_type: DataType::Int64, reject_null: false }],
            times: false,
        },
        key: vec![1],
        output: OutputSpec {
            function: "sums".into(),
            ports: vec![PortLayout::new(
                Carry::Extend,
                other.fields(),
                &[Field::new("sum", DataType::Int64)],
            )],
        },
    });
    let function = Closures::default().process(add_up);
    let mut operator = ProcessOperator::new(spec, Box::new(function), context("sums"));
    process(&mut operator, text_batch(&[COLUMNS, "a 7 1"])).expect("good");
    let mut out = Collector::new();
    block_on(operator.process(1, text_batch(&["sum:int64 k:int32", "@3 5 7"]), &mut out)).expect("good");
    assert_eq!(drain(&mut out), rows(&["0: @3 6 7"]));
}

#[test]
fn life_cycle_calls_are_made_where_they_are_wanted() {
    let made = |value, time| outcome(vec![output(0, Origin::Made(vec![time]), vec![value])]);
    let function = Closures::default().before_barrier(move |call| {
        assert_eq!(call.keyed.as_ref().map(KeyedContext::keys), Some(0));
        made(1, 10)
    });
    let function = function.end_of_input(move |_| made(2, 20));
    let mut spec = spec(RowPolicy::Fail);
    spec.timers.output.ports[0] = PortLayout::new(Carry::Replace, &[], &[Field::new("sum", DataType::Int64)]);
    spec.lifecycle = vec![Lifecycle::BeforeBarrier, Lifecycle::EndOfInput];
    let mut operator = ProcessOperator::new(spec, Box::new(function), context("sums"));
    let mut out = Collector::new();
    let barrier = Barrier {
        id: 1,
        kind: BarrierKind::Checkpoint,
        alignment: Alignment::Aligned,
        triggered: 0,
        stop: false,
        base: None,
    };
    block_on(operator.before_barrier(&barrier, &mut out)).expect("goes on");
    assert_eq!(drain(&mut out), rows(&["0: @10 1"]));
    assert_eq!(end_of_input(&mut operator).expect("ends"), rows(&["watermark end", "0: @20 2"]));
}

/// Keyed by `name`, the second one of which is too long.
fn process_long_key(policy: RowPolicy) -> Result<String, String> {
    let mut spec = spec(policy);
    spec.inputs[0].key = vec![0];
    spec.key = KeySpec { stored: vec![DataType::Utf8], declared: Vec::new() };
    let mut operator =
        ProcessOperator::new(spec, Box::new(Closures::default().process(add_up)), context("sums"));
    let names = StringViewArray::from(vec!["short".to_owned(), "x".repeat(Limits::KEY_BYTES)]);
    let ints = text_batch(&[COLUMNS, "a 1 1", "b 2 2"]);
    let columns = vec![Arc::new(names) as ArrayRef, ints.column(1).clone(), ints.column(2).clone()];
    let batch = Batch::new(&schema(COLUMNS), columns, ints.times().clone()).expect("fits");
    process(&mut operator, batch).map_err(|e| e.to_string())
}

#[test]
fn a_row_with_a_key_that_is_too_long_follows_the_policy() {
    let reason = "its key takes 65539 bytes: at most 65536 are allowed";
    let error = process_long_key(RowPolicy::Fail).expect_err("refused");
    assert!(error.starts_with(&format!("row refused: {reason}; row: ")) && error.len() < 1000, "{error}");
    assert_eq!(process_long_key(RowPolicy::Skip), Ok(rows(&["0: short 1 1 1"])));
    let letters = process_long_key(RowPolicy::DeadLetter).expect("goes on");
    assert!(letters.starts_with("2: sums 0 null ") && letters.contains(reason), "{}", &letters[..200]);
    assert!(letters.ends_with(&rows(&["0: short 1 1 1"])), "the other row goes on");
}

#[test]
fn a_timer_that_is_refused_follows_the_policy() {
    let refuse = |policy| {
        let function = with_timers().on_timer(|_, _| {
            let rejected = vec![Rejected { row: 0, reason: "too late".into(), retryable: false }];
            Ok(Outcome { outputs: Vec::new(), rejected })
        });
        let mut operator = operator(policy, function);
        process(&mut operator, text_batch(&[COLUMNS, "a 1 30"])).expect("good");
        watermark(&mut operator, 30).map_err(|e| e.to_string())
    };
    let error = refuse(RowPolicy::Fail).expect_err("refused");
    assert!(error.starts_with(r#"row refused: too late; row: {"key":1};"#), "{error}");
    assert_eq!(refuse(RowPolicy::Skip), Ok(rows(&["watermark 30"])));
    let letter = r#"2: @30 sums 0 null "too late" {"key":1}"#;
    assert_eq!(refuse(RowPolicy::DeadLetter), Ok(rows(&[letter, "watermark 30"])));
}

#[test]
fn a_timer_cannot_emit_where_its_rows_would_lack_a_value() {
    let mut spec = spec(RowPolicy::Fail);
    spec.timers.unfilled = vec![None, Some("name".to_owned())];
    let mut operator = ProcessOperator::new(spec, Box::new(with_timers()), context("sums"));
    process(&mut operator, text_batch(&[COLUMNS, "a 1 30"])).expect("good");
    let error = watermark(&mut operator, 30).expect_err("no name").to_string();
    assert!(
        error.contains("rows of a timer for output port 1, which extends its input: a timer has no row to take the \
                        column `name` from, which is not null; emit them on a port that replaces, or make `name` nullable"),
        "{error}"
    );
}

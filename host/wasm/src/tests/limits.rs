//! Guests that panic, never stop, or want more than they may have: each is stopped with a clear error, and the next
//! call goes on with a fresh instance.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::{Duration, Instant},
};

use arrow_array::Int64Array;
use millstream_operator::{CallContext, FunctionError};
use millstream_types::Columns;

use super::{
    guest::Wat,
    map::{ECHO, function, manifest, map, map_module},
};
use crate::{FunctionLimits, executor::block_on};

const IMPORTS: &str = r#"
    (import "millstream:function/context@0.1.0" "panicked" (func $panicked (param i32 i32)))
    (import "millstream:function/context@0.1.0" "log" (func $log (param i32 i32 i32)))
    (import "millstream:function/context@0.1.0" "count" (func $count (param i32 i32 i64)))
    (import "millstream:function/context@0.1.0" "now" (func $now (result i64)))
    (import "millstream:function/context@0.1.0" "random" (func $random (result i64)))"#;

/// A map function that does `what` when its first value is 7, and else returns the column as it came. `functions` are
/// for it to call.
fn on_seven(what: &str, functions: &str) -> Wat {
    let column = r#"{"name":"n","type":"int64"}"#;
    let first = "(i64.load (i32.load (i32.add (local.get $columns) (i32.const 16))))";
    let apply = format!("(if (i64.eq {first} (i64.const 7)) (then {what})) {ECHO}");
    let module = map_module(&manifest(column, column, "replace"), &apply);
    let body = format!(r#"(data (i32.const 64) "a row of sevens") {functions} {}"#, module.body);
    Wat { imports: IMPORTS, body, ..module }
}

fn limits() -> FunctionLimits {
    FunctionLimits {
        memory_bytes: 16 << 20,
        call_time: Duration::from_millis(50),
        call_bytes: 1 << 20,
        ..FunctionLimits::default()
    }
}

/// What happens to a call with a 7, after which calls have to work again.
fn stopped(module: &Wat) -> FunctionError {
    let mut function = function(&module.build(), limits());
    let mut call = |value: i64| map(&mut *function, vec![Arc::new(Int64Array::from(vec![value]))]);
    call(1).expect("an echo");
    let error = call(7).expect_err("stopped");
    assert_eq!(call(2).expect("a fresh instance").outputs[0].rows, 1);
    error
}

#[test]
fn a_panic_is_an_error_with_its_text_and_the_functions_that_led_to_it() {
    let functions = "(func $do_divide (call $panicked (i32.const 64) (i32.const 15)) unreachable)
        (func $_ZN7flights6divide17h0123456789abcdefE (call $do_divide))";
    let error = stopped(&on_seven("(call $_ZN7flights6divide17h0123456789abcdefE)", functions));
    let FunctionError::Trapped { function, call, message, backtrace } = error else { panic!("{error}") };
    assert_eq!((function.as_str(), call, message.as_str()), ("f", "apply", "a row of sevens"));
    let lines: Vec<&str> = backtrace.lines().map(str::trim).collect();
    assert_eq!(lines[1..3], ["0: do_divide", "1: flights::divide"], "{backtrace}");
}

#[test]
fn a_trap_without_a_text_says_what_the_machine_said() {
    let message = |what: &str| match stopped(&on_seven(what, "")) {
        FunctionError::Trapped { message, .. } => message,
        other => panic!("{other}"),
    };
    assert!(message("unreachable").starts_with("it reached code that must not be reached"));
    assert_eq!(message("(drop (i32.load (i32.const -4)))"), "wasm trap: out of bounds memory access");
    assert_eq!(
        message("(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
        "wasm trap: integer divide by zero"
    );
}

#[test]
fn an_endless_loop_ends_with_its_time_and_lets_others_run_meanwhile() {
    let mut function = function(&on_seven("(loop $for_ever (br $for_ever))", "").build(), limits());
    let sevens = Columns::new(1, vec![Arc::new(Int64Array::from(vec![7]))]);
    let mut lent = CallContext::default();
    let started = Instant::now();
    let mut turns = 0;
    let error = {
        let mut call = pin!(function.map(&sevens, None, &mut lent));
        loop {
            match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                std::task::Poll::Ready(result) => break result.expect_err("stopped"),
                std::task::Poll::Pending => turns += 1,
            }
        }
    };
    let FunctionError::OverBudget { budget, .. } = &error else { panic!("{error}") };
    assert_eq!(budget, "it has computed for 50ms, the limit of one call (`limits.call-timeout`)");
    assert!(turns >= 3, "the loop gave way {turns} times");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn memory_has_a_limit_that_the_error_names() {
    let error = stopped(&on_seven("(loop $more (drop (memory.grow (i32.const 16))) (br $more))", ""));
    let FunctionError::OverBudget { budget, backtrace, .. } = &error else { panic!("{error}") };
    assert_eq!(budget, "it needs 17 MiB of memory, its limit is 16 MiB (`limits.memory`)");
    assert_eq!(backtrace, "\n   0: apply");
}

#[test]
fn recursion_without_end_is_named() {
    let error = stopped(&on_seven("(call $deeper)", "(func $deeper (call $deeper) (call $deeper))"));
    let FunctionError::OverBudget { budget, backtrace, .. } = &error else { panic!("{error}") };
    assert_eq!(budget, "it recursed too deep: its calls need more than 1 MiB of stack");
    assert_eq!(backtrace.lines().count(), 21, "a line break and twenty frames");
}

#[test]
fn a_stack_in_memory_that_runs_out_is_named_too() {
    let functions = "(global $stack (mut i32) (i32.const 0x8000))
        (func $deeper
          (global.set $stack (i32.sub (global.get $stack) (i32.const 256)))
          (i32.store (global.get $stack) (i32.const 1))
          (call $deeper) (call $deeper))";
    let error = stopped(&on_seven("(call $deeper)", functions));
    let FunctionError::Trapped { message, .. } = &error else { panic!("{error}") };
    assert_eq!(message, "it recursed too deep and ran out of its stack");
}

#[test]
fn a_result_of_more_bytes_than_a_call_may_hand_over_is_stopped() {
    // Many rejections that share one long reason: little memory for the guest, much for a host that believed it.
    let many = "(local $at i32)
        (local.set $at (i32.const 0x20000))
        (loop $next
          (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 64))
          (i32.store (i32.add (local.get $at) (i32.const 8)) (i32.const 60000))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br_if $next (i32.lt_u (local.get $at) (i32.const 0x30000))))
        (i32.store (i32.const 256) (i32.const 0))
        (i32.store (i32.const 264) (i32.const 0))
        (i32.store (i32.const 268) (i32.const 0x20000))
        (i32.store (i32.const 272) (i32.const 4096))
        (i32.const 256)";
    let column = r#"{"name":"n","type":"int64"}"#;
    let mut function = function(&map_module(&manifest(column, column, "replace"), many).build(), limits());
    let error = map(&mut *function, vec![Arc::new(Int64Array::from(vec![1]))]).expect_err("too much");
    let FunctionError::OverBudget { budget, .. } = &error else { panic!("{error}") };
    assert_eq!(budget, "it hands over more than 1 MiB in one call (`limits.output`)");
}

#[test]
fn what_imports_get_in_one_call_is_bounded_together() {
    let flood = "(loop $more (call $log (i32.const 2) (i32.const 64) (i32.const 15)) (br $more))";
    let error = stopped(&on_seven(flood, ""));
    let FunctionError::OverBudget { budget, .. } = &error else { panic!("{error}") };
    assert_eq!(budget, "it hands over more than 1 MiB in one call (`limits.output`)");
}

#[test]
fn metrics_reach_the_operator_and_are_names_and_not_data() {
    let count = "(call $count (i32.const 64) (i32.const 5) (i64.const 2)) (call $count (i32.const 64) (i32.const 5) (i64.const 3))";
    let mut function = function(&on_seven(count, "").build(), limits());
    let mut lent = CallContext::default();
    block_on(function.map(&Columns::new(1, vec![Arc::new(Int64Array::from(vec![7]))]), None, &mut lent))
        .expect("an echo");
    assert_eq!(lent.counts, [("a row".to_owned(), 5)]);

    let many = "(loop $more
        (i32.store (i32.const 64) (i32.add (i32.const 0x10001) (i32.load (i32.const 64))))
        (call $count (i32.const 64) (i32.const 4) (i64.const 1)) (br $more))";
    let error = stopped(&on_seven(many, ""));
    assert!(error.isolates(), "{error}");
}

#[test]
fn time_stands_still_in_a_call_and_random_numbers_follow_from_its_seed() {
    // The echoed value is overwritten with the time plus a random number.
    let column = r#"{"name":"n","type":"int64"}"#;
    let apply = format!(
        "(i64.store (i32.load (i32.add (local.get $columns) (i32.const 16))) (i64.xor (call $now) (call $random))) {ECHO}"
    );
    let module = Wat { imports: IMPORTS, ..map_module(&manifest(column, column, "replace"), &apply) };
    let mut function = function(&module.build(), limits());
    let mut draw = |now: i64, seed: u64| {
        let mut lent = CallContext { now, seed, ..CallContext::default() };
        let row = Columns::new(1, vec![Arc::new(Int64Array::from(vec![0]))]);
        let outcome = block_on(function.map(&row, None, &mut lent)).expect("a number");
        outcome.outputs[0].columns[0].to_data().buffers()[0].typed_data::<i64>()[0]
    };
    let first = draw(0, 1234567);
    assert_eq!(first, 6457827717110365317);
    assert_eq!(draw(0, 1234567), first);
    assert_eq!(draw(1, 1234567), first ^ 1);
    assert_ne!(draw(0, 1234568), first);
}

#[test]
fn an_instance_that_has_grown_is_replaced_when_asked() {
    // Returns how often this instance was called, in the place of the value.
    let column = r#"{"name":"n","type":"int64"}"#;
    let apply = format!(
        "(global.set $calls (i64.add (global.get $calls) (i64.const 1)))
         (drop (memory.grow (i32.const 16)))
         (i64.store (i32.load (i32.add (local.get $columns) (i32.const 16))) (global.get $calls)) {ECHO}"
    );
    let mut module = map_module(&manifest(column, column, "replace"), &apply);
    module.body = format!("(global $calls (mut i64) (i64.const 0)) {}", module.body);
    let bytes = module.build();
    let calls = |recycle_memory_bytes: Option<usize>| -> Vec<i64> {
        let mut function =
            function(&bytes, FunctionLimits { recycle_memory_bytes, ..FunctionLimits::default() });
        let mut call = || {
            let outcome = map(&mut *function, vec![Arc::new(Int64Array::from(vec![0]))]).expect("an echo");
            outcome.outputs[0].columns[0].to_data().buffers()[0].typed_data::<i64>()[0]
        };
        (0..5).map(|_| call()).collect()
    };
    assert_eq!(calls(None), [1, 2, 3, 4, 5]);
    assert_eq!(calls(Some(5 << 19)), [1, 2, 1, 2, 1], "1 MiB at first, 1 more a call");
}

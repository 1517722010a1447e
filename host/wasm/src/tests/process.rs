//! A process function: state and timers of the keys of a call, and what happens to a guest that misuses them.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use millstream_operator::{CallContext, Fired, FunctionError, KeyedInput, Outcome, UserFunction};
use millstream_state::KeyedContext;
use millstream_types::{Clock, Columns, EncodedKeys, Manifest, encode_keys};

use super::{
    guest::{Image, Wat, open_and_close},
    map::function,
};
use crate::{FunctionLimits, executor::block_on};

const MANIFEST: &str = r#"{"manifest":1,"module":{"name":"test"},"functions":[{"name":"f","kind":"process",
    "inputs":[{"name":"input","distribution":"keyed","columns":[{"name":"n","type":"int64"}]}],
    "key":[{"name":"k","type":"int64"}],
    "outputs":[{"name":"output","columns":[{"name":"before","type":"int64","nullable":true}]}],
    "states":[{"name":"last","kind":"value","columns":[{"name":"value","type":"int64"}]}],
    "timers":["event"]}]}"#;

const IMPORTS: &str = r#"
    (import "millstream:function/state@0.1.0" "[static]value-state.open" (func $open_state (param i32 i32 i32)))
    (import "millstream:function/state@0.1.0" "[method]value-state.read" (func $read (param i32 i32 i32 i32)))
    (import "millstream:function/state@0.1.0" "[method]value-state.write"
      (func $write (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "millstream:function/timers@0.1.0" "set" (func $set_timers (param i32 i32 i32 i32 i32)))"#;

/// Parameters of `process`, in the order of the interface.
const PROCESS: &str = "
    (param $port i32) (param $rows i32) (param $columns i32) (param $column_count i32)
    (param $has_times i32) (param $times i32) (param $time_count i32)
    (param $keys i32) (param $key_columns i32) (param $key_column_count i32)
    (param $key_of_row i32) (param $key_of_row_count i32) (param $watermark i64) (result i32)";

/// A process module; `process` and `on_timer` are the bodies of those exports. The names `last` and `other` stand at
/// 64 and 80, the positions 0, 1, 2 and 99 at 96.
fn module(process: &str, on_timer: &str) -> Wat {
    let body = format!(
        r#"{open_and_close}
          (data (i32.const 64) "last") (data (i32.const 80) "other")
          (data (i32.const 96) "\00\00\00\00\01\00\00\00\02\00\00\00\63\00\00\00")
          (func (export "millstream:function/process-function@0.1.0#process") {PROCESS} {process})
          (func (export "cabi_post_millstream:function/process-function@0.1.0#process") (param i32) (call $free))
          (func (export "millstream:function/process-function@0.1.0#on-timer")
            (param $clock i32) (param $keys i32) (param $key_columns i32) (param $key_column_count i32)
            (param $times i32) (param $time_count i32) (param $watermark i64) (result i32) {on_timer})"#,
        open_and_close = open_and_close("process-function")
    );
    Wat { imports: IMPORTS, ..Wat::new("process-module", MANIFEST, body) }
}

/// Reads the keys' values, writes the rows' in their place, returns the former. One row a key.
const EXCHANGE: &str = "(local $state i32)
    (call $open_state (i32.const 64) (i32.const 4) (i32.const 128))
    (if (i32.load8_u (i32.const 128)) (then unreachable))
    (local.set $state (i32.load (i32.const 132)))
    (call $read (local.get $state) (i32.const 96) (local.get $keys) (i32.const 160))
    (i32.store8 (i32.const 600) (i32.const 7))
    (call $write (local.get $state) (i32.const 96) (local.get $keys)
      (i32.const 600) (i32.const 1) (local.get $rows) (local.get $columns) (local.get $column_count))
    ;; A column of the former values, valid where there was one.
    (i32.store8 (i32.const 700) (i32.const 1))
    (i32.store (i32.const 704) (i32.load (i32.const 160)))
    (i32.store (i32.const 708) (i32.load (i32.const 164)))
    (memory.copy (i32.const 712) (i32.add (i32.load (i32.const 172)) (i32.const 12)) (i32.const 28))
    (i32.store (i32.const 256) (i32.const 0))
    (i32.store (i32.const 260) (i32.const 512))
    (i32.store (i32.const 264) (i32.const 1))
    (i32.store (i32.const 512) (i32.const 0))
    (i32.store (i32.const 516) (local.get $rows))
    (i32.store (i32.const 520) (i32.const 0))
    (i32.store (i32.const 532) (i32.const 700))
    (i32.store (i32.const 536) (i32.const 1))
    (i32.const 256)";

/// An outcome without rows.
const NOTHING: &str = "(i32.const 32)";

/// A function with the state of its operator.
struct Operator {
    function: Box<dyn UserFunction>,
    call: CallContext,
}

impl Operator {
    fn new(module: &Wat) -> Self {
        let manifest = Manifest::parse(MANIFEST).expect("a manifest");
        let keyed = KeyedContext::in_memory(&manifest.functions[0].states);
        let call = CallContext { keyed: Some(keyed), ..CallContext::default() };
        Self { function: function(&module.build(), FunctionLimits::default()), call }
    }

    fn keyed(&mut self) -> &mut KeyedContext {
        self.call.keyed.as_mut().expect("given back after each call")
    }

    /// Processes one row for each of the keys 10, 20 and 30.
    fn process(&mut self, values: [i64; 3]) -> Result<Outcome, FunctionError> {
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![10, 20, 30]));
        let mut encoded = EncodedKeys::new();
        encode_keys(&[&keys], 3, &mut encoded).expect("keys");
        self.keyed().begin(&encoded).expect("a call");
        let rows = Columns::new(3, vec![Arc::new(Int64Array::from(values.to_vec()))]);
        let keys = Columns::new(3, vec![keys]);
        let input = KeyedInput {
            port: 0,
            rows: &rows,
            times: None,
            keys: &keys,
            key_of_row: &[0, 1, 2],
            watermark: 0,
        };
        let outcome = block_on(self.function.process(&input, &mut self.call));
        match &outcome {
            Ok(_) => self.keyed().commit().expect("committed"),
            Err(_) => self.keyed().rollback(),
        }
        outcome
    }
}

fn column(outcome: &Outcome) -> &ArrayRef {
    &outcome.outputs[0].columns[0]
}

#[test]
fn state_is_read_and_written_for_all_keys_of_a_call() {
    let mut operator = Operator::new(&module(EXCHANGE, NOTHING));
    let none: ArrayRef = Arc::new(Int64Array::from(vec![None, None, None]));
    assert_eq!(column(&operator.process([1, 2, 3]).expect("exchanged")), &none);
    let first: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    assert_eq!(column(&operator.process([4, 5, 6]).expect("exchanged")), &first);
    assert_eq!(operator.keyed().key_count(), 3);
}

#[test]
fn a_position_that_names_no_key_is_a_trap_that_says_so_and_changes_nothing() {
    let four = EXCHANGE.replacen(
        "(i32.const 96) (local.get $keys) (i32.const 160)",
        "(i32.const 96) (i32.const 4) (i32.const 160)",
        1,
    );
    let mut operator = Operator::new(&module(&four, NOTHING));
    match operator.process([1, 2, 3]).expect_err("a trap") {
        FunctionError::Trapped { call: "process", message, .. } => {
            assert_eq!(message, "key position 99 does not exist: the call has 3 keys");
        }
        other => panic!("{other}"),
    }
    assert_eq!(operator.keyed().key_count(), 0);
}

#[test]
fn values_of_another_shape_are_a_trap_that_says_so() {
    let short = EXCHANGE.replace("(i32.const 600) (i32.const 1)", "(i32.const 600) (i32.const 2)");
    let error = Operator::new(&module(&short, NOTHING)).process([1, 2, 3]).expect_err("a trap").to_string();
    assert!(
        error.contains("value-state.write: what is passed `present` of value state `last` has 2 bytes of bits: expected 1 for 3 rows"),
        "{error}"
    );
}

#[test]
fn a_state_that_is_not_declared_cannot_be_opened() {
    let open_other = "(call $open_state (i32.const 80) (i32.const 5) (i32.const 128))
        (i32.store (i32.const 256) (i32.load8_u (i32.const 128)))
        (i32.store (i32.const 260) (i32.load (i32.const 132)))
        (i32.store (i32.const 264) (i32.load (i32.const 136)))
        (i32.const 256)";
    let error =
        Operator::new(&module(open_other, NOTHING)).process([1, 2, 3]).expect_err("refused").to_string();
    assert!(error.ends_with("no value state `other` in the manifest: declared are value `last`"), "{error}");
}

#[test]
fn timers_are_set_on_declared_clocks_and_fire_one_a_key() {
    let set = |clock: u32| {
        format!(
            "(i64.store (i32.const 600) (i64.const 100)) (i64.store (i32.const 608) (i64.const 200))
             (call $set_timers (i32.const {clock}) (i32.const 96) (i32.const 2) (i32.const 600) (i32.const 2))
             (i32.const 32)"
        )
    };
    let mut image = Image::new();
    let at = image.refusal("fired");
    let mut timers = module(&set(0), &format!("(i32.const {at})"));
    timers.data = image.finish();
    let mut operator = Operator::new(&timers);
    operator.process([0; 3]).expect("timers are set");
    assert_eq!(operator.keyed().pending_timers(Clock::Event), 2);
    let keys = Columns::new(1, vec![Arc::new(Int64Array::from(vec![10]))]);
    let fired = Fired { clock: Clock::Event, keys: &keys, times: &[100], watermark: 150 };
    let error = block_on(operator.function.on_timer(&fired, &mut operator.call)).expect_err("refused");
    assert_eq!(error.to_string(), "function `f` refused the call: fired");

    let error = Operator::new(&module(&set(1), NOTHING)).process([0; 3]).expect_err("undeclared").to_string();
    assert!(error.contains("timers: the manifest does not declare `processing` in `timers`"), "{error}");
}

#[test]
fn without_keys_there_is_no_keyed_state() {
    let mut operator = Operator::new(&module(EXCHANGE, NOTHING));
    let rows = Columns::new(1, vec![Arc::new(Int64Array::from(vec![1]))]);
    let input = KeyedInput { port: 0, rows: &rows, times: None, keys: &rows, key_of_row: &[0], watermark: 0 };
    let error = block_on(operator.function.process(&input, &mut CallContext::default()))
        .expect_err("a trap")
        .to_string();
    assert!(
        error.contains("the function has no keys here: keyed state and timers need `key` in the job file"),
        "{error}"
    );
}

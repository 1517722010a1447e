//! A map function from end to end: columns in, columns out, and every way in which a guest can return nonsense.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array,
    StringViewArray, TimestampMillisecondArray,
};
use millstream_operator::{CallContext, FunctionError, FunctionFactory, Origin, Outcome, UserFunction};
use millstream_types::Columns;

use super::{
    guest::{Image, Returned, ReturnedColumn, Wat, open_and_close},
    place,
};
use crate::{FunctionLimits, WasmEngine, WasmOptions, executor::block_on};

/// The manifest of a map function `f` with these input and output columns.
pub(super) fn manifest(input: &str, output: &str, carry: &str) -> String {
    format!(
        r#"{{"manifest":1,"module":{{"name":"test"}},"functions":[{{"name":"f","kind":"map",
            "inputs":[{{"name":"input","columns":[{input}]}}],
            "outputs":[{{"name":"output","columns":[{output}],"carry":"{carry}"}}]}}]}}"#
    )
}

/// A map module whose `apply` has this body.
pub(super) fn map_module(manifest: &str, apply: &str) -> Wat {
    let body = format!(
        r#"{open_and_close}
          (func $apply (export "millstream:function/map-function@0.1.0#apply")
            (param $rows i32) (param $columns i32) (param $column_count i32)
            (param $has_times i32) (param $times i32) (param $time_count i32) (result i32)
            {apply})
          (func (export "cabi_post_millstream:function/map-function@0.1.0#apply") (param i32) (call $free))"#,
        open_and_close = open_and_close("map-function")
    );
    Wat::new("map-module", manifest, body)
}

/// Returns the input's columns as they came, each row from its input row.
pub(super) const ECHO: &str = "
    (i32.store (i32.const 256) (i32.const 0))
    (i32.store (i32.const 260) (i32.const 512))
    (i32.store (i32.const 264) (i32.const 1))
    (i32.store (i32.const 268) (i32.const 0))
    (i32.store (i32.const 272) (i32.const 0))
    (i32.store (i32.const 512) (i32.const 0))
    (i32.store (i32.const 516) (local.get $rows))
    (i32.store (i32.const 520) (i32.const 0))
    (i32.store (i32.const 532) (local.get $columns))
    (i32.store (i32.const 536) (local.get $column_count))
    (i32.const 256)";

/// Opens function `f` of a module in an engine of its own.
pub(super) fn function(bytes: &[u8], limits: FunctionLimits) -> Box<dyn UserFunction> {
    let engine = WasmEngine::new(WasmOptions { instances: 4, ..WasmOptions::default() }).expect("an engine");
    let module = engine.compile("test", bytes).unwrap_or_else(|e| panic!("{e}"));
    let factory = module.function("f", limits).unwrap_or_else(|e| panic!("{e}"));
    factory.create(&place()).expect("a map function")
}

pub(super) fn map(function: &mut dyn UserFunction, columns: Vec<ArrayRef>) -> Result<Outcome, FunctionError> {
    let rows = columns.first().map_or(0, |c| c.len());
    block_on(function.map(&Columns::new(rows, columns), None, &mut CallContext::default()))
}

fn every_type() -> Vec<(&'static str, ArrayRef)> {
    let text = [Some("short"), None, Some("longer than a view holds"), Some(""), Some("größer")];
    let bytes =
        [Some(&b"\xff"[..]), Some(b"bytes that are longer than a view"), None, Some(b""), Some(b"\0")];
    vec![
        (
            "boolean",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), Some(true)])),
        ),
        ("int32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(0), Some(7), Some(i32::MAX)]))),
        ("int64", Arc::new(Int64Array::from(vec![i64::MIN, -1, 0, 7, i64::MAX]))),
        ("float32", Arc::new(Float32Array::from(vec![Some(f32::MIN), None, Some(0.5), Some(-0.0), None]))),
        ("float64", Arc::new(Float64Array::from(vec![f64::MIN, f64::INFINITY, 0.5, -0.0, f64::EPSILON]))),
        ("timestamp", Arc::new(TimestampMillisecondArray::from(vec![0, 1, 2, 3, -4]).with_timezone("UTC"))),
        ("date", Arc::new(Date32Array::from(vec![Some(0), None, Some(20_000), Some(-1), None]))),
        ("utf8", Arc::new(StringViewArray::from_iter(text))),
        ("binary", Arc::new(BinaryViewArray::from_iter(bytes))),
    ]
}

#[test]
fn every_type_goes_in_and_comes_out_whole_sliced_and_empty() {
    let columns = every_type();
    let declared =
        columns.iter().map(|(name, _)| format!(r#"{{"name":"{name}","type":"{name}","nullable":true}}"#));
    let declared = declared.collect::<Vec<_>>().join(",");
    let mut function = function(
        &map_module(&manifest(&declared, &declared, "replace"), ECHO).build(),
        FunctionLimits::default(),
    );
    for (offset, length) in [(0, 5), (1, 3), (4, 1), (2, 0)] {
        let sent: Vec<ArrayRef> = columns.iter().map(|(_, array)| array.slice(offset, length)).collect();
        let outcome = map(&mut *function, sent.clone()).expect("an echo");
        let [output] = &outcome.outputs[..] else { panic!("one output") };
        assert_eq!((output.port, output.rows, &output.origin), (0, length, &Origin::Each));
        for (sent, back) in sent.iter().zip(&output.columns) {
            assert_eq!(sent, back, "rows {offset}..{}", offset + length);
        }
    }
    block_on(function.close()).expect("closed");
}

#[test]
fn a_large_batch_is_the_same_on_the_way_back() {
    let declared = r#"{"name":"n","type":"int64"},{"name":"s","type":"utf8"}"#;
    let mut function = function(
        &map_module(&manifest(declared, declared, "replace"), ECHO).build(),
        FunctionLimits::default(),
    );
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
    let text: ArrayRef =
        Arc::new(StringViewArray::from_iter_values((0..100_000).map(|i| format!("value number {i}"))));
    for _ in 0..3 {
        let outcome = map(&mut *function, vec![numbers.clone(), text.clone()]).expect("an echo");
        assert_eq!(&outcome.outputs[0].columns, &[numbers.clone(), text.clone()]);
    }
}

#[test]
fn columns_that_the_plan_got_wrong_do_not_reach_the_guest() {
    let declared = r#"{"name":"n","type":"int64"}"#;
    let mut function = function(
        &map_module(&manifest(declared, declared, "replace"), ECHO).build(),
        FunctionLimits::default(),
    );
    let error =
        map(&mut *function, vec![Arc::new(Int32Array::from(vec![1]))]).expect_err("another type").to_string();
    assert_eq!(
        error,
        "module `test` cannot be used: function `f`: column `n` is sent as Int32 where the manifest declares int64"
    );
    let error = map(&mut *function, vec![]).expect_err("no column").to_string();
    assert!(error.ends_with("0 columns are sent where the manifest declares 1"), "{error}");
}

/// Calls a function that returns the same whatever it gets, with three rows of one 64-bit column.
fn returning(make: impl FnOnce(&mut Image) -> u32) -> Result<Outcome, FunctionError> {
    returning_for(r#"{"name":"n","type":"int64"},{"name":"s","type":"utf8","nullable":true}"#, "extend", make)
}

fn returning_for(
    output: &str,
    carry: &str,
    make: impl FnOnce(&mut Image) -> u32,
) -> Result<Outcome, FunctionError> {
    let mut image = Image::new();
    let at = make(&mut image);
    let mut module =
        map_module(&manifest(r#"{"name":"n","type":"int64"}"#, output, carry), &format!("(i32.const {at})"));
    module.data = image.finish();
    let mut function = function(&module.build(), FunctionLimits::default());
    map(&mut *function, vec![Arc::new(Int64Array::from(vec![1, 2, 3]))])
}

/// What is wrong with what such a function returns.
fn problem(make: impl FnOnce(&mut Image) -> u32) -> String {
    match returning(make) {
        Err(FunctionError::Malformed { function, call, problem }) => {
            assert_eq!((function.as_str(), call), ("f", "apply"));
            problem
        }
        other => panic!("expected a result that cannot be taken, not {other:?}"),
    }
}

fn good(image: &mut Image) -> Returned {
    let columns = vec![image.int64s(&[1, 2, 3]), image.var(&[0, 1, 1, 3], b"abc")];
    Returned { port: 0, rows: 3, origin: (0, (0, 0)), columns }
}

#[test]
fn a_result_by_hand_is_what_it_says() {
    let outcome = returning(|image| {
        let output = good(image);
        image.outcome(&[output], &[(0, "too small"), (2, "too large")])
    });
    let outcome = outcome.expect("a good result");
    let expected: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(vec![1, 2, 3])), Arc::new(StringViewArray::from(vec!["a", "", "bc"]))];
    assert_eq!(outcome.outputs[0].columns, expected);
    assert_eq!(
        outcome.rejected.iter().map(|r| (r.row, r.reason.as_str())).collect::<Vec<_>>(),
        [(0, "too small"), (2, "too large")]
    );
}

#[test]
fn refusing_a_call_is_an_error_with_its_text() {
    let error = returning(|image| image.refusal("not on a Sunday")).expect_err("refused");
    assert_eq!(error.to_string(), "function `f` refused the call: not on a Sunday");
}

/// A good output with something changed.
fn with(change: impl FnOnce(&mut Image, &mut Returned)) -> String {
    problem(|image| {
        let mut output = good(image);
        change(image, &mut output);
        image.outcome(&[output], &[])
    })
}

#[test]
fn wrong_columns_are_named() {
    assert_eq!(
        with(|_, o| o.columns.truncate(1)),
        "output port 0 (`output`) has 1 columns: the manifest declares 2 (n, s)"
    );
    assert_eq!(
        with(|_, o| o.columns.swap(0, 1)),
        "column `n` of output port 0 (`output`) has the layout `var`: a column of type int64 takes `int64`"
    );
    assert_eq!(
        with(|image, o| o.columns[0] = image.int64s(&[1, 2])),
        "column `n` of output port 0 (`output`) has 2 values: expected 3"
    );
    assert_eq!(
        with(|image, o| o.columns[0].validity = Some((image.put(&[0b101]), 1))),
        "column `n` of output port 0 (`output`) has 1 missing values, the first in row 1: it is declared as not nullable"
    );
    assert_eq!(
        with(|image, o| o.columns[1].validity = Some((image.put(&[7, 0]), 2))),
        "column `s` of output port 0 (`output`) has a validity that has 2 bytes of bits: expected 1 for 3 rows"
    );
}

#[test]
fn wrong_text_is_named() {
    let text = |offsets: &'static [u32], bytes: &'static [u8]| {
        with(|image, o| o.columns[1] = image.var(offsets, bytes))
    };
    let of = "column `s` of output port 0 (`output`) ";
    assert_eq!(text(&[0, 1, 3], b"abc"), format!("{of}has 3 offsets: expected 4 for 3 rows"));
    assert_eq!(text(&[0, 2, 1, 3], b"abc"), format!("{of}has offset 2 of 1, below the one before it (2)"));
    assert_eq!(text(&[1, 2, 3, 3], b"abc"), format!("{of}has offsets that start at 1: expected 0"));
    assert_eq!(
        text(&[0, 1, 2, 4_000_000_000], b"abc"),
        format!("{of}has offsets that end at 4000000000: expected 3")
    );
    assert_eq!(text(&[0, 1, 2, 3], b"ab\xff"), format!("{of}has bytes in row 2 that are not UTF-8"));
}

#[test]
fn wrong_origins_ports_and_rejections_are_named() {
    let of = "the origin of output port 0 (`output`) ";
    assert_eq!(
        with(|image, o| {
            o.rows = 2;
            o.columns = vec![image.int64s(&[1, 2]), image.var(&[0, 1, 1], b"a")];
        }),
        format!("{of}is `each` for 2 rows: the call has 3 rows")
    );
    let picked = |from: &'static [u32]| with(|image, o| o.origin = (1, image.words(from)));
    assert_eq!(picked(&[0, 3, 1]), format!("{of}names number 3: the call has 3 rows"));
    assert_eq!(picked(&[0, 1]), format!("{of}names 2 rows for 3 rows"));
    assert_eq!(
        with(|image, o| o.origin = (2, image.list(&[1i64, 2, 3], i64::to_le_bytes))),
        format!("{of}is `made`: rows of a port with carry `extend` have to come from a row of the input")
    );
    assert_eq!(with(|_, o| o.port = 1), "an output is for port 1: the manifest declares 1 output ports");
    let rejecting = |rejected: &'static [(u32, &'static str)]| problem(|image| image.outcome(&[], rejected));
    assert_eq!(rejecting(&[(3, "")]), "it rejects row 3: the call has 3 rows");
    assert_eq!(rejecting(&[(1, ""), (1, "")]), "it rejects row 1 after row 1: expected ascending rows");
}

#[test]
fn rows_that_cost_the_guest_nothing_are_bounded() {
    let many = |image: &mut Image| {
        let origin = (0, (0, 0));
        let outputs: Vec<Returned> =
            (0..8).map(|_| Returned { port: 0, rows: 1 << 24, origin, columns: vec![] }).collect();
        image.outcome(&outputs, &[])
    };
    let error = returning_for("", "extend", many).expect_err("too many").to_string();
    assert!(
        error.ends_with("the outputs have 134217728 rows: at most 67108864 are taken from one call"),
        "{error}"
    );
}

#[test]
fn lists_outside_of_the_guests_memory_are_no_lists() {
    let far = |list: (u32, u32)| {
        with(move |_, o| {
            o.columns[0] = ReturnedColumn { validity: None, layout: 4, words: vec![list.0, list.1] }
        })
    };
    assert!(far((0x7fff_0000, 3)).contains("out of bounds"), "{}", far((0x7fff_0000, 3)));
    assert!(far((Image::BASE, 1 << 28)).contains("out of bounds"), "{}", far((Image::BASE, 1 << 28)));
}

//! A guest that imports WASI: what it gets of it, and what is only there to be linked.

use std::sync::Arc;

use arrow_array::Int64Array;
use millstream_operator::{CallContext, FunctionError};
use millstream_types::Columns;

use super::{
    guest::{Wat, component},
    map::{ECHO, function, manifest, map_module},
};
use crate::{FunctionLimits, executor::block_on};

/// The part of WASI that these guests import, and a world with it.
const WASI: &str = "
    package wasi:clocks@0.2.3 {
        interface wall-clock {
            record datetime { seconds: u64, nanoseconds: u32 }
            now: func() -> datetime;
        }
    }
    package wasi:random@0.2.3 {
        interface random { get-random-bytes: func(len: u64) -> list<u8>; }
    }
    package wasi:io@0.2.3 {
        interface error { resource error; }
        interface streams {
            use error.{error};
            variant stream-error { last-operation-failed(error), closed }
            resource output-stream {
                blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
            }
        }
    }
    package wasi:cli@0.2.3 {
        interface stderr {
            use wasi:io/streams@0.2.3.{output-stream};
            get-stderr: func() -> output-stream;
        }
        interface exit { exit: func(status: result); }
    }
    package wasi:filesystem@0.2.3 {
        interface types {
            resource descriptor { sync: func(); }
            filesystem-error-code: func(code: u32) -> option<u32>;
        }
        interface preopens {
            use types.{descriptor};
            get-directories: func() -> list<tuple<descriptor, string>>;
        }
    }";

const IMPORTS: &str = r#"
    (import "wasi:clocks/wall-clock@0.2.3" "now" (func $now (param i32)))
    (import "wasi:random/random@0.2.3" "get-random-bytes" (func $random (param i64 i32)))
    (import "wasi:cli/stderr@0.2.3" "get-stderr" (func $stderr (result i32)))
    (import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush"
      (func $print (param i32 i32 i32 i32)))
    (import "wasi:cli/exit@0.2.3" "exit" (func $exit (param i32)))
    (import "wasi:filesystem/types@0.2.3" "filesystem-error-code" (func $error_code (param i32 i32)))
    (import "wasi:filesystem/preopens@0.2.3" "get-directories" (func $directories (param i32)))"#;

/// Calls a map function that does something with its column first.
fn call(first: &str, lent: &mut CallContext) -> Result<i64, FunctionError> {
    let column = r#"{"name":"n","type":"int64"}"#;
    let apply = format!(
        "(local $value i32)
        (local.set $value (i32.load (i32.add (local.get $columns) (i32.const 16)))) {first} {ECHO}"
    );
    let module = Wat { imports: IMPORTS, ..map_module(&manifest(column, column, "replace"), &apply) };
    let bytes = component("map-module", &module.text(), |wit| {
        let imports = "world map-module {
            import wasi:clocks/wall-clock@0.2.3; import wasi:random/random@0.2.3; import wasi:cli/stderr@0.2.3;
            import wasi:cli/exit@0.2.3; import wasi:filesystem/preopens@0.2.3;";
        wit.replace("world map-module {", imports) + WASI
    });
    let mut function = function(&bytes, FunctionLimits::default());
    let row = Columns::new(1, vec![Arc::new(Int64Array::from(vec![7]))]);
    let outcome = block_on(function.map(&row, None, lent))?;
    Ok(outcome.outputs[0].columns[0].to_data().buffers()[0].typed_data::<i64>()[0])
}

#[test]
fn clocks_and_random_numbers_are_the_calls() {
    let mut lent = CallContext { now: 1_500, seed: 1234567, ..CallContext::default() };
    let now = "(call $now (i32.const 600))
        (i64.store (local.get $value) (i64.add
          (i64.mul (i64.load (i32.const 600)) (i64.const 1000000000)) (i64.load32_u (i32.const 608))))";
    assert_eq!(call(now, &mut lent).expect("the time"), 1_500_000_000);
    let random = "(call $random (i64.const 8) (i32.const 600))
        (i64.store (local.get $value) (i64.load (i32.load (i32.const 600))))";
    assert_eq!(call(random, &mut lent).expect("a number"), 6457827717110365317);
}

#[test]
fn there_is_standard_error_and_there_are_no_files() {
    let print = "(call $print (call $stderr) (i32.const 0x8000) (i32.const 8) (i32.const 600))
        (i64.store (local.get $value) (i64.load8_u (i32.const 600)))";
    assert_eq!(call(print, &mut CallContext::default()).expect("printed"), 0, "ok");
    let files = "(call $directories (i32.const 600))
        (i64.store (local.get $value) (i64.load32_u (i32.const 604)))";
    assert_eq!(call(files, &mut CallContext::default()).expect("none"), 0);
}

#[test]
fn what_is_only_there_to_be_linked_traps_with_its_name() {
    let message = |what: &str| match call(what, &mut CallContext::default()) {
        Err(FunctionError::Trapped { message, .. }) => message,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        message("(call $error_code (i32.const 0) (i32.const 600))"),
        "it called `filesystem-error-code` of wasi:filesystem/types, which functions may not use"
    );
    assert_eq!(
        message("(call $exit (i32.const 1))"),
        "it called `exit` with failure: a function returns and does not end the program"
    );
}

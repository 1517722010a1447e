//! What is no module of this host is refused, with what was found and what was expected.

use std::fs;

use millstream_operator::{CallContext, FunctionFactory, ModuleInspector};

use super::{
    guest::{Wat, component, open_and_close},
    map::{ECHO, manifest, map_module},
    place,
};
use crate::{FunctionLimits, WasmEngine, WasmOptions};

fn engine() -> WasmEngine {
    WasmEngine::new(WasmOptions { instances: 4, ..WasmOptions::default() }).expect("an engine")
}

/// Why these bytes cannot be used.
fn refused(bytes: &[u8]) -> String {
    let text = engine().inspect("test", bytes).expect_err("refused").to_string();
    text.strip_prefix("module `test` cannot be used: ").expect("an error of the module").to_owned()
}

#[test]
fn bytes_that_are_no_component() {
    assert_eq!(refused(b""), "the file is empty: expected a WebAssembly component");
    assert_eq!(
        refused(b"PK\x03\x04zip"),
        "not WebAssembly: it starts with 50 4b 03 04 7a 69 70, a component with 00 61 73 6d 0d 00 01 00"
    );
    let core = wat::parse_str("(module)").expect("a module");
    assert_eq!(refused(&core), "not a component but a core module: build it with `millstream build`");
    let torn = &map_module(&manifest("", "", "extend"), ECHO).build()[..600];
    assert!(refused(torn).contains("out of bounds"), "{}", refused(torn));
}

#[test]
fn a_component_that_is_none_of_ours() {
    let empty = wat::parse_str("(component)").expect("a component");
    assert_eq!(refused(&empty), "does not export millstream:function/manifest@0.1.0, it exports nothing");
    let wat = r#"(component (import "wasi:sockets/tcp@0.2.0" (instance)))"#;
    assert_eq!(
        refused(&wat::parse_str(wat).expect("a component")),
        "imports wasi:sockets/tcp@0.2.0, not granted: functions have no sockets, and no `allow` grants them: \
         read from a source and write to a sink"
    );
    let wat = r#"(component (import "wasi:http/outgoing-handler@0.2.10" (instance)))"#;
    assert_eq!(
        refused(&wat::parse_str(wat).expect("a component")),
        "imports wasi:http/outgoing-handler@0.2.10, not granted: it takes `allow = [\"http:HOST\"]`, which this \
         version does not have yet: read from a source and write to a sink"
    );
    let wat = r#"(component (import "wasi:clocks/wall-clock@0.3.0" (instance)))"#;
    assert_eq!(
        refused(&wat::parse_str(wat).expect("a component")),
        "imports wasi:clocks/wall-clock@0.3.0, not granted: this host serves WASI 0.2"
    );
    let wat = r#"(component (import "acme:billing/cards@2.0.0" (instance)))"#;
    assert_eq!(
        refused(&wat::parse_str(wat).expect("a component")),
        "imports acme:billing/cards@2.0.0, not granted: this host serves the interfaces of millstream:function \
         and some of WASI 0.2"
    );
}

#[test]
fn another_version_of_the_interface() {
    let body = format!(
        r#"(module (memory (export "memory") 1)
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
          (func (export "millstream:function/manifest@0.2.0#describe") (result i32) unreachable)
          {}
          (func (export "millstream:function/map-function@0.2.0#apply")
            (param i32 i32 i32 i32 i32 i32) (result i32) unreachable))"#,
        open_and_close("map-function").replace("@0.1.0", "@0.2.0")
    );
    let next = component("map-module", &body, |wit| wit.replace("@0.1.0", "@0.2.0"));
    let error = refused(&next);
    assert!(
        error.contains("millstream:function/")
            && error.ends_with("@0.2.0; this host serves 0.1.0: use a newer host or an older SDK"),
        "{error}"
    );
}

#[test]
fn manifests_that_cannot_be_used() {
    let of = |json: &str| refused(&map_module(json, ECHO).build());
    assert!(of("nonsense").starts_with("the manifest is not valid: "), "{}", of("nonsense"));
    assert!(of(r#"{"manifest":9}"#).starts_with("the manifest has version 9"), "{}", of(r#"{"manifest":9}"#));
    let process = manifest("", "", "extend").replace(r#""kind":"map""#, r#""kind":"process""#);
    assert_eq!(
        of(&process),
        "function `f` is of kind Process, but the module does not export millstream:function/process-function@0.1.0, \
         it exports millstream:function/manifest@0.1.0, millstream:function/map-function@0.1.0"
    );
    let trapping = Wat {
        body: format!("(start $trap) (func $trap unreachable) {}", map_module("", ECHO).body),
        ..map_module("", ECHO)
    };
    assert!(refused(&trapping.build()).contains("trapped in `describe`"), "{}", refused(&trapping.build()));
}

#[test]
fn a_compiled_module_is_kept_for_the_next_engine() {
    let dir = tempfile::tempdir().expect("a folder");
    let bytes = map_module(&manifest("", "", "extend"), ECHO).build();
    let name = || {
        let options = WasmOptions {
            instances: 4,
            cache_dir: Some(dir.path().join("modules")),
            ..WasmOptions::default()
        };
        let engine = WasmEngine::new(options).expect("an engine");
        engine.inspect("test", &bytes).expect("a manifest").functions[0].name.clone()
    };
    let entries =
        || fs::read_dir(dir.path().join("modules")).expect("a folder").map(|e| e.expect("an entry").path());
    assert_eq!(name(), "f");
    let kept: Vec<_> = entries().collect();
    assert_eq!((kept.len(), name().as_str()), (1, "f"));
    fs::write(&kept[0], b"no code").expect("damaged");
    assert_eq!(name(), "f", "a damaged entry is compiled again");
    assert!(fs::metadata(&kept[0]).expect("there").len() > 1000, "and put right");
}

#[test]
fn functions_that_are_not_there() {
    let engine = engine();
    let module =
        engine.compile("test", &map_module(&manifest("", "", "extend"), ECHO).build()).expect("a module");
    let error = module.function("g", FunctionLimits::default()).expect_err("no such function").to_string();
    assert_eq!(error, "module `test` cannot be used: has no function `g`, it has f");
    assert_eq!(module.manifest().expect("a manifest").functions[0].name, "f");
}

#[test]
fn instances_are_counted() {
    let engine = engine();
    let module =
        engine.compile("test", &map_module(&manifest("", "", "extend"), ECHO).build()).expect("a module");
    let factory = module.function("f", FunctionLimits::default()).expect("a function");
    let mut open = (0..5).map(|_| factory.create(&place()).expect("a function")).collect::<Vec<_>>();
    let mut opened = open.iter_mut().map(|f| crate::executor::block_on(f.open(&mut CallContext::default())));
    assert!(opened.by_ref().take(4).all(|o| o.is_ok()));
    let error = opened.next().expect("a fifth").expect_err("four are the most").to_string();
    assert!(error.contains("4") && error.contains("instances"), "{error}");
}

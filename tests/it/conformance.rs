//! The conformance guest in the host: every function of the interface, called by a real guest with real columns, and what
//! it makes of them compared with fixtures. The compiled modules of former versions have to do the same.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use millstream_wasm::{WasmEngine, WasmOptions};
use tempfile::TempDir;

use crate::support::{command, finish, guests, root, rows};

/// Lays a module beside fixtures that name it, as a crate with tests would have them.
fn beside(module: &Path, name: &str, fixtures: &Path) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    let tests = folder.path().join("tests");
    fs::create_dir(&tests).expect("a new folder");
    fs::copy(module, tests.join(name)).unwrap_or_else(|e| panic!("{}: {e}", module.display()));
    for fixture in files(fixtures) {
        fs::copy(&fixture, tests.join(fixture.file_name().expect("a file"))).expect("can be copied");
    }
    folder
}

/// The fixtures in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let files = entries.map(|entry| entry.expect("a folder that stays").path());
    files.filter(|file| file.extension().is_some_and(|e| e == "jsonl")).collect()
}

/// Expects that a module does what the fixtures in a folder say, which call it by a name.
#[track_caller]
pub(crate) fn conforms(module: &Path, name: &str, fixtures: &Path) {
    let count = files(fixtures).len();
    assert!(count > 0, "no fixtures in {}", fixtures.display());
    let folder = beside(module, name, fixtures);
    let output = finish(command(folder.path()).arg("test").arg(folder.path()));
    assert_eq!(output.code, Some(0), "{}\n{}", output.stdout, output.stderr);
    assert_eq!(output.stdout.matches("ok  ").count(), count, "{}", output.stdout);
}

/// The fixtures that the guests of all languages pass.
pub(crate) fn fixtures() -> PathBuf {
    root().join("tests/it/conformance")
}

/// The functions of a module.
fn functions(module: &Path) -> BTreeSet<String> {
    let engine = WasmEngine::new(WasmOptions::default()).expect("an engine");
    let bytes = fs::read(module).unwrap_or_else(|e| panic!("{}: {e}", module.display()));
    let module = engine.compile("module", &bytes).expect("a module");
    let manifest = module.manifest().expect("a manifest");
    manifest.functions.iter().map(|function| function.name.clone()).collect()
}

#[test]
fn every_function_does_what_its_fixtures_expect() {
    let module = guests().join("conformance.wasm");
    let functions = functions(&module);
    let texts: Vec<String> =
        files(&fixtures()).iter().map(|file| fs::read_to_string(file).expect("a fixture")).collect();
    let without =
        |function: &&String| !texts.iter().any(|t| t.contains(&format!("\"function\":\"{function}\"")));
    let without: Vec<&String> = functions.iter().filter(without).collect();
    // The one has a job below; the other reads two inputs, which this version refuses.
    assert_eq!(without, ["matcher", "measured"], "functions without a fixture");
    conforms(&module, "conformance.wasm", &fixtures());
}

#[test]
fn logs_and_metrics_of_a_guest_reach_the_user() {
    let out = TempDir::new().expect("a temporary folder");
    let job = r#"
        [job]
        name = "measured"

        [module.conformance]
        path = "${MILLSTREAM_GUESTS}/conformance.wasm"

        [source.numbers]
        connector = "generator"
        fields = { n = { kind = "sequence", start = 1 } }
        records = 3

        [operator.measured]
        function = "conformance.measured"
        input = "numbers"

        [sink.out]
        connector = "file"
        input = "measured"
        path = "out"
        format = "jsonl"
    "#;
    let file = out.path().join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    let mut command = command(out.path());
    command.env("MILLSTREAM_LOG", "info").args(["--json", "run", "--quiet"]).arg(&file);
    let output = finish(&mut command).success();
    assert_eq!(rows(&out.path().join("out")).len(), 3);
    assert!(output.stderr.contains("number 3"), "{}", output.stderr);
    let text = output.json().to_string();
    assert!(text.contains(r#""numbers":3"#) && text.contains(r#""last_number":3.0"#), "{text}");
}

#[test]
fn modules_of_every_former_version_run() {
    let old = root().join("tests/guests/old");
    let versions = fs::read_dir(&old).unwrap_or_else(|e| panic!("{}: {e}", old.display()));
    let versions: Vec<PathBuf> = versions
        .map(|entry| entry.expect("a folder that stays").path())
        .filter(|path| path.is_dir())
        .collect();
    assert!(!versions.is_empty(), "no version in {}", old.display());
    for version in versions {
        conforms(&version.join("module.wasm"), "module.wasm", &version);
    }
}

#[test]
fn a_row_with_a_key_that_is_too_long_is_a_dead_letter_at_the_keyed_operator() {
    let out = TempDir::new().expect("a temporary folder");
    let job = r#"
        [job]
        name = "long-key"
        parallelism = 2

        [module.conformance]
        path = "${MILLSTREAM_GUESTS}/conformance.wasm"

        [source.numbers]
        connector = "file"
        path = "in.jsonl"
        format = "jsonl"
        schema = { k = "utf8", n = "int64" }

        [operator.totals]
        function = "conformance.totals"
        input = "numbers"
        key = ["k"]
        on-error = "dead-letter"

        [sink.out]
        connector = "file"
        input = "totals"
        path = "out"
        format = "jsonl"

        [sink.letters]
        connector = "file"
        input = "totals.dead-letter"
        path = "letters"
        format = "jsonl"
    "#;
    let line = |key: &str, n: i64| format!("{{\"k\":\"{key}\",\"n\":{n}}}\n");
    let lines = line("a", 1) + &line(&"x".repeat(70_000), 2) + &line("b", 4);
    fs::write(out.path().join("in.jsonl"), lines).expect("a temporary folder can be written to");
    fs::write(out.path().join("job.toml"), job).expect("a temporary folder can be written to");
    finish(command(out.path()).arg("run").arg(out.path().join("job.toml")).arg("--quiet")).success();
    let totals = rows(&out.path().join("out"));
    let sum: i64 = totals.iter().filter_map(|row| row["total"].as_i64()).sum();
    assert_eq!(sum, 5, "{totals:?}");
    let letters = rows(&out.path().join("letters"));
    let reasons: Vec<_> = letters.iter().map(|letter| &letter["reason"]).collect();
    assert_eq!(reasons, ["its key takes 70003 bytes: at most 65536 are allowed"]);
}

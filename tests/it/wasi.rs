//! Functions that use WASI as their language does: what they see is the call's, what they print is in the log, and
//! nothing else is there unless the job grants it.

use std::{fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Output, command, finish, rows};

/// Runs a job over the numbers 1 to 3 through one function; `module` and `operator` are more lines of their tables.
fn run(out: &Path, function: &str, module: &str, operator: &str) -> Output {
    let name = function.split('.').next().expect("split gives one part at least");
    let job = format!(
        r#"
        [job]
        name = "wasi"

        [module.{name}]
        path = "${{MILLSTREAM_GUESTS}}/{name}.wasm"
        {module}

        [source.numbers]
        connector = "generator"
        fields = {{ n = {{ kind = "sequence", start = 1 }} }}
        records = 3

        [operator.guest]
        function = "{function}"
        input = "numbers"
        {operator}

        [sink.out]
        connector = "file"
        input = "guest"
        path = "out"
        format = "jsonl"
        "#
    );
    let file = out.join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    let mut command = command(out);
    command.env("MILLSTREAM_LOG", "info").env("TOKEN", "secret").env_remove("UNSET");
    finish(command.arg("run").arg(file).arg("--quiet"))
}

fn sorted(out: &Path) -> Vec<Value> {
    let mut rows = rows(&out.join("out"));
    rows.sort_by_key(|row| row["n"].as_i64());
    rows
}

#[test]
fn a_function_in_rust_sees_time_and_chance_of_its_call_and_nothing_else() {
    let run_once = |module: &str| {
        let out = TempDir::new().expect("a temporary folder");
        run(out.path(), "wasi.system", module, "").success();
        sorted(out.path())
    };
    let first = run_once("");
    assert_eq!(first.len(), 3);
    for row in &first {
        assert_eq!(row["same_time"], true, "{row}");
        for nothing in ["slept", "variables", "arguments", "input"] {
            assert_eq!(row[nothing], 0, "{nothing} in {row}");
        }
        assert_eq!(row["token"], Value::Null);
        assert_ne!(row["file"], "opened");
    }
    let hashes = |rows: &[Value]| rows.iter().map(|row| row["hash"].clone()).collect::<Vec<_>>();
    let granted = run_once(r#"allow = ["env:TOKEN"]"#);
    assert_eq!(hashes(&first), hashes(&granted), "random keys are those of the call");
    for row in &granted {
        assert_eq!((&row["token"], &row["variables"]), (&"secret".into(), &1.into()), "{row}");
    }
}

#[test]
fn what_is_printed_is_in_the_log_line_by_line() {
    let out = TempDir::new().expect("a temporary folder");
    let log = run(out.path(), "wasi.prints", "", "").success().stderr;
    let line = |level: &str, text: &str| {
        log.lines()
            .any(|line| line.contains(level) && line.contains("operator=\"guest\"") && line.contains(text))
    };
    for n in 1..=3 {
        assert!(line("INFO", &format!("number {n}")), "{log}");
    }
    assert!(line("WARN", "1; 2; 3;"), "an unfinished line ends with its call:\n{log}");
}

#[test]
fn an_exit_is_a_trap_that_says_so() {
    let out = TempDir::new().expect("a temporary folder");
    let output = run(out.path(), "wasi.exits", "", "");
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let text = "it called `exit` with failure: a function returns and does not end the program";
    assert!(output.stderr.contains(text), "{}", output.stderr);
    assert!(output.stderr.contains("giving up"), "{}", output.stderr);
}

#[test]
fn grants_that_cannot_be_given_are_refused_before_anything_runs() {
    for (grant, words) in [
        ("env:UNSET", "the variable `UNSET` is not set"),
        ("http:api.example.com", "functions have no HTTP in this version"),
        ("evn:TOKEN", "did you mean `env:TOKEN`?"),
    ] {
        let out = TempDir::new().expect("a temporary folder");
        let output = run(out.path(), "wasi.system", "", &format!("allow = [\"{grant}\"]"));
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        // The printer breaks lines and draws a frame; words count.
        let text = output.stderr.replace(['│', '\n'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{}", output.stderr);
    }
}

#[test]
fn a_function_in_javascript_has_its_engines_wasi() {
    let out = TempDir::new().expect("a temporary folder");
    run(out.path(), "js_wasi.stamp", "", "columns = { value = \"n\" }").success();
    let rows = sorted(out.path());
    let number = |row: &Value, column: &str| row[column].as_f64().expect("a number");
    assert!(
        rows.iter().all(|row| number(row, "time") > 1.6e12 && row["time"] == rows[0]["time"]),
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| (0.0..1.0).contains(&number(row, "random"))), "{rows:?}");
    assert_ne!(rows[0]["random"], rows[1]["random"]);
}

//! Functions in other languages than Rust. Those in C and JavaScript against the bare interface show that it is not
//! Rust-shaped; the conformance guest of each SDK does, byte by byte, what the one in Rust does.

use std::{env, fs};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    conformance::{conforms, fixtures},
    subject::{assert_same, lines},
    support::{Output, command, finish, guests, rows},
};

/// The languages that have an SDK beside Rust.
const LANGUAGES: [&str; 3] = ["python", "javascript", "c"];

/// The languages whose conformance guest has been built. Where a compiler is missing `cargo xtask guests` says so; a run
/// that decides about a change has them all.
fn languages() -> Vec<&'static str> {
    let built = |language: &&str| guests().join(format!("conformance_{language}.wasm")).is_file();
    let (found, left_out): (Vec<_>, Vec<_>) = LANGUAGES.into_iter().partition(built);
    assert!(left_out.is_empty() || env::var_os("CI").is_none(), "no guests in {left_out:?}");
    found
}

/// The rows that a function makes of the numbers 1 to 1,000 and their remainders by 7.
fn run(function: &str, operator: &str) -> Vec<Value> {
    let module = function.split('.').next().expect("split gives one part at least");
    let out = TempDir::new().expect("a temporary folder");
    let job = format!(
        r#"
        [job]
        name = "languages"
        parallelism = 2

        [module.{module}]
        path = "${{MILLSTREAM_GUESTS}}/{module}.wasm"

        [source.numbers]
        connector = "generator"
        fields = {{ n = {{ kind = "sequence", start = 1 }}, k = {{ kind = "uniform", min = 0, max = 6 }} }}
        records = 1000

        [operator.victim]
        function = "{function}"
        input = "numbers"
        {operator}

        [sink.out]
        connector = "file"
        input = "victim"
        path = "out"
        format = "jsonl"
        "#
    );
    let file = out.path().join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    finish(command(out.path()).arg("run").arg(file).arg("--quiet")).success();
    rows(&out.path().join("out"))
}

fn number(row: &Value, column: &str) -> i64 {
    row[column].as_i64().unwrap_or_else(|| panic!("no number `{column}` in {row}"))
}

#[test]
fn a_map_function_in_c_and_in_javascript() {
    for module in ["c_map", "js_map"] {
        let rows = run(&format!("{module}.double"), "columns = { value = \"n\" }");
        assert_eq!(rows.len(), 1000, "{module}");
        assert!(rows.iter().all(|row| number(row, "doubled") == 2 * number(row, "n")), "{module}");
    }
}

#[test]
fn a_process_function_in_c_and_in_javascript_counts_each_key() {
    for module in ["c_process", "js_process"] {
        let rows = run(&format!("{module}.count"), "key = [\"k\"]");
        assert_eq!(rows.len(), 1000, "{module}");
        for key in 0..=6 {
            let of_key = rows.iter().filter(|row| number(row, "k") == key);
            let mut counts: Vec<i64> = of_key.map(|row| number(row, "count")).collect();
            counts.sort_unstable();
            assert!(counts.len() > 50, "{module}: key {key} has {} rows", counts.len());
            assert_eq!(counts, (1..=counts.len() as i64).collect::<Vec<_>>(), "{module}: key {key}");
        }
    }
}

#[test]
fn the_functions_of_every_language_do_what_their_fixtures_expect() {
    for language in languages() {
        let module = guests().join(format!("conformance_{language}.wasm"));
        conforms(&module, "conformance.wasm", &fixtures());
    }
}

/// What a function of the conformance guest makes of 100,000 rows with all kinds of text, as sorted lines.
fn lines_of(module: &str, function: &str, operator: &str) -> Vec<String> {
    let out = TempDir::new().expect("a temporary folder");
    let texts = ["", "a", "Zürich", "水", "\u{1f30a}\u{200d}", "e\u{301}", "\\\"quoted\\\"", "line\\nbreak"];
    let row = |n: usize| {
        let text = texts[n / 3 % texts.len()];
        let time = n / 10;
        let n = if n.is_multiple_of(3) { n as i64 } else { -(n as i64) };
        let command = COMMANDS[n.unsigned_abs() as usize / 7 % COMMANDS.len()];
        // Rust shows a value that was set with escapes of its own.
        let name = if command == "set" { "plain" } else { text };
        let key = n % 1000;
        format!(
            "{{\"n\":{n},\"key\":\"{text}{key}\",\"text\":\"{text}\",\"command\":\"{command}\",\"name\":\"{name}\",\"time\":{time}}}\n"
        )
    };
    fs::write(out.path().join("in.jsonl"), (0..100_000).map(row).collect::<String>())
        .expect("can be written");
    // Without windows no watermark, as that comes when it comes and is in answers.
    let time = if operator.contains("window") { "time = { column = \"time\" }" } else { "" };
    let job = format!(
        r#"
        [job]
        name = "large"
        parallelism = 1

        [module.m]
        path = "${{MILLSTREAM_GUESTS}}/{module}.wasm"

        [source.rows]
        connector = "file"
        path = "in.jsonl"
        format = "jsonl"
        schema = {{ n = "int64", key = "utf8", text = "utf8", command = "utf8", name = "utf8", time = "timestamp" }}
        {time}

        [operator.victim]
        function = "m.{function}"
        input = "rows"
        on-error = "skip"
        {operator}

        [sink.out]
        connector = "file"
        input = "victim"
        path = "out"
        format = "jsonl"
        "#
    );
    let file = out.path().join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    finish(command(out.path()).arg("run").arg(file).arg("--quiet")).success();
    lines(&out.path().join("out"))
}

const COMMANDS: [&str; 8] = ["set", "look", "add", "put", "look", "remove", "replace", "unknown"];

#[test]
fn a_hundred_thousand_rows_of_unicode_come_out_as_they_do_of_rust() {
    for (function, operator) in [
        ("doubled", ""),
        ("refused", ""),
        ("registers", "key = [\"key\"]"),
        ("joined", "key = [\"text\"]\nwindow = { tumbling = \"1s\" }"),
        ("joined", "key = [\"key\"]\nwindow = { session = \"3s\" }"),
        ("contents", "key = [\"text\"]\nwindow = { tumbling = \"1s\" }"),
    ] {
        let expected = lines_of("conformance", function, operator);
        assert!(expected.len() > 10, "{function} makes {} rows", expected.len());
        for language in languages() {
            let found = lines_of(&format!("conformance_{language}"), function, operator);
            assert_same(&found, &expected, &format!("{function} in {language}"));
        }
    }
}

#[test]
fn an_error_of_the_language_shows_its_own_words_and_call_stack() {
    for language in languages() {
        let out = TempDir::new().expect("a temporary folder");
        let module = guests().join(format!("conformance_{language}.wasm"));
        let fixture = format!(
            "{{\"module\":{:?},\"function\":\"failing\"}}\n\n{{\"row\":{{\"n\":4}}}}\n{{\"expect\":{{\"n\":4,\"doubled\":2}}}}\n\n\
             {{\"row\":{{\"n\":-4}}}}\n",
            module.display().to_string()
        );
        let file = out.path().join("failing.jsonl");
        fs::write(&file, fixture).expect("a temporary folder can be written to");
        let output = finish(command(out.path()).arg("test").arg(file));
        assert_eq!(output.code, Some(1), "{language}: {}{}", output.stdout, output.stderr);
        let (_, error) = output.stdout.split_once("the job failed: ").unwrap_or(("", &output.stdout));
        assert!(error.contains("no root of -4"), "{language}: {error}");
        for function in ["failing", "root"] {
            assert!(error.to_lowercase().contains(function), "{language}: no `{function}` in {error}");
        }
    }
}

/// What `millstream test` says of a fixture of a function in JavaScript.
fn javascript(head: &str, lines: &str) -> Option<Output> {
    let module = guests().join("conformance_javascript.wasm");
    if !module.is_file() {
        return None;
    }
    let out = TempDir::new().expect("a temporary folder");
    let file = out.path().join("fixture.jsonl");
    let module = module.display().to_string();
    fs::write(&file, format!("{{\"module\":{module:?},{head}}}\n\n{lines}")).expect("can be written to");
    Some(finish(command(out.path()).arg("test").arg(file)))
}

#[test]
fn time_and_chance_of_javascript_itself_are_those_of_the_call() {
    let head = r#""function":"engine_time","schema":{"n":"int64"},"processing-time":"2024-06-01T12:00:00Z""#;
    let lines = r#"{"row":{"n":1}}
{"row":{"n":2}}
{"expect":{"n":1,"now":1717243200000,"made":"2024-06-01T12:00:00Z","random":0.485580762010052,"uuid":"1285aa97-ec45-48aa-842c-8355c80df87a"}}
{"expect":{"n":2,"now":1717243200000,"made":"2024-06-01T12:00:00Z","random":0.3957502046293589,"uuid":"ade907c8-9ad5-4c8d-9c10-84b6a8986faf"}}

{"processing-time":"2024-06-01T12:00:01Z"}
{"row":{"n":3}}
{"expect":{"n":3,"now":1717243201000,"made":"2024-06-01T12:00:01Z","random":0.5036612659723267,"uuid":"1df70992-75a0-4c0a-bb5b-d74118fb6a62"}}
"#;
    let Some(output) = javascript(head, lines) else { return };
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
}

#[test]
fn what_javascript_cannot_do_in_a_function_says_so() {
    for (function, n, words) in [
        (
            "promised",
            1,
            "`promised` refused the call: `output`, emitted for row 0: expected a row, an object with `doubled`, found a promise: functions cannot be async",
        ),
        ("reaching", 1, "there is no `setTimeout` in a function: nothing waits within a call"),
        ("reaching", 2, "there is no `fetch` in a function: it has no network"),
    ] {
        let head = format!("\"function\":\"{function}\"");
        let Some(output) = javascript(&head, &format!("{{\"row\":{{\"n\":{n}}}}}\n")) else { return };
        assert_eq!(output.code, Some(1), "{function}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains(words), "{function}: {}", output.stdout);
    }
}

/// What a job makes whose map, filter, aggregate and process functions are in these modules: its windows and its totals.
fn mixed(modules: [&str; 4]) -> (Vec<String>, Vec<String>) {
    let out = TempDir::new().expect("a temporary folder");
    let [map, filter, aggregate, process] = modules;
    let job = format!(
        r#"
        [job]
        name = "mixed"
        parallelism = 2

        [module.map]
        path = "${{MILLSTREAM_GUESTS}}/{map}.wasm"
        [module.filter]
        path = "${{MILLSTREAM_GUESTS}}/{filter}.wasm"
        [module.aggregate]
        path = "${{MILLSTREAM_GUESTS}}/{aggregate}.wasm"
        [module.process]
        path = "${{MILLSTREAM_GUESTS}}/{process}.wasm"

        [source.rows]
        connector = "file"
        path = "in.jsonl"
        format = "jsonl"
        schema = {{ n = "int64", k = "int64", time = "timestamp" }}
        time = {{ column = "time" }}

        [operator.doubled]
        function = "map.doubled"
        input = "rows"

        [operator.kept]
        function = "filter.kept"
        input = "doubled"

        [operator.summed]
        function = "aggregate.summed"
        input = "kept"
        columns = {{ n = "doubled" }}
        key = ["k"]
        window = {{ tumbling = "1s" }}

        [operator.totals]
        function = "process.totals"
        input = "summed"
        columns = {{ n = "total" }}
        key = ["at"]

        [sink.windows]
        connector = "file"
        input = "summed"
        path = "windows"
        format = "jsonl"

        [sink.end]
        connector = "file"
        input = "totals"
        path = "totals"
        format = "jsonl"
        "#
    );
    let row = |n: usize| format!("{{\"n\":{n},\"k\":{},\"time\":{n}}}\n", n % 7);
    fs::write(out.path().join("in.jsonl"), (0..20_000).map(row).collect::<String>()).expect("can be written");
    let file = out.path().join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    finish(command(out.path()).arg("run").arg(file).arg("--quiet")).success();
    (lines(&out.path().join("windows")), lines(&out.path().join("totals")))
}

#[test]
fn one_job_with_functions_in_four_languages_is_as_one_in_rust() {
    if languages() != LANGUAGES {
        return;
    }
    let (windows, totals) = mixed(["conformance"; 4]);
    // Each subtask of the windows says something at its end, too.
    assert_eq!((windows.len(), totals.len()), (7 * 20 + 2, 2));
    let others = ["conformance", "conformance_javascript", "conformance_c", "conformance_python"];
    let (found_windows, found_totals) = mixed(others);
    assert_same(&found_windows, &windows, "windows");
    assert_same(&found_totals, &totals, "totals");
}

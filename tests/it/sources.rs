//! Sources in whole jobs: where rows stand, event time over many splits, and subtasks that wait for each other.

use std::{fmt::Write as _, fs, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Output, command, finish, rows};

fn run(out: &Path, job: &str) -> Output {
    let file = out.join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    finish(command(out).arg("run").arg(file).args(["--quiet", "--json"]))
}

fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_else(|| panic!("no text `{column}` in {row}"))
}

/// A job that has a function refuse some of the numbers in a file.
fn poisoned(operator: &str) -> String {
    format!(
        r#"
        [job]
        name = "positions"
        parallelism = 2

        [module.hostile]
        path = "${{MILLSTREAM_GUESTS}}/hostile.wasm"

        [source.numbers]
        connector = "file"
        path = "n.csv"
        format = "csv"
        split-size = "200B"
        schema = {{ n = "int64" }}
        on-error = "skip"

        [operator.victim]
        function = "hostile.poison"
        input = "numbers"
        {operator}

        [sink.good]
        connector = "file"
        input = "victim"
        path = "good"
        format = "jsonl"
        "#
    )
}

/// The numbers 1 to 1,000, a line each but for two lines that are none, and the line of each.
fn numbers(out: &Path) -> Vec<usize> {
    let (mut content, mut lines, mut line) = ("n\n".to_owned(), vec![0], 2);
    for n in 1..=1000 {
        if n == 150 || n == 450 {
            content += if n == 150 { "\n" } else { "x\n" };
            line += 1;
        }
        writeln!(content, "{n}").expect("text grows");
        lines.push(line);
        line += 1;
    }
    fs::write(out.join("n.csv"), content).expect("a temporary folder can be written to");
    lines
}

#[test]
fn a_row_that_a_function_refuses_is_told_with_its_file_and_line() {
    for partition in ["", "partition = \"rebalance\""] {
        let out = TempDir::new().expect("a temporary folder");
        let lines = numbers(out.path());
        let letters = "on-trap = \"isolate\"\non-error = \"dead-letter\"\n\
            [sink.letters]\nconnector = \"file\"\ninput = \"victim.dead-letter\"\npath = \"bad\"\nformat = \"jsonl\"";
        run(out.path(), &poisoned(&format!("{partition}\n{letters}"))).success();
        let bad = rows(&out.path().join("bad"));
        assert_eq!(bad.len(), 10);
        for letter in bad {
            let row: Value = serde_json::from_str(text(&letter, "row")).expect("JSON");
            let line = lines[row["n"].as_u64().expect("a number") as usize];
            assert!(text(&letter, "position").ends_with(&format!("n.csv:{line}")), "{letter}");
        }
    }
}

#[test]
fn a_call_that_fails_is_told_with_the_lines_of_its_rows() {
    let out = TempDir::new().expect("a temporary folder");
    numbers(out.path());
    let failed = words(run(out.path(), &poisoned("")));
    assert!(failed.contains("n.csv: lines ") && failed.contains("is poison"), "{failed}");
    let failed = words(run(out.path(), &poisoned("on-trap = \"isolate\"\n")));
    assert!(failed.contains("n.csv:") && failed.contains("is poison"), "{failed}");
}

/// What was said, without the printer's line breaks and frames.
fn words(output: Output) -> String {
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    let text = (output.stdout + &output.stderr).replace(['│', '\n'], " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Counts per day of events in a file, whatever is said of the source.
fn counts(out: &Path, parallelism: u32, source: &str) -> (Vec<Value>, Value) {
    let job = format!(
        r#"
        [job]
        name = "days"
        parallelism = {parallelism}
        watermark-interval = "1ms"

        [module.flights]
        path = "${{MILLSTREAM_GUESTS}}/flights.wasm"

        [source.events]
        connector = "file"
        path = "events.csv"
        format = "csv"
        schema = {{ time_hour = "timestamp", carrier = "utf8", delay = "float64" }}
        {source}

        [operator.stats]
        function = "flights.delay_stats"
        input = "events"
        key = ["carrier"]
        window = {{ tumbling = "1d", start = "day" }}

        [sink.out]
        connector = "file"
        input = "stats"
        path = "out-{parallelism}"
        format = "jsonl"
        "#
    );
    let summary = run(out, &job).success().json();
    (rows(&out.join(format!("out-{parallelism}"))), summary)
}

fn sorted(rows: Vec<Value>) -> Vec<String> {
    let mut rows: Vec<_> = rows.iter().map(Value::to_string).collect();
    rows.sort();
    rows
}

/// 40 stretches of 500 events. Within each they stand in no order; each begins six days before the one before it ends.
fn overlapping(out: &Path) {
    let mut content = "time_hour,carrier,delay\n".to_owned();
    for stretch in 0..40_u64 {
        for i in 0..500_u64 {
            let hour = stretch * 24 + (i * 337 + stretch * 11) % 168;
            writeln!(
                content,
                "{},{},{}",
                1_357_000_000_000 + hour * 3_600_000,
                ["AA", "UA"][(i % 2) as usize],
                i % 60
            )
            .expect("text grows");
        }
    }
    fs::write(out.join("events.csv"), content).expect("a temporary folder can be written to");
}

fn late(summary: &Value) -> u64 {
    let operators = summary["operators"].as_array().unwrap_or_else(|| panic!("no operators in {summary}"));
    operators.iter().map(|o| o["late"].as_u64().expect("a count")).sum()
}

#[test]
fn splits_that_go_back_in_time_are_not_late_within_the_bound() {
    let out = TempDir::new().expect("a temporary folder");
    overlapping(out.path());
    let source = "split-size = \"5KB\"\ntime = { column = \"time_hour\", out-of-orderness = \"7d\" }";
    let (expected, summary) = counts(out.path(), 1, source);
    assert_eq!(late(&summary), 0);
    assert!(expected.len() > 80, "{}", expected.len());
    for parallelism in [2, 4] {
        let (found, summary) = counts(out.path(), parallelism, source);
        assert_eq!(
            (late(&summary), sorted(found)),
            (0, sorted(expected.clone())),
            "parallelism {parallelism}"
        );
    }
}

#[test]
fn subtasks_that_wait_for_each_other_come_to_an_end() {
    let out = TempDir::new().expect("a temporary folder");
    overlapping(out.path());
    let source = |alignment: &str| {
        format!(
            "split-size = \"5KB\"\ntime = {{ column = \"time_hour\", out-of-orderness = \"7d\", alignment = \"{alignment}\" }}"
        )
    };
    let (expected, _) = counts(out.path(), 1, &source("off"));
    for alignment in ["1d", "0s"] {
        let (found, summary) = counts(out.path(), 4, &source(alignment));
        assert_eq!((late(&summary), sorted(found)), (0, sorted(expected.clone())), "{alignment}");
    }
}

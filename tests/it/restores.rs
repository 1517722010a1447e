//! What becomes of state when a job goes on with other functions, what is refused, and looking at what is stored.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use arrow_array::cast::AsArray;
use serde_json::{Value, json};

use crate::{
    subject::Subject,
    support::{Output, finish},
};

/// Counts rows by key, with one of the versions of a function.
fn job(function: &str) -> String {
    format!(
        r#"
        [job]
        name = "evolution"
        parallelism = 2
        [module.evolution]
        path = "${{MILLSTREAM_GUESTS}}/evolution.wasm"
        [source.rows]
        connector = "file"
        path = "rows.jsonl"
        format = "jsonl"
        schema = {{ k = "utf8", note = "utf8" }}
        [operator.counts]
        function = "evolution.{function}"
        input = "rows"
        key = ["k"]
        [sink.out]
        connector = "file"
        input = "counts"
        path = "${{MILLSTREAM_OUT}}/out"
        format = "jsonl"
        "#
    )
}

/// The job with its first function, run to its end: its last checkpoint has all that was counted.
fn first() -> Subject {
    let subject = Subject::new(&job("first"), "out");
    let row = |i: u32| format!("{}\n", json!({ "k": format!("k{}", i % 5), "note": format!("n{i}") }));
    fs::write(subject.path("rows.jsonl"), (0..23).map(row).collect::<String>()).expect("writable");
    subject.run();
    subject
}

fn run(subject: &Subject, function: &str, more: &[&str]) -> Output {
    fs::write(subject.path("job.toml"), job(function)).expect("writable");
    let file = subject.path("job.toml");
    let file = file.to_str().expect("paths of tests are text");
    let arguments = ["run", file, "--from", "latest", "--quiet"];
    finish(subject.about(&arguments).args(more))
}

fn newest(subject: &Subject) -> PathBuf {
    let run = subject.path("checkpoints/evolution/run-00001");
    let folders = fs::read_dir(run).expect("a run").map(|entry| entry.expect("an entry").path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.strip_prefix("chk-")?.parse::<u64>().ok();
    folders.filter(|path| number(path).is_some()).max_by_key(number).expect("a checkpoint")
}

fn show(snapshot: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    finish(command.args(["state", "show"]).arg(snapshot).args(arguments))
}

/// The rows of `counts` in the newest checkpoint, by key.
fn counts(subject: &Subject) -> Vec<Value> {
    let shown = show(&newest(subject), &["counts", "counts", "--format", "jsonl"]).success();
    let mut rows: Vec<Value> =
        shown.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    rows.sort_by_key(|row| row["k"].as_str().map(str::to_owned));
    rows
}

#[track_caller]
fn assert_says(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.code, Some(code), "{}", output.stderr);
    let text = output.stderr.replace(['│', '\n'], " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.iter().for_each(|word| assert!(text.contains(word), "`{word}` is missing in\n{}", output.stderr));
}

#[test]
fn columns_that_lose_nothing_are_taken_over_by_the_host() {
    let subject = first();
    let expected = |i: u64| 5 - u64::from(i > 2);
    let rows = counts(&subject);
    assert_eq!(rows.len(), 5);
    for (i, row) in (0..).zip(&rows) {
        let note = format!("n{}", i + (expected(i) - 1) * 5);
        assert_eq!(*row, json!({ "k": format!("k{i}"), "rows": expected(i), "note": note }));
    }
    let end = run(&subject, "wider", &[]);
    let widened = "value v1 (seen int64?, rows int64) widened: `seen` is new and null, `rows` from int32 to int64, `note` is left out";
    assert_says(&end, 0, &["operator state found wanted verdict", widened, "list v1 (value utf8)", "same"]);
    for (i, row) in (0..).zip(&counts(&subject)) {
        assert_eq!(*row, json!({ "k": format!("k{i}"), "seen": null, "rows": expected(i) }));
    }
    let again = run(&subject, "wider", &[]);
    assert!(!again.stderr.contains("verdict"), "there is nothing to tell: {}", again.stderr);
}

#[test]
fn state_goes_from_one_backend_to_the_other_and_is_taken_over_on_the_way() {
    let subject = first();
    let file = subject.path("job.toml");
    let rocks = "parallelism = 2\nstate = { backend = \"rocksdb\", memory = \"16MiB\" }";
    fs::write(&file, job("wider").replace("parallelism = 2", rocks)).expect("writable");
    let file = file.to_str().expect("paths of tests are text");
    let end = finish(&mut subject.about(&["run", file, "--from", "latest", "--quiet"]));
    assert_says(&end, 0, &["`rows` from int32 to int64"]);
    let taken_over = counts(&subject);
    assert_eq!(taken_over[0], json!({ "k": "k0", "seen": null, "rows": 5 }));
    run(&subject, "wider", &[]).success();
    assert_eq!(counts(&subject), taken_over, "back in memory");
}

#[test]
fn values_of_an_earlier_version_are_taken_over_by_the_module() {
    let subject = first();
    let end = run(&subject, "migrated", &[]);
    assert_says(
        &end,
        0,
        &["value v1 (rows int32, note utf8) value v2 (rows utf8, note utf8?) migrated by v2"],
    );
    let rows = counts(&subject);
    assert_eq!(rows[0], json!({ "k": "k0", "rows": "IIIII", "note": "n20" }));
    assert_eq!(rows[4], json!({ "k": "k4", "rows": "IIII", "note": "n19" }));
    let back = run(&subject, "first", &["--json"]);
    let told: Vec<Value> = back.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let restore = told.iter().find_map(|line| line["restore"].as_array()).expect("the verdicts");
    assert!(
        restore.iter().any(|v| v["state"] == "counts" && v["wanted"] == "value v1 (rows int32, note utf8)")
    );
    assert_says(
        &back,
        3,
        &["it was written in version 2, and the module has version 1: use the later module"],
    );
}

#[test]
fn accumulators_of_open_windows_are_taken_over_too() {
    let job = |function: &str| {
        format!(
            r#"
            [job]
            name = "sums"
            [module.evolution]
            path = "${{MILLSTREAM_GUESTS}}/evolution.wasm"
            [source.numbers]
            connector = "generator"
            fields = {{ n = {{ kind = "sequence", start = 1 }} }}
            records = 3000
            rate = 4000
            [operator.sums]
            function = "evolution.{function}"
            input = "numbers"
            key = []
            window = {{ global = true }}
            [sink.out]
            connector = "file"
            input = "sums"
            path = "${{MILLSTREAM_OUT}}/out"
            format = "jsonl"
            "#
        )
    };
    let subject = Subject::new(&job("sum"), "out");
    let file = subject.path("job.toml");
    let file = file.to_str().expect("paths of tests are text");
    let running = subject.start(&[file]);
    thread::sleep(Duration::from_millis(250));
    let stopped = finish(&mut subject.about(&["stop", "--savepoint", "--json"])).success().json();
    running.end().success();
    let savepoint = stopped["path"].as_str().expect("it names a path");
    let shown = show(savepoint.as_ref(), &["sums", "windows"]).success().stdout;
    assert!(shown.contains("window accumulators") && shown.contains("window_start"), "{shown}");
    fs::write(subject.path("job.toml"), job("sum_of_halves")).expect("writable");
    let end = finish(&mut subject.about(&["run", file, "--quiet", "--from", savepoint]));
    assert_says(&end, 0, &["window accumulators v1 (sum int64)", "v2 (halves float64) migrated by v2"]);
    assert_eq!(subject.rows(), [r#"{"sum":4501500.0}"#]);
}

#[test]
fn state_that_cannot_be_taken_over_is_refused_before_anything_runs() {
    let subject = first();
    let before = newest(&subject);
    let refused = run(&subject, "other", &[]);
    let incompatible =
        "incompatible: `rows` is int32 and cannot become utf8 by itself: give the module a migration";
    assert_says(&refused, 3, &["value v1 (rows int32, note utf8)", incompatible]);
    let refused = run(&subject, "without", &[]);
    assert_says(
        &refused,
        3,
        &["value v1 (rows int32, note utf8) - missing: allow with --allow-dropped-state"],
    );
    assert_eq!(newest(&subject), before, "nothing has run");
    run(&subject, "without", &["--allow-dropped-state"]).success();
    let gone = show(&newest(&subject), &["counts", "counts"]);
    assert_says(&gone, 3, &["`counts` has no state `counts`", "notes"]);
    let notes = show(&newest(&subject), &["counts", "notes", "--json"]).success();
    assert_eq!(notes.stdout.lines().count(), 23, "{}", notes.stdout);
}

#[test]
fn damaged_state_is_named_and_the_checkpoint_before_is_offered() {
    let subject = first();
    // Each run to the end takes a last checkpoint of its own.
    run(&subject, "first", &[]).success();
    let newest = newest(&subject);
    let metadata = newest.join("_metadata");
    let bytes = fs::read(&metadata).expect("a checkpoint");
    fs::write(&metadata, &bytes[..bytes.len() - 1]).expect("writable");
    let refused = run(&subject, "first", &[]);
    assert_says(&refused, 4, &["_metadata", "the file is cut short", "the one before it is good", "--from"]);
    // A state in the metadata that is not what was stored: the checksum of the metadata is right, the chunk's is not.
    let mut altered = bytes[28..].to_vec();
    let at = altered.windows(3).position(|window| window == b"n20").expect("a note that is kept");
    altered[at] = b'X';
    let mut file = bytes[..20].to_vec();
    file.extend(xxhash_rust::xxh3::xxh3_64(&altered).to_le_bytes());
    file.extend(altered);
    fs::write(&metadata, &file).expect("writable");
    let refused = run(&subject, "first", &[]);
    assert_says(&refused, 4, &["is damaged at byte", "a checkpoint before it is good", "--from"]);
    let older =
        refused.stderr.split("--from ").nth(1).and_then(|rest| rest.split('`').next()).expect("a path");
    let file = subject.path("job.toml");
    let mut command =
        subject.about(&["run", file.to_str().expect("text"), "--quiet", "--from", older.trim()]);
    finish(&mut command).success();
}

#[test]
fn state_is_shown_as_a_table_and_goes_into_parquet() {
    let subject = first();
    let checkpoint = newest(&subject);
    let all = show(&checkpoint, &[]).success();
    for words in ["rows int32, note utf8", "counts", "k utf8", "enumerator", "event-time timers"] {
        assert!(all.stdout.contains(words), "{words}: {}", all.stdout);
    }
    let table = show(&checkpoint, &["counts", "notes", "--limit", "4"]).success();
    assert!(table.stdout.contains("notes (list): 23 rows"), "{}", table.stdout);
    assert!(table.stdout.contains("and 19 more"), "{}", table.stdout);
    assert_says(&show(&checkpoint, &["nothing"]), 3, &["no operator `nothing`", "counts, out, rows"]);
    assert_says(&show(&checkpoint, &["counts", "--format", "parquet"]), 3, &["--output FILE"]);
    let file = subject.path("counts.parquet");
    let output = ["counts", "counts", "--format", "parquet", "--output", file.to_str().expect("text")];
    show(&checkpoint, &output).success();
    let read = fs::File::open(&file).expect("it was written");
    let read = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(read);
    let batches = read.and_then(|builder| builder.build()).expect("Parquet");
    let mut rows = 0;
    for batch in batches {
        let batch = batch.expect("readable");
        let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["k", "rows", "note"]);
        let counts = batch.column(1).as_primitive::<arrow_array::types::Int32Type>();
        rows += counts.values().iter().sum::<i32>();
    }
    assert_eq!(rows, 23);
}

#[test]
fn checkpoints_are_listed_with_what_they_have() {
    let subject = first();
    let dir = subject.path("checkpoints");
    let list = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
        finish(command.args(["checkpoint", "list"]).arg(&dir).args(arguments)).success()
    };
    let lines = list(&["--json"]).json();
    let last = lines.as_array().and_then(|lines| lines.last()).expect("there is one").clone();
    assert_eq!((&last["job"], &last["kind"]), (&json!("evolution"), &json!("checkpoint")));
    assert!(last["bytes"].as_u64().is_some_and(|bytes| bytes > 100), "{last}");
    assert_eq!(last["bytes"], last["changed-bytes"]);
    assert!(last["operators"]["counts"].as_u64().is_some_and(|bytes| bytes > 100), "{last}");
    for figure in ["duration-ms", "alignment-ms", "pause-ms", "triggered"] {
        assert!(last[figure].is_number(), "{figure}: {last}");
    }
    assert_eq!(last["path"].as_str().map(PathBuf::from), Some(newest(&subject)));
    fs::remove_file(newest(&subject).join("_metadata")).expect("it is there");
    let text = list(&[]).stdout;
    assert!(text.contains("evolution") && text.contains("incomplete"), "{text}");
    assert!(list(&["--job", "other"]).stderr.contains("there is no checkpoint"));
}

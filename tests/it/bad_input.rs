//! Input that is wrong: the policies, and errors that name file, place, what was found and what was expected.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::support::{Output, command, finish, rows};

/// Runs a job from a file source into a file sink without any function.
fn run(out: &Path, name: &str, content: &[u8], source: &str, rest: &str) -> Output {
    fs::write(out.join(name), content).expect("a temporary folder can be written to");
    let job = format!(
        r#"
        [job]
        name = "bad-input"

        [source.rows]
        connector = "file"
        path = "{name}"
        {source}

        [sink.out]
        connector = "file"
        input = "rows"
        path = "good"
        format = "jsonl"
        {rest}
        "#
    );
    let file = out.join("job.toml");
    fs::write(&file, job).expect("a temporary folder can be written to");
    finish(command(out).arg("run").arg(file).arg("--quiet"))
}

/// Expects that the job fails and that the error has these words.
#[track_caller]
fn fails(name: &str, content: &[u8], source: &str, words: &[&str]) {
    let out = TempDir::new().expect("a temporary folder");
    let output = run(out.path(), name, content, source, "");
    assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
    let text = output.stderr.replace(['│', '\n'], " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(text.contains(word), "`{word}` is missing in\n{}", output.stderr);
    }
}

const CSV: &str = "format = \"csv\"\nschema = { a = \"int64\", b = \"utf8\" }";
const JSON: &str = "format = \"jsonl\"\nschema = { a = \"int64\", b = \"utf8\" }";
const TIMED: &str = "format = \"jsonl\"\nschema = { t = \"timestamp\" }\ntime = { column = \"t\" }";

#[test]
fn malformed_rows_name_file_line_and_what_was_expected() {
    fails("r.csv", b"a,b\n1,x\ntwo,y\n", CSV, &["r.csv", "3", "two", "int64", "on-error"]);
    fails("r.csv", b"a,b\n1,x\n2\n", CSV, &["r.csv", "3", "2"]);
    fails("r.jsonl", b"{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\n", JSON, &["r.jsonl", "2"]);
    fails("r.jsonl", b"{\"a\":\"x\",\"b\":\"x\"}\n", JSON, &["r.jsonl", "a", "int64"]);
    fails("r.jsonl", b"{\"b\":\"x\"}\n", JSON, &["r.jsonl", "a"]);
    fails("r.csv", b"a,b\n1,\xff\xfe\n", CSV, &["r.csv", "UTF-8"]);
}

#[test]
fn a_column_that_is_missing_is_named() {
    fails("r.csv", b"a,c\n1,x\n", CSV, &["r.csv", "b"]);
}

#[test]
fn timestamps_out_of_range_are_refused() {
    fails("r.jsonl", b"{\"t\":\"2013-13-01T00:00:00Z\"}\n", TIMED, &["r.jsonl", "2013-13-01"]);
    fails("r.jsonl", b"{\"t\":9223372036854775807}\n", TIMED, &["9223372036854775807"]);
}

#[test]
fn an_empty_file_is_no_rows() {
    let out = TempDir::new().expect("a temporary folder");
    run(out.path(), "r.jsonl", b"", JSON, "").success();
    assert!(rows(&out.path().join("good")).is_empty());
}

#[test]
fn a_row_of_16_megabytes_goes_through() {
    let out = TempDir::new().expect("a temporary folder");
    let long = "x".repeat(16 << 20);
    let content = format!("{{\"a\":1,\"b\":\"{long}\"}}\n{{\"a\":2,\"b\":\"short\"}}\n");
    run(out.path(), "r.jsonl", content.as_bytes(), JSON, "").success();
    let mut lengths: Vec<_> =
        rows(&out.path().join("good")).iter().map(|r| r["b"].as_str().expect("text").len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [5, 16 << 20]);
}

#[test]
fn bad_rows_are_skipped_and_counted_or_set_aside() {
    let content = b"a,b\n1,x\ntwo,y\n3,z\n4\n";
    let out = TempDir::new().expect("a temporary folder");
    run(out.path(), "r.csv", content, &format!("{CSV}\non-error = \"skip\""), "").success();
    assert_eq!(rows(&out.path().join("good")).len(), 2);

    let out = TempDir::new().expect("a temporary folder");
    let letters = "[sink.letters]\nconnector = \"file\"\ninput = \"rows.dead-letter\"\npath = \"bad\"\nformat = \"jsonl\"";
    run(out.path(), "r.csv", content, &format!("{CSV}\non-error = \"dead-letter\""), letters).success();
    assert_eq!(rows(&out.path().join("good")).len(), 2);
    let bad = rows(&out.path().join("bad"));
    let positions: Vec<_> = bad.iter().map(|r| r["position"].as_str().expect("a position")).collect();
    assert!(positions.iter().all(|p| p.contains("r.csv")), "{positions:?}");
    assert_eq!(bad.len(), 2);
}

/// A job that copies `first` and `second` into the folders of the same names, changed as a test wants.
fn copy(out: &Path, edits: &[(&str, &str)]) -> Output {
    let mut job = r#"
        [job]
        name = "copy"
        [source.a]
        connector = "file"
        path = "first/*.jsonl"
        format = "jsonl"
        schema = { x = "int64" }
        [source.b]
        connector = "generator"
        fields = { x = { kind = "sequence" } }
        records = 10
        [sink.c]
        connector = "file"
        input = "a"
        path = "one"
        format = "jsonl"
        [sink.d]
        connector = "file"
        input = "b"
        path = "two"
        format = "jsonl"
        "#
    .to_owned();
    for (from, to) in edits {
        assert!(job.contains(from), "{from}");
        job = job.replace(from, to);
    }
    fs::create_dir_all(out.join("first")).expect("a temporary folder can be written to");
    fs::write(out.join("first/part-0123abcd-0-0.jsonl"), "{\"x\":1}\n")
        .expect("a temporary folder can be written to");
    fs::write(out.join("copy.toml"), job).expect("a temporary folder can be written to");
    finish(command(out).arg("run").arg(out.join("copy.toml")).arg("--quiet"))
}

#[test]
fn a_sinks_folder_is_its_own() {
    let out = TempDir::new().expect("a temporary folder");
    copy(out.path(), &[]).success();
    assert_eq!((rows(&out.path().join("one")).len(), rows(&out.path().join("two")).len()), (1, 10));
    for other in ["one", "./one/", "two/../one"] {
        let output = copy(out.path(), &[("\"two\"", &format!("\"{other}\""))]);
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        assert!(output.stderr.contains("`c`") && output.stderr.contains("`d`"), "{}", output.stderr);
    }
    let output = copy(out.path(), &[("\"one\"", "\"first\"")]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("`a`") && output.stderr.contains("`c`"), "{}", output.stderr);
    assert!(out.path().join("first/part-0123abcd-0-0.jsonl").exists(), "the input is still there");
}

#[test]
fn what_is_missing_around_a_job_has_its_own_exit_code() {
    let out = TempDir::new().expect("a temporary folder");
    let output = copy(
        out.path(),
        &[
            (
                "connector = \"generator\"",
                "connector = \"file\"\npath = \"none.jsonl\"\nformat = \"jsonl\"\nschema = { x = \"int64\" }",
            ),
            ("fields = { x = { kind = \"sequence\" } }\n", ""),
            ("records = 10", ""),
        ],
    );
    assert!(matches!(output.code, Some(3 | 4)), "{}", output.stderr);
    assert!(output.stderr.contains("none.jsonl"), "{}", output.stderr);
}

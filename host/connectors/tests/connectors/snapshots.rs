//! Sources that are left and gone on with: what was read before a snapshot and what is read behind it is everything,
//! once.

use std::{fs, io::Write, path::Path};

use millstream_operator::{Assignment, Source, SourceSnapshot, Split, SplitEnumerator, SplitReader};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::support::{Found, context, read, schema, sink, source, without_folder, write};

/// A reader in a subtask, with the splits that wait for it.
struct Reading {
    reader: Box<dyn SplitReader>,
    waiting: Vec<Split>,
    in_split: bool,
    finished: bool,
}

impl Reading {
    fn new(source: &dyn Source, subtask: u32, parallelism: u32) -> Self {
        let reader = source.reader(&context(subtask, parallelism)).expect("a reader");
        Self { reader, waiting: Vec::new(), in_split: false, finished: false }
    }

    /// Reads once, or starts a split.
    fn step(&mut self, subtask: u32, enumerator: &mut dyn SplitEnumerator, found: &mut Found) {
        if self.in_split {
            self.in_split = found.read_on(&mut *self.reader).expect("readable");
            return;
        }
        if self.waiting.is_empty() {
            match enumerator.next_split(subtask).expect("splits") {
                Assignment::Splits(splits) => self.waiting = splits,
                _ => self.finished = true,
            }
        }
        if !self.waiting.is_empty() {
            let split = self.waiting.remove(0);
            found.splits.push(split.id.to_string());
            self.reader.start(split).expect("its own split");
            self.in_split = true;
        }
    }

    fn snapshot(&self) -> Vec<Split> {
        let current = self.reader.snapshot().expect("a position");
        current.into_iter().chain(self.waiting.iter().cloned()).collect()
    }
}

/// Reads for some steps by so many readers, or to the end, and says what is left.
fn run(
    source: &dyn Source,
    enumerator: &mut dyn SplitEnumerator,
    parallelism: u32,
    steps: usize,
    found: &mut Found,
) -> SourceSnapshot {
    let mut readers: Vec<_> = (0..parallelism).map(|i| Reading::new(source, i, parallelism)).collect();
    for step in 0..steps {
        let subtask = step % readers.len();
        readers[subtask].step(subtask as u32, enumerator, found);
        if readers.iter().all(|reader| reader.finished) {
            break;
        }
    }
    let unfinished = readers.iter().flat_map(Reading::snapshot).collect();
    let snapshot = SourceSnapshot { enumerator: enumerator.snapshot().expect("a position"), unfinished };
    // It has to outlive the process.
    let written = serde_json::to_vec(&snapshot).expect("text");
    serde_json::from_slice(&written).expect("what was written")
}

/// Reads a source with cuts after these numbers of steps, each time by another number of readers.
fn read_with_cuts(source: &dyn Source, cuts: &[(u32, usize)]) -> Found {
    let mut found = Found::default();
    let (parallelism, steps) = cuts[0];
    let mut enumerator = source.enumerator(parallelism).expect("splits");
    let mut snapshot = run(source, &mut *enumerator, parallelism, steps, &mut found);
    for &(parallelism, steps) in cuts[1..].iter().chain(&[(2, usize::MAX)]) {
        let mut enumerator = source.restore(parallelism, &snapshot).expect("its own snapshot");
        snapshot = run(source, &mut *enumerator, parallelism, steps, &mut found);
    }
    found
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// The same 20,000 rows in a file of each kind, with some that are none where the format has such.
fn files() -> TempDir {
    let folder = tempdir().expect("a folder");
    let text = |i: usize| if i % 1000 == 7 { "\"two\nlines\"".to_owned() } else { format!("x{i}") };
    let csv: String = (0..20_000)
        .map(|i| format!("{},{}\n", if i % 9000 == 5 { "?".into() } else { i.to_string() }, text(i)))
        .collect();
    let csv = format!("\u{feff}n,text\n{}", csv.trim_end());
    let json =
        |i: usize| json!({"n": i, "text": text(i)}).to_string() + if i % 500 == 3 { "\n\n" } else { "\n" };
    let jsonl: String = (0..20_000).map(json).collect();
    fs::write(folder.path().join("a.csv"), &csv).expect("written");
    fs::write(folder.path().join("a.jsonl"), &jsonl).expect("written");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(csv.as_bytes()).expect("compressed");
    fs::write(folder.path().join("a.csv.gz"), gzip.finish().expect("compressed")).expect("written");
    fs::write(folder.path().join("a.jsonl.zst"), zstd::encode_all(jsonl.as_bytes(), 1).expect("compressed"))
        .expect("written");
    let columns = [("n", "int32"), ("text", "utf8")];
    let rows = read(&*source("file", json!({"path": "a.jsonl", "format": "jsonl"}), &columns, folder.path()));
    let parquet = sink("file", json!({"path": "a.parquet", "format": "parquet"}), folder.path());
    write(&*parquet, &schema(&columns), &rows.expect("readable").batches).expect("written");
    folder
}

fn kinds() -> Vec<Value> {
    vec![
        json!({"path": "a.csv", "format": "csv", "split-size": "40KB"}),
        json!({"path": "a.jsonl", "format": "jsonl", "split-size": "300KB"}),
        json!({"path": "a.*sv*", "format": "csv"}),
        json!({"path": "a.jsonl.zst", "format": "jsonl"}),
        json!({"path": "a.parquet", "format": "parquet"}),
    ]
}

fn check(folder: &Path, options: &Value, cuts: &[(u32, usize)]) {
    let source = source("file", options.clone(), &[("n", "int32"), ("text", "utf8")], folder);
    let whole = read(&*source).expect("readable");
    let pieces = read_with_cuts(&*source, cuts);
    assert_eq!(sorted(pieces.rows()), sorted(whole.rows()), "{options}");
    let bad = |found: &Found| sorted(found.bad.iter().map(|b| format!("{b:?}")).collect());
    assert_eq!(bad(&pieces), bad(&whole), "positions do not change: {options}");
}

/// Runs a test over random cuts.
fn with_random_cuts(cases: u32, steps: usize, test: impl Fn(&[(u32, usize)])) {
    let cuts = prop::collection::vec((1u32..4, 0..steps), 1..4);
    let mut runner = TestRunner::new(ProptestConfig::with_cases(cases));
    runner
        .run(&cuts, |cuts| {
            test(&cuts);
            Ok(())
        })
        .expect("no cut makes a difference");
}

#[test]
fn what_is_read_before_and_behind_a_snapshot_is_the_whole_file() {
    let folder = files();
    for options in kinds() {
        with_random_cuts(8, 12, |cuts| check(folder.path(), &options, cuts));
    }
}

#[test]
fn what_is_generated_before_and_behind_a_snapshot_is_everything() {
    for kind in ["bench-window", "bench-nexmark"] {
        let source = source("generator", json!({"kind": kind, "records": 50_000}), &[], Path::new(""));
        let whole = sorted(read(&*source).expect("generated").rows());
        with_random_cuts(8, 8, |cuts| assert_eq!(sorted(read_with_cuts(&*source, cuts).rows()), whole));
    }
}

#[test]
fn a_file_that_is_read_through_but_for_its_end_has_nothing_left() {
    let folder = tempdir().expect("a folder");
    for (name, text) in [("a.csv", "n\n1\n2"), ("b.csv", "n\n1\n2\n")] {
        fs::write(folder.path().join(name), text).expect("written");
        let source = source("file", json!({"path": name, "format": "csv"}), &[("n", "int32")], folder.path());
        for steps in 0..5 {
            assert_eq!(read_with_cuts(&*source, &[(1, steps)]).rows().len(), 2, "{name} after {steps}");
        }
    }
}

#[test]
fn files_that_changed_since_are_told() {
    let columns = [("n", "int32"), ("text", "utf8")];
    for (options, becomes, expected) in [
        (
            json!({"path": "a.csv", "format": "csv"}),
            Some(b"n,text\n1,x\n".to_vec()),
            "a.csv: cannot read on behind line",
        ),
        (json!({"path": "a.jsonl", "format": "jsonl"}), None, "a.jsonl: cannot open the file: No such file"),
        (
            json!({"path": "a.jsonl.zst", "format": "jsonl"}),
            Some(zstd::encode_all(&b"{}\n"[..], 1).expect("compressed")),
            "a.jsonl.zst: cannot open the file: it has 3 bytes and was read up to byte",
        ),
    ] {
        let folder = files();
        let source = source("file", options.clone(), &columns, folder.path());
        let mut found = Found::default();
        let mut enumerator = source.enumerator(1).expect("splits");
        let snapshot = run(&*source, &mut *enumerator, 1, 2, &mut found);
        let path = folder.path().join(options["path"].as_str().expect("text"));
        match becomes {
            Some(bytes) => fs::write(path, bytes).expect("written"),
            None => fs::remove_file(path).expect("removed"),
        }
        let mut enumerator = source.restore(1, &snapshot).expect("its own snapshot");
        let Ok(Assignment::Splits(mut splits)) = enumerator.next_split(0) else { panic!("one is begun") };
        let mut reader = source.reader(&context(0, 1)).expect("a reader");
        let started = reader.start(splits.remove(0));
        let error = started.and_then(|()| found.read_on(&mut *reader)).expect_err("not the same file");
        let message = without_folder(&error.to_string(), folder.path());
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn new_files_are_still_new_after_a_snapshot() {
    let folder = tempdir().expect("a folder");
    fs::write(folder.path().join("1.jsonl"), "{\"a\":1}\n").expect("written");
    let source = source(
        "file",
        json!({"path": "*.jsonl", "format": "jsonl", "watch": "1ms"}),
        &[("a", "int32")],
        folder.path(),
    );
    let mut found = Found::default();
    let mut enumerator = source.enumerator(1).expect("splits");
    let snapshot = run(&*source, &mut *enumerator, 1, 3, &mut found);
    fs::write(folder.path().join("2.jsonl"), "{\"a\":2}\n").expect("written");
    let mut enumerator = source.restore(1, &snapshot).expect("its own snapshot");
    std::thread::sleep(std::time::Duration::from_millis(2));
    run(&*source, &mut *enumerator, 1, 4, &mut found);
    assert_eq!(found.rows(), [r#"{"a":1}"#, r#"{"a":2}"#]);
}

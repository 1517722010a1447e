//! Jobs that are slow at their end: checkpoints that come through all the same, and what goes on from them.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    subject::{Subject, assert_same},
    support::finish,
};

/// Counts rows by key, ten microseconds or more each, which are read as fast as a disk: the channels are full most of the time.
pub(crate) fn slow(checkpoint: &str) -> Subject {
    let job = r#"
        [job]
        name = "slow"
        parallelism = 2
        checkpoint = { CHECKPOINT }
        [module.hostile]
        path = "${MILLSTREAM_GUESTS}/hostile.wasm"
        [source.numbers]
        connector = "generator"
        records = 300000
        fields.n = { kind = "sequence" }
        fields.key = { kind = "uniform", min = 1, max = 1000 }
        fields.text = { kind = "text", min-length = 90, max-length = 110 }
        [operator.counts]
        function = "hostile.dawdles"
        input = "numbers"
        key = ["key"]
        [sink.out]
        connector = "file"
        input = "counts"
        path = "${MILLSTREAM_OUT}/counts"
        format = "jsonl"
    "#;
    Subject::new(&job.replace("CHECKPOINT", checkpoint), "counts")
}

const UNALIGNED: &str = "interval = \"100ms\", unaligned = true";

/// The complete snapshots, oldest first.
fn complete(subject: &Subject) -> Vec<Value> {
    if !subject.path("checkpoints").is_dir() {
        return Vec::new();
    }
    let mut list = crate::support::command(&subject.path("out"));
    let list = finish(list.args(["checkpoint", "list", "--json"]).arg(subject.path("checkpoints")));
    // A list may be made while checkpoints are deleted.
    if list.code != Some(0) {
        return Vec::new();
    }
    let lines = list.json().as_array().cloned().unwrap_or_default();
    lines.into_iter().filter(|line| line["duration-ms"].is_number()).collect()
}

fn first_complete(subject: &Subject) -> Value {
    let since = Instant::now();
    loop {
        if let Some(first) = complete(subject).into_iter().next() {
            return first;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "no checkpoint is complete");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_unaligned_checkpoint_comes_through_where_an_aligned_one_waits() {
    let first = |checkpoint: &str| {
        let subject = slow(checkpoint);
        let job = subject.path("job.toml");
        let running = subject.start(&[job.to_str().expect("text")]);
        let first = first_complete(&subject);
        running.kill();
        first
    };
    let figure = |line: &Value, name: &str| line[name].as_i64().unwrap_or_else(|| panic!("{name}: {line}"));
    let aligned = first("interval = \"500ms\"");
    assert_eq!((&aligned["unaligned"], figure(&aligned, "in-flight-bytes")), (&false.into(), 0));
    for checkpoint in [
        "interval = \"500ms\", unaligned = true",
        "interval = \"500ms\", unaligned = true, aligned-timeout = \"50ms\"",
    ] {
        let unaligned = first(checkpoint);
        let took = [&unaligned, &aligned].map(|line| figure(line, "duration-ms"));
        assert!(took[0] * 2 < took[1], "{took:?}");
        assert_eq!(unaligned["unaligned"], Value::from(true), "{unaligned}");
        assert!(figure(&unaligned, "in-flight-bytes") > 1 << 20, "{unaligned}");
    }
}

#[test]
fn what_was_under_way_goes_on_at_any_parallelism() {
    let subject = slow(UNALIGNED);
    let expected = subject.undisturbed();
    let mut before = 0;
    for parallelism in ["1", "2", "4", "3"] {
        let job = subject.path("job.toml");
        let arguments = [job.to_str().expect("text"), "--from", "latest", "--parallelism", parallelism];
        let running = subject.start(if before == 0 { &arguments[..1] } else { &arguments });
        let since = Instant::now();
        while !complete(&subject).iter().any(|line| line["id"].as_u64() > Some(before)) {
            assert!(since.elapsed() < Duration::from_secs(60), "no checkpoint is complete");
            thread::sleep(Duration::from_millis(5));
        }
        running.kill();
        let last = complete(&subject).pop().expect("it is still there");
        assert!(last["in-flight-bytes"].as_u64() > Some(1 << 20), "at {parallelism}: {last}");
        before = last["id"].as_u64().expect("a number");
    }
    subject.run_at(1);
    assert_same(&subject.rows(), &expected, "at one, two, four, three and one");
}

#[test]
fn a_savepoint_has_nothing_under_way_and_is_exact() {
    let subject = slow("interval = \"200ms\", unaligned = true, aligned-timeout = \"20ms\"");
    let expected = subject.undisturbed();
    let (job, saved) = (subject.path("job.toml"), subject.path("saved"));
    let (job, saved) = (job.to_str().expect("text"), saved.to_str().expect("text"));
    let running = subject.start(&[job]);
    first_complete(&subject);
    finish(&mut subject.about(&["stop", "--savepoint", "--to", saved])).success();
    assert_eq!(running.end().success().json()["end"], "stopped");
    let files = fs::read_dir(saved).expect("a folder").map(|file| file.expect("an entry").path());
    let has_channels = |bytes: Vec<u8>| bytes.windows(16).any(|b| b == b"numbers:0 -> cou");
    assert!(!files.into_iter().any(|file| has_channels(fs::read(file).expect("a file"))));
    subject.start(&[job, "--from", saved, "--parallelism", "3"]).end().success();
    assert_same(&subject.rows(), &expected, "from the savepoint");
}

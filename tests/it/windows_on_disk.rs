//! Windows and sessions that do not fit into memory: they come out as if they did, whatever becomes of the process, and go
//! from one backend to the other.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use millstream_snapshot::SnapshotMetadata;
use millstream_types::StateForm;
use serde_json::Value;

use crate::{
    on_disk::{IN_MEMORY, ON_DISK, complete, peak_until, until},
    subject::{Subject, assert_same},
    support::finish,
};

/// Numbers summed up by key in windows of this kind, of far more keys than there is room for.
fn job(window: &str, records: u32, settings: &str) -> String {
    r#"
        [job]
        name = "stats"
        parallelism = 2
        SETTINGS
        [module.bench]
        path = "${MILLSTREAM_GUESTS}/bench.wasm"
        [source.records]
        connector = "generator"
        kind = "bench-window"
        keys = KEYS
        records = RECORDS
        rate = 300000
        events-per-second = 100000
        time = { column = "ts", out-of-orderness = "1s" }
        [operator.stats]
        function = "bench.window"
        input = "records"
        key = ["key"]
        window = WINDOW
        [sink.out]
        connector = "file"
        input = "stats"
        path = "${MILLSTREAM_OUT}/stats"
        format = "jsonl"
    "#
    .replace("KEYS", &(records / 2).to_string())
    .replace("RECORDS", &records.to_string())
    .replace("WINDOW", window)
    .replace("SETTINGS", settings)
}

/// All rows of a key's window instead, as text.
fn contents(window: &str, settings: &str) -> String {
    r#"
        [job]
        name = "stats"
        parallelism = 2
        SETTINGS
        [module.conformance]
        path = "${MILLSTREAM_GUESTS}/conformance.wasm"
        [source.records]
        connector = "generator"
        records = 300000
        rate = 300000
        fields.key = { kind = "text", min-length = 3, max-length = 3 }
        fields.text = { kind = "text", min-length = 60, max-length = 140 }
        fields.ts = { kind = "time", start = "2026-01-01T00:00:00Z", step = "10us", jitter = "500ms" }
        time = { column = "ts", out-of-orderness = "1s" }
        [operator.stats]
        function = "conformance.contents"
        input = "records"
        key = ["key"]
        window = WINDOW
        [sink.out]
        connector = "file"
        input = "stats"
        path = "${MILLSTREAM_OUT}/stats"
        format = "jsonl"
    "#
    .replace("WINDOW", window)
    .replace("SETTINGS", settings)
}

const RECORDS: u32 = 400_000;
const OFTEN: &str = "checkpoint = { interval = \"100ms\" }";
const TUMBLING: &str = "{ tumbling = \"2s\", end = \"window_end\" }";
const LONG: &str = "{ tumbling = \"1h\" }";
const SLIDING: &str = "{ sliding = \"2s\", slide = \"500ms\", lateness = \"1s\", end = \"window_end\" }";
const SESSION: &str = "{ session = \"400ms\", lateness = \"200ms\", start = \"first\", end = \"last\" }";

fn on_disk(window: &str) -> Subject {
    Subject::new(&job(window, RECORDS, &format!("{OFTEN}\n{ON_DISK}")), "stats")
}

pub(crate) fn tumbling() -> Subject {
    on_disk(TUMBLING)
}

/// Rows of tumbling windows.
pub(crate) fn rows_of_windows() -> Subject {
    Subject::new(&contents(TUMBLING, &format!("{OFTEN}\n{ON_DISK}")), "stats")
}

/// Rows of sessions.
pub(crate) fn rows_of_sessions() -> Subject {
    Subject::new(&contents(SESSION, &format!("{OFTEN}\n{ON_DISK}")), "stats")
}

pub(crate) fn sliding() -> Subject {
    on_disk(SLIDING)
}

pub(crate) fn sessions() -> Subject {
    on_disk(SESSION)
}

fn run_folder(subject: &Subject) -> PathBuf {
    subject.path("checkpoints/stats/run-00001")
}

/// Whether a checkpoint has windows or sessions in files.
fn is_on_disk((_, metadata): &(PathBuf, SnapshotMetadata)) -> bool {
    metadata.states().any(|state| state.form == StateForm::Store && state.name == "windows")
}

/// The same job with its state elsewhere.
fn keep(subject: &Subject, state: &str) {
    let path = subject.path("job.toml");
    let text = fs::read_to_string(&path).expect("it was written");
    let is_state = |line: &&str| !line.trim_start().starts_with("state = ");
    let without: Vec<&str> = text.lines().filter(is_state).collect();
    let text = without.join("\n").replace("[module.", &format!("{state}\n[module."));
    fs::write(path, text).expect("writable");
}

/// Runs until a checkpoint has windows in files, and kills it then.
fn until_on_disk(subject: &Subject) {
    until(subject, |complete| complete.last().is_some_and(is_on_disk));
}

/// The rows of a job that has room for everything.
fn in_memory(subject: &Subject) -> Vec<String> {
    keep(subject, IN_MEMORY);
    let rows = subject.undisturbed();
    assert!(!rows.is_empty());
    keep(subject, ON_DISK);
    rows
}

/// Each kind of window and session.
fn all() -> [(&'static str, Subject); 5] {
    [
        ("tumbling", tumbling()),
        ("sliding", sliding()),
        ("sessions", sessions()),
        ("rows of windows", rows_of_windows()),
        ("rows of sessions", rows_of_sessions()),
    ]
}

#[test]
fn windows_and_sessions_come_out_as_in_memory() {
    for (what, subject) in all() {
        let expected = in_memory(&subject);
        until_on_disk(&subject);
        subject.run();
        assert_same(&subject.rows(), &expected, what);
    }
}

#[test]
fn windows_and_sessions_go_from_one_backend_to_the_other_and_back() {
    for (what, subject) in all() {
        let expected = in_memory(&subject);
        until_on_disk(&subject);
        let last = complete(&run_folder(&subject)).pop().expect("a checkpoint").1.checkpoint;
        keep(&subject, IN_MEMORY);
        until(&subject, |complete| {
            complete.last().is_some_and(|newest| newest.1.checkpoint > last && !is_on_disk(newest))
        });
        keep(&subject, ON_DISK);
        subject.run_and_kill_at(3, Duration::from_millis(400));
        keep(&subject, IN_MEMORY);
        subject.run_at(1);
        assert_same(&subject.rows(), &expected, what);
    }
}

#[test]
fn windows_and_sessions_on_disk_go_from_one_parallelism_to_another() {
    for (what, subject) in all() {
        let expected = in_memory(&subject);
        for parallelism in [1, 2, 4, 3] {
            subject.run_and_kill_at(parallelism, Duration::from_millis(500));
        }
        subject.run_at(1);
        assert_same(&subject.rows(), &expected, what);
    }
}

#[test]
fn savepoints_of_windows_on_disk_are_for_anybody() {
    for (what, subject) in all() {
        let expected = in_memory(&subject);
        let file = subject.path("job.toml");
        let file = file.to_str().expect("paths of tests are text");
        let running = subject.start(&[file]);
        thread::sleep(Duration::from_millis(700));
        let saved = subject.path("saved");
        let saved = saved.to_str().expect("paths of tests are text");
        finish(&mut subject.about(&["savepoint", "--json", "--to", saved])).success();
        running.kill();
        let bytes = fs::read(Path::new(saved).join("_metadata")).expect("a savepoint");
        let metadata = SnapshotMetadata::decode(&bytes).expect("metadata that is whole");
        assert!(!metadata.states().any(|state| state.form == StateForm::Store), "{what}");
        let mut show = Command::new(env!("CARGO_BIN_EXE_millstream"));
        let shown = finish(show.args(["state", "show", saved, "stats", "windows", "--limit", "2"])).success();
        assert!(shown.stdout.contains("... and "), "{}", shown.stdout);
        keep(&subject, IN_MEMORY);
        subject.start(&[file, "--parallelism", "3", "--from", saved]).end().success();
        assert_same(&subject.rows(), &expected, what);
    }
}

/// What is in the store and what is in memory are shown as one state.
#[test]
fn windows_on_disk_are_shown() {
    let subject = tumbling();
    until_on_disk(&subject);
    let (folder, _) = complete(&run_folder(&subject)).pop().expect("a checkpoint");
    let mut show = Command::new(env!("CARGO_BIN_EXE_millstream"));
    let arguments = ["stats", "windows", "--format", "jsonl"];
    let shown = finish(show.args(["state", "show"]).arg(&folder).args(arguments)).success();
    let mut keys = BTreeSet::new();
    for line in shown.stdout.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let key = (row["window_start"].to_string(), row["key"].as_i64());
        assert!(row["count"].is_i64() && keys.insert(key), "twice: {row}");
    }
    assert!(keys.len() > 50_000, "{} keys", keys.len());
}

/// 16 MiB of memory, and new keys of one window until a checkpoint has four times as much state, compressed.
#[test]
fn a_window_may_be_larger_than_memory() {
    let grows = || {
        let text = job(LONG, 20_000_000, &format!("checkpoint = {{ interval = \"1s\" }}\n{ON_DISK}"));
        Subject::new(&text.replace("rate = 300000", "rate = 1000000"), "stats")
    };
    let (small, large) = (peak_until(&grows(), 8 << 20), peak_until(&grows(), 64 << 20));
    assert!(large < small + (96 << 20), "{large} bytes of memory, {small} with less state");
}

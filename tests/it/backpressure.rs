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

/// Waits for so many complete snapshots that are as they should be.
fn wait_for(subject: &Subject, many: usize, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let since = Instant::now();
    let mut found: Vec<Value> = Vec::new();
    while found.len() < many {
        assert!(since.elapsed() < Duration::from_secs(60), "{} are complete", found.len());
        thread::sleep(Duration::from_millis(5));
        let new = |line: &Value| found.iter().all(|known| known["id"] != line["id"]) && wanted(line);
        let new: Vec<Value> = complete(subject).into_iter().filter(new).collect();
        found.extend(new);
    }
    found
}

fn figure(line: &Value, name: &str) -> i64 {
    line[name].as_i64().unwrap_or_else(|| panic!("{name}: {line}"))
}

/// Whether rows were under way, not just a few that come at any time.
fn has_much_under_way(line: &Value) -> bool {
    figure(line, "in-flight-bytes") > 100_000
}

#[test]
fn an_unaligned_checkpoint_comes_through_where_an_aligned_one_waits() {
    let first = |checkpoint: &str, wanted: fn(&Value) -> bool| {
        let subject = slow(checkpoint);
        let job = subject.path("job.toml");
        let running = subject.start(&[job.to_str().expect("text")]);
        let first = wait_for(&subject, 2, wanted);
        running.kill();
        first
    };
    let took = |line: &Value| figure(line, "duration-ms");
    // Channels have to be full before anything waits: not at the first one, perhaps.
    let aligned = first("interval = \"200ms\"", |_| true);
    assert!(aligned.iter().all(|line| line["unaligned"] == false && figure(line, "in-flight-bytes") == 0));
    let aligned = aligned.iter().map(took).max().expect("two");
    for limit in ["", ", aligned-timeout = \"50ms\""] {
        let unaligned = first(&format!("interval = \"200ms\", unaligned = true{limit}"), has_much_under_way);
        assert!(unaligned.iter().all(|line| line["unaligned"] == true));
        let unaligned = unaligned.iter().map(took).min().expect("two");
        assert!(unaligned * 2 < aligned, "{unaligned} ms{limit}, and {aligned} ms aligned");
    }
}

#[test]
fn what_was_under_way_goes_on_at_any_parallelism() {
    let subject = slow(UNALIGNED);
    let expected = subject.undisturbed();
    let mut before = 0;
    for parallelism in ["1", "2", "4", "3"] {
        let job = subject.path("job.toml");
        let arguments = [job.to_str().expect("text"), "--parallelism", parallelism, "--from", "latest"];
        let running = subject.start(if before == 0 { &arguments[..3] } else { &arguments });
        // On one thread source and function take turns, and nothing piles up.
        let much = |line: &Value| parallelism == "1" || has_much_under_way(line);
        let found = wait_for(&subject, 1, |line| figure(line, "id") > before && much(line));
        running.kill();
        before = figure(&found[0], "id");
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
    wait_for(&subject, 1, |_| true);
    finish(&mut subject.about(&["stop", "--savepoint", "--to", saved])).success();
    assert_eq!(running.end().success().json()["end"], "stopped");
    let files = fs::read_dir(saved).expect("a folder").map(|file| file.expect("an entry").path());
    let has_channels = |bytes: Vec<u8>| bytes.windows(16).any(|b| b == b"numbers:0 -> cou");
    assert!(!files.into_iter().any(|file| has_channels(fs::read(file).expect("a file"))));
    subject.start(&[job, "--from", saved, "--parallelism", "3"]).end().success();
    assert_same(&subject.rows(), &expected, "from the savepoint");
}

/// The same with a function before that passes its rows on.
fn with_copies(copies: &str) -> Subject {
    let subject = slow(UNALIGNED);
    let job = fs::read_to_string(subject.path("job.toml")).expect("it was written");
    let two = format!(
        "[module.nexmark]\npath = \"${{MILLSTREAM_GUESTS}}/nexmark.wasm\"\n\
         [operator.copies]\nfunction = \"nexmark.q0\"\ninput = \"numbers\"\n{copies}\n[operator.counts]"
    );
    let job = job
        .replace("[operator.counts]", &two)
        .replace("input = \"numbers\"\n        key", "input = \"copies\"\n        key");
    fs::write(subject.path("job.toml"), job.replace("records = 300000", "records = 150000"))
        .expect("writable");
    subject
}

#[test]
fn rows_under_way_to_all_go_to_each_once() {
    let subject = with_copies("partition = \"broadcast\"");
    let expected = subject.undisturbed();
    let job = subject.path("job.toml");
    for at in 0..3 {
        let arguments = [job.to_str().expect("text"), "--from", "latest"];
        let running = subject.start(if at == 0 { &arguments[..1] } else { &arguments });
        let to_all =
            |line: &Value| has_much_under_way(line) && line["operators"]["copies"].as_u64() > Some(10_000);
        wait_for(&subject, 1, to_all);
        running.kill();
    }
    let refused = finish(subject.command().args(["--parallelism", "3"]));
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    let words = refused.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("under way to all 2 subtasks behind `numbers:0 -> copies:0 (broadcast)`"),
        "{words}"
    );
    subject.run();
    assert_same(&subject.rows(), &expected, "with broadcast rows");
}

#[test]
fn rows_under_way_to_an_operator_that_is_chained_by_now_reach_it() {
    let subject = with_copies("parallelism = 2");
    let file = subject.path("job.toml");
    let job = fs::read_to_string(&file).expect("it was written");
    let job = job.replace("records = 150000", "records = 300000");
    let wide = job.replace("connector = \"generator\"", "connector = \"generator\"\n        parallelism = 3");
    fs::write(&file, &wide).expect("writable");
    let expected = subject.undisturbed();
    let running = subject.start(&[file.to_str().expect("text")]);
    wait_for(&subject, 1, |line| {
        has_much_under_way(line) && line["operators"]["copies"].as_u64() > Some(10_000)
    });
    running.kill();
    fs::write(
        &file,
        wide.replace("input = \"numbers\"\nparallelism = 2", "input = \"numbers\"\nparallelism = 3"),
    )
    .expect("writable");
    subject.run();
    assert_same(&subject.rows(), &expected, "chained");
}

//! Jobs whose process dies between two steps of a checkpoint, of a commit or of a restore.

use std::{fs, process::Stdio};

use crate::{
    subject::{OFTEN, Subject, assert_same},
    support::{Output, finish},
};

/// Runs a job whose process dies the `times`th time that it comes to a place.
fn run_and_crash(subject: &Subject, point: &str, times: u32) -> Output {
    finish(subject.command().env("MILLSTREAM_CRASH_AT", format!("{point}:{times}")))
}

#[track_caller]
fn assert_crashed(output: &Output, point: &str, times: u32) {
    assert_eq!(output.code, None, "it did not come to `{point}` {times} times\n{}", output.stderr);
}

/// A job dies at a place the second time that it comes there, then at once, and has in the end what it has undisturbed.
fn crash(make: impl Fn() -> Subject, points: &[&str]) {
    let expected = make().undisturbed();
    assert!(!expected.is_empty());
    for point in points {
        let subject = make();
        for times in [2, 1] {
            assert_crashed(&run_and_crash(&subject, point, times), point, times);
        }
        subject.run();
        assert_same(&subject.rows(), &expected, point);
    }
}

/// One that writes all the time.
fn bids() -> Subject {
    let paced = ("records = 1000000", "records = 150000\nrate = 200000");
    Subject::example("nexmark-q1", &[OFTEN, paced])
}

/// One with some megabytes of keyed state, for a second.
fn windows() -> Subject {
    let job = r#"
        [job]
        name = "windows"
        parallelism = 2
        checkpoint = { interval = "5ms" }
        [module.bench]
        path = "${MILLSTREAM_GUESTS}/bench.wasm"
        [source.records]
        connector = "generator"
        kind = "bench-window"
        records = 150000
        rate = 150000
        time = { column = "ts", out-of-orderness = "1s" }
        [operator.stats]
        function = "bench.window"
        input = "records"
        key = ["key"]
        window = { tumbling = "365d", end = "window_end" }
        [sink.out]
        connector = "file"
        input = "stats"
        path = "${MILLSTREAM_OUT}/windows"
        format = "jsonl"
    "#;
    Subject::new(job, "windows")
}

#[test]
fn between_the_steps_of_a_checkpoint() {
    let points =
        ["before-state-is-stored", "state-is-stored", "before-snapshot-is-complete", "snapshot-is-complete"];
    crash(windows, &points);
}

#[test]
fn in_the_middle_of_a_deletion() {
    crash(windows, &["snapshot-deleted-in-part"]);
}

#[test]
fn between_the_steps_of_a_commit() {
    crash(bids, &["part-closed", "before-part-is-visible", "part-is-visible"]);
}

#[test]
fn during_a_restore() {
    for (point, make) in [("restored-in-part", windows as fn() -> Subject), ("sink-restored-by-half", bids)] {
        let subject = make();
        let expected = make().undisturbed();
        assert_crashed(&run_and_crash(&subject, "snapshot-is-complete", 2), "snapshot-is-complete", 2);
        for times in [1, 2] {
            assert_crashed(&run_and_crash(&subject, point, times), point, times);
        }
        subject.run();
        assert_same(&subject.rows(), &expected, point);
    }
}

#[test]
fn of_two_that_start_at_once_one_goes_on() {
    let subject = bids();
    assert_crashed(&run_and_crash(&subject, "snapshot-is-complete", 3), "snapshot-is-complete", 3);
    let start =
        || subject.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command");
    let both = [start(), start()];
    let mut codes = both.map(|mut child| child.wait().expect("a child").code());
    codes.sort();
    assert_eq!(codes, [Some(0), Some(3)]);
    assert_same(&subject.rows(), &subject.undisturbed(), "of the one that went on");
}

#[test]
fn windows_that_are_cut_otherwise_are_refused() {
    let subject = windows();
    let expected = subject.undisturbed();
    assert_crashed(&run_and_crash(&subject, "snapshot-is-complete", 4), "snapshot-is-complete", 4);
    let job = fs::read_to_string(subject.path("job.toml")).expect("it was written");
    let other = job.replace("tumbling = \"365d\"", "tumbling = \"30d\"");
    fs::write(subject.path("job.toml"), other).expect("a temporary folder can be written to");
    let output = finish(&mut subject.command());
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("fits no other"), "{}", output.stderr);
    fs::write(subject.path("job.toml"), job).expect("a temporary folder can be written to");
    subject.run();
    assert_same(&subject.rows(), &expected, "with the windows that it had");
}

#[test]
fn a_place_that_is_never_reached_changes_nothing() {
    let subject = Subject::example("delays", &[OFTEN]);
    assert_eq!(run_and_crash(&subject, "nowhere", 1).code, Some(0));
    assert_same(&subject.rows(), &subject.undisturbed(), "undisturbed");
}

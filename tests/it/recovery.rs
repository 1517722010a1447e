//! Jobs that are killed at any moment and go on where they were, with the rows of a run that nobody disturbed.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    backpressure::slow,
    on_disk,
    subject::{OFTEN, OFTEN_OVERTAKING, OFTEN_UNALIGNED, Subject, assert_same},
    support::finish,
    windows_on_disk,
};

/// A setting of the soak test.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: `{text}`: expected a number")))
}

/// Numbers that look random, the same ones for a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Kills a job again and again, each time a little later than it takes to start, and compares what it wrote in the end.
/// A round is the life of one job; there are as many as it takes to kill so often. `cargo xtask soak` asks for more
/// kills and other seeds.
fn kill(make: impl Fn() -> Subject, kills: u32, longest: u64, seed: u64) {
    let kills = number("MILLSTREAM_KILLS").map_or(kills, |kills| kills as u32);
    let seed = seed ^ number("MILLSTREAM_SEED").unwrap_or_default();
    let mut random = Random(seed.max(1));
    let expected = make().undisturbed();
    assert!(!expected.is_empty());
    let mut killed = 0;
    while killed < kills {
        let subject = make();
        let mut of_round = 0;
        while of_round < 8 && subject.run_and_kill(Duration::from_millis(20 + random.below(longest))) {
            of_round += 1;
        }
        killed += of_round;
        subject.run();
        assert_same(&subject.rows(), &expected, &format!("seed {seed}, after {of_round} kills"));
    }
}

#[test]
fn flights_killed_at_any_moment() {
    kill(|| Subject::example("delays", &[OFTEN]), 6, 300, 0x5eed_0001);
}

#[test]
fn sessions_killed_at_any_moment() {
    kill(|| Subject::example("rotations", &[OFTEN]), 6, 300, 0x5eed_0002);
}

#[test]
fn word_count_killed_at_any_moment() {
    let split = ("format = \"jsonl\"\nschema", "format = \"jsonl\"\nsplit-size = \"2KiB\"\nschema");
    kill(|| Subject::example("wordcount", &[OFTEN, split]), 6, 250, 0x5eed_0003);
}

#[test]
fn sliding_windows_killed_at_any_moment() {
    let paced = ("records = 1000000", "records = 150000\nrate = 200000");
    kill(|| Subject::example("nexmark-q5", &[OFTEN, paced]), 6, 900, 0x5eed_0004);
}

#[test]
fn unaligned_flights_killed_at_any_moment() {
    kill(|| Subject::example("delays", &[OFTEN_UNALIGNED]), 4, 300, 0x5eed_0011);
}

#[test]
fn unaligned_sessions_killed_at_any_moment() {
    kill(|| Subject::example("rotations", &[OFTEN_OVERTAKING]), 4, 300, 0x5eed_0012);
}

#[test]
fn unaligned_word_count_killed_at_any_moment() {
    let split = ("format = \"jsonl\"\nschema", "format = \"jsonl\"\nsplit-size = \"2KiB\"\nschema");
    kill(|| Subject::example("wordcount", &[OFTEN_UNALIGNED, split]), 4, 250, 0x5eed_0013);
}

#[test]
fn unaligned_sliding_windows_killed_at_any_moment() {
    let rows = ("records = 1000000", "records = 500000");
    kill(|| Subject::example("nexmark-q5", &[OFTEN_UNALIGNED, rows]), 6, 700, 0x5eed_0014);
}

/// Full channels: every checkpoint has megabytes of rows under way.
#[test]
fn slow_counts_killed_at_any_moment() {
    kill(|| slow("interval = \"20ms\", unaligned = true"), 6, 1500, 0x5eed_0015);
    kill(|| slow("interval = \"20ms\", unaligned = true, aligned-timeout = \"30ms\""), 4, 1500, 0x5eed_0016);
}

#[test]
fn state_on_disk_killed_at_any_moment() {
    kill(on_disk::subject, 6, 1500, 0x5eed_0005);
    kill(on_disk::overtaking, 6, 1500, 0x5eed_0017);
}

#[test]
fn windows_on_disk_killed_at_any_moment() {
    kill(windows_on_disk::tumbling, 5, 1200, 0x5eed_0019);
    kill(windows_on_disk::sliding, 5, 1200, 0x5eed_001a);
    kill(windows_on_disk::rows_of_windows, 5, 1200, 0x5eed_001b);
}

#[test]
fn sessions_on_disk_killed_at_any_moment() {
    kill(windows_on_disk::sessions, 5, 1200, 0x5eed_001c);
    kill(windows_on_disk::rows_of_sessions, 5, 1200, 0x5eed_001d);
}

#[test]
fn tumbling_windows_killed_at_any_moment() {
    let paced = ("records = 1000000", "records = 150000\nrate = 200000");
    kill(|| Subject::example("nexmark-q7", &[OFTEN, paced]), 6, 900, 0x5eed_0018);
}

#[test]
fn state_on_disk_goes_from_one_parallelism_to_another_and_leaves_no_files() {
    let subject = on_disk::subject();
    let expected = subject.undisturbed();
    for parallelism in [1, 2, 4, 3] {
        subject.run_and_kill_at(parallelism, Duration::from_millis(700));
    }
    let left = || fs::read_dir(subject.path("state")).expect("the job has made it").count();
    assert_eq!(left(), 1, "of the run that was killed last; it has taken away what those before had left");
    subject.run_at(1);
    assert_same(&subject.rows(), &expected, "at another parallelism");
    assert_eq!(left(), 0);
}

/// Tens of thousands of words, of which a few stand in the text between two checkpoints: these write what has changed.
fn much_state() -> Subject {
    let file = "connector = \"file\"\npath = \"../data/departures.jsonl\"\nformat = \"jsonl\"\nschema = { line = \"utf8\" }";
    let generated = "connector = \"generator\"\nkind = \"bench-wordcount\"\nvocabulary = 45000\nrecords = 30000\nrate = 12000";
    Subject::example("wordcount", &[OFTEN, (file, generated)])
}

#[test]
fn much_state_killed_at_any_moment() {
    kill(much_state, 6, 1500, 0x5eed_0006);
}

#[test]
fn checkpoints_of_much_state_build_on_each_other_and_are_restored_at_another_parallelism() {
    let subject = much_state();
    let run = subject.path("checkpoints/wordcount/run-00001");
    let builds_on_others = || {
        let newest = newest_complete(&run).map(|file| fs::read(file).expect("it was there"));
        newest.is_some_and(|metadata| metadata.windows(7).any(|bytes| bytes == b"../chk-"))
    };
    // On a busy machine the first checkpoint, which has everything, may be all there is time for.
    for _ in 0..10 {
        if builds_on_others() {
            break;
        }
        assert!(subject.run_and_kill(Duration::from_millis(1000)), "it came to its end");
    }
    assert!(builds_on_others(), "the newest one has everything itself");
    subject.run_and_kill_at(3, Duration::from_millis(700));
    subject.run_at(1);
    assert_same(&subject.rows(), &subject.undisturbed(), "at one, two and three");
}

#[test]
fn a_run_to_the_end_has_the_same_rows_and_takes_a_last_checkpoint() {
    let subject = Subject::example("delays", &[OFTEN]);
    let summary = subject.run().json();
    assert_same(&subject.rows(), &subject.undisturbed(), "with checkpoints");
    let checkpoints = &summary["checkpoints"];
    assert!(checkpoints["completed"].as_u64().is_some_and(|n| n >= 1), "{checkpoints}");
    assert_eq!(checkpoints["failed"], Value::from(0), "{checkpoints}");
    let again = subject.run();
    assert!(again.stderr.contains("going on from checkpoint"), "{}", again.stderr);
    assert_same(&subject.rows(), &subject.undisturbed(), "restored from its end");
}

#[test]
fn killed_and_restored_at_another_parallelism() {
    let paced = ("records = 1000000", "records = 200000\nrate = 150000");
    for example in ["nexmark-q5", "nexmark-q7"] {
        let subject = Subject::example(example, &[OFTEN, paced]);
        let expected = subject.undisturbed();
        for (at, parallelism) in [1, 2, 4, 3].into_iter().enumerate() {
            subject.run_and_kill_at(parallelism, Duration::from_millis(350 + 20 * at as u64));
        }
        subject.run_at(1);
        assert_same(&subject.rows(), &expected, example);
    }
}

#[test]
fn a_job_that_fails_for_a_while_goes_on_from_its_newest_checkpoint() {
    let strict = (
        "parallelism = 2",
        "parallelism = 2\ncheckpoint = { interval = \"5ms\", tolerable-failures = 0 }\n\
         restart = { strategy = \"fixed-delay\", attempts = 1000, delay = \"50ms\" }",
    );
    let paced = ("records = 1000000", "records = 200000\nrate = 100000");
    let subject = Subject::example("nexmark-q5", &[strict, paced]);
    let mut command = subject.command();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    thread::sleep(Duration::from_millis(900));
    // In the place of the folder with the checkpoints stands a file for a while.
    let (folder, away) = (subject.path("checkpoints/nexmark-q5"), subject.path("away"));
    fs::rename(&folder, &away).expect("the job has made it");
    fs::write(&folder, "in the way").expect("a temporary folder can be written to");
    thread::sleep(Duration::from_millis(300));
    fs::remove_file(&folder).expect("it was made just now");
    fs::rename(&away, &folder).expect("it was moved just now");
    let output = child.wait_with_output().expect("a child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let summary: Value = serde_json::from_str(stdout.lines().last().unwrap_or_default()).expect("a summary");
    let failures = summary["failures"].as_array().expect("it has failed");
    let cause = failures[0]["cause"].as_str().expect("a text");
    assert!(cause.contains("checkpoint") && cause.contains("checkpoints/nexmark-q5"), "{cause}");
    assert_same(&subject.rows(), &subject.undisturbed(), "after failures");
}

#[test]
fn a_job_that_fails_for_ever_is_given_up_after_its_attempts() {
    let job = r#"
        [job]
        name = "poisoned"
        restart = { strategy = "fixed-delay", attempts = 2, delay = "10ms" }
        [module.hostile]
        path = "${MILLSTREAM_GUESTS}/hostile.wasm"
        [source.numbers]
        connector = "generator"
        fields = { n = { kind = "sequence", start = 1 } }
        records = 1000
        [operator.victim]
        function = "hostile.poison"
        input = "numbers"
        [sink.out]
        connector = "file"
        input = "victim"
        path = "${MILLSTREAM_OUT}/poisoned"
        format = "jsonl"
    "#;
    let subject = Subject::new(job, "poisoned");
    let output = finish(&mut subject.command());
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    assert!(output.stderr.contains("the number 100 is poison"), "{}", output.stderr);
    assert_eq!(output.stderr.matches("is started again").count(), 2, "{}", output.stderr);
    assert!(subject.rows().is_empty(), "nothing of a failed job is visible");
}

#[test]
fn what_cannot_be_restored_is_refused_before_anything_runs() {
    let subject = Subject::example("delays", &[OFTEN]);
    subject.run();
    let job = fs::read_to_string(subject.path("job.toml")).expect("it was written");
    let refused = |job: String, words: &[&str]| {
        fs::write(subject.path("job.toml"), job).expect("a temporary folder can be written to");
        let output = finish(&mut subject.command());
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        let text = output.stderr.replace(['│', '\n'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words
            .iter()
            .for_each(|word| assert!(text.contains(word), "`{word}` is missing in\n{}", output.stderr));
    };
    refused(
        job.replace("name = \"delays\"", "name = \"delays\"\nmax-parallelism = 64"),
        &["128 key groups", "64", "max-parallelism = 128"],
    );
    refused(
        job.replace("[sink.report]", "[sink.elsewhere]"),
        &["`prepared` of `report` is missing", "--allow-dropped-state"],
    );
    let metadata = newest_metadata(&subject.path("checkpoints/delays/run-00001"));
    let bytes = fs::read(&metadata).expect("a checkpoint");
    fs::write(&metadata, &bytes[..bytes.len() / 2]).expect("a temporary folder can be written to");
    fs::write(subject.path("job.toml"), job).expect("a temporary folder can be written to");
    let output = finish(&mut subject.command());
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("cut short"), "{}", output.stderr);
}

fn newest_metadata(run: &Path) -> PathBuf {
    checkpoints(run).pop().expect("a checkpoint").join("_metadata")
}

/// The metadata of the newest checkpoint that has any: a later one may have been begun.
fn newest_complete(run: &Path) -> Option<PathBuf> {
    let metadata = checkpoints(run).into_iter().rev().map(|folder| folder.join("_metadata"));
    metadata.into_iter().find(|file| file.is_file())
}

/// The folders of checkpoints, by their number.
fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(run).into_iter().flatten();
    let number = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        name.strip_prefix("chk-").and_then(|n| n.parse::<u64>().ok())
    };
    let folders = folders.map(|f| f.expect("a folder that stays").path());
    let mut folders: Vec<PathBuf> = folders.filter(|p| number(p).is_some()).collect();
    folders.sort_by_key(number);
    folders
}

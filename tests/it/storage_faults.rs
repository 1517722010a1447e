//! Storage and sources that let a job down: full, gone for a while, read-only, shorter than they were.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    subject::{OFTEN, Subject, assert_same},
    support::{Output, command, finish, root},
};

/// Keyed state of some megabytes, which nothing leaves before the end; the sum over what leaves is in the summary.
fn growing(settings: &str) -> Subject {
    let job = r#"
        [job]
        name = "growing"
        parallelism = 2
        SETTINGS
        [module.bench]
        path = "${MILLSTREAM_GUESTS}/bench.wasm"
        [source.records]
        connector = "generator"
        kind = "bench-window"
        records = 300000
        rate = 200000
        time = { column = "ts", out-of-orderness = "1s" }
        [operator.stats]
        function = "bench.window"
        input = "records"
        key = ["key"]
        window = { tumbling = "365d", end = "window_end" }
        [sink.out]
        connector = "checksum"
        input = "stats"
    "#;
    Subject::new(&job.replace("SETTINGS", settings), "growing")
}

/// The sum over all rows.
#[track_caller]
fn sum(output: &Output) -> Value {
    let summary = output.json();
    let found = &summary["results"]["checksum"];
    assert!(found["rows"].as_u64().is_some_and(|rows| rows > 0), "{summary}");
    found.clone()
}

fn undisturbed() -> Value {
    sum(&finish(&mut growing("").command()).success())
}

/// The same command in a shell in which no file can grow beyond this many blocks, as on a disk that is full.
fn with_small_disk(command: &Command, blocks: u32) -> Command {
    let mut shell = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    shell
        .args(["-c", &script, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

#[test]
fn a_full_disk_fails_checkpoints_and_not_the_job() {
    let subject = growing("checkpoint = { interval = \"50ms\", tolerable-failures = 1000 }");
    let output = finish(&mut with_small_disk(&subject.command(), 100)).success();
    assert_eq!(sum(&output), undisturbed());
    let checkpoints = &output.json()["checkpoints"];
    assert!(checkpoints["failed"].as_u64().is_some_and(|failed| failed > 2), "{checkpoints}");
    assert!(output.stderr.contains("a checkpoint has failed"), "{}", output.stderr);
    assert!(output.stderr.contains("File too large"), "{}", output.stderr);
    assert!(output.stderr.contains("checkpoints/growing/run-00001/chk-"), "{}", output.stderr);
}

#[test]
fn what_was_stored_before_the_disk_was_full_stays_good() {
    let subject = growing("checkpoint = { interval = \"50ms\", tolerable-failures = 1000 }");
    assert!(subject.run_and_kill(Duration::from_millis(700)), "it takes longer than this");
    let mut full = with_small_disk(&subject.command(), 100);
    let mut child = full.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a shell");
    thread::sleep(Duration::from_millis(600));
    child.kill().expect("a child can be killed");
    let output = child.wait_with_output().expect("a child");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("going on from checkpoint"), "{stderr}");
    let output = subject.run();
    assert!(output.stderr.contains("going on from checkpoint"), "{}", output.stderr);
    assert_eq!(sum(&output), undisturbed());
}

#[test]
fn too_many_failed_checkpoints_fail_the_job() {
    let subject = growing("checkpoint = { interval = \"20ms\", tolerable-failures = 2 }");
    let output = finish(&mut with_small_disk(&subject.command(), 100));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("File too large"), "{}", output.stderr);
    assert!(output.stderr.contains("2 failures in a row are tolerated"), "{}", output.stderr);
}

#[test]
fn storage_that_is_away_for_a_while_costs_checkpoints_only() {
    let subject = growing("checkpoint = { interval = \"20ms\", tolerable-failures = 1000 }");
    let child = subject.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    thread::sleep(Duration::from_millis(500));
    // In the place of the folder with the checkpoints stands a file for a while.
    let (folder, away) = (subject.path("checkpoints/growing"), subject.path("away"));
    fs::rename(&folder, &away).expect("the job has made it");
    fs::write(&folder, "in the way").expect("a temporary folder can be written to");
    thread::sleep(Duration::from_millis(300));
    fs::remove_file(&folder).expect("it was made just now");
    fs::rename(&away, &folder).expect("it was moved just now");
    let output = child.wait_with_output().expect("a child");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let output =
        Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
    let output = output.success();
    assert_eq!(sum(&output), undisturbed());
    let checkpoints = &output.json()["checkpoints"];
    assert!(checkpoints["failed"].as_u64().is_some_and(|failed| failed > 2), "{checkpoints}");
    assert!(checkpoints["completed"].as_u64().is_some_and(|completed| completed > 2), "{checkpoints}");
    assert_eq!(output.json()["failures"].as_array().map_or(0, Vec::len), 0, "the job did not fail");
}

#[test]
fn parts_that_have_gone_since_are_missed() {
    let paced = ("records = 1000000", "records = 150000\nrate = 200000");
    let subject = Subject::example("nexmark-q1", &[OFTEN, paced]);
    let output = finish(subject.command().env("MILLSTREAM_CRASH_AT", "snapshot-is-complete:5"));
    assert_eq!(output.code, None, "{}", output.stderr);
    let (folder, away) = (subject.path("out/nexmark-q1"), subject.path("away"));
    fs::rename(&folder, &away).expect("the job has made it");
    let output = finish(&mut subject.command());
    assert!(matches!(output.code, Some(code) if code != 0), "{:?} {}", output.code, output.stderr);
    assert!(output.stderr.contains("would be lost"), "{}", output.stderr);
    fs::remove_dir_all(&folder).expect("it was made anew");
    fs::rename(&away, &folder).expect("it was moved");
    subject.run();
    assert_same(&subject.rows(), &subject.undisturbed(), "with the parts back");
}

#[test]
fn a_folder_that_takes_no_files_is_refused_before_anything_runs() {
    let subject = growing("checkpoint = { interval = \"20ms\" }");
    let taken = subject.path("taken");
    fs::write(&taken, "a file").expect("a temporary folder can be written to");
    for folder in [taken.join("below"), "/proc/millstream".into()] {
        let mut command = command(&subject.path("out"));
        command.arg("run").arg(subject.path("job.toml")).arg("--quiet").arg("--checkpoint-dir").arg(&folder);
        let output = finish(&mut command);
        assert_ne!(output.code, Some(0), "{}", output.stderr);
        let text = output.stderr.replace(['│', '\n'], " ");
        assert!(text.contains("make the folder"), "{}", output.stderr);
        assert!(!text.contains("panicked"), "{}", output.stderr);
    }
}

/// A job over flights in a file of its own, which has died with a part of it read.
fn half_read() -> (Subject, PathBuf) {
    let subject = Subject::example("delays", &[OFTEN]);
    let packed = root().join("examples/data/flights-2013-01.csv.gz");
    let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output().expect("gzip is there");
    let flights = subject.path("flights.csv");
    fs::write(&flights, unpacked.stdout).expect("a temporary folder can be written to");
    let job = fs::read_to_string(subject.path("job.toml")).expect("it was written");
    let path = format!("${{MILLSTREAM_FLIGHTS:-{}}}", packed.display());
    assert!(job.contains(&path), "{job}");
    let job = job.replace(&path, &flights.display().to_string());
    let small = job.replace(
        "connector = \"file\"\npath = \"/",
        "connector = \"file\"\nsplit-size = \"256KiB\"\npath = \"/",
    );
    fs::write(subject.path("job.toml"), small).expect("a temporary folder can be written to");
    let output = finish(subject.command().env("MILLSTREAM_CRASH_AT", "snapshot-is-complete:1"));
    assert_eq!(output.code, None, "{}", output.stderr);
    (subject, flights)
}

#[test]
fn a_source_that_has_shrunk_since_is_named() {
    let (subject, flights) = half_read();
    let bytes = fs::read(&flights).expect("it was written");
    fs::write(&flights, &bytes[..100_000]).expect("a temporary folder can be written to");
    let output = finish(&mut subject.command());
    assert!(matches!(output.code, Some(code) if code != 0), "{:?} {}", output.code, output.stderr);
    assert!(output.stderr.contains("flights.csv"), "{}", output.stderr);
    assert!(output.stderr.contains("the file has 100000 bytes"), "{}", output.stderr);
    // Once it is whole again, so is the job.
    fs::write(&flights, bytes).expect("a temporary folder can be written to");
    subject.run();
    assert_same(&subject.rows(), &subject.undisturbed(), "with the whole file");
}

#[test]
fn a_source_that_has_gone_since_is_named() {
    let (subject, flights) = half_read();
    let away = subject.path("away.csv");
    fs::rename(&flights, &away).expect("it was written");
    let output = finish(&mut subject.command());
    assert!(matches!(output.code, Some(code) if code != 0), "{:?} {}", output.code, output.stderr);
    assert!(output.stderr.contains("flights.csv"), "{}", output.stderr);
    fs::rename(&away, &flights).expect("it was moved");
    subject.run();
    assert_same(&subject.rows(), &subject.undisturbed(), "with the file back");
}

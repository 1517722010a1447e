//! Savepoints of running jobs, ways to stop them, and what goes on from there: always with the rows of a run that nobody
//! disturbed.

use std::{fs, path::Path, thread, time::Duration};

use serde_json::Value;

use crate::{
    subject::{Subject, assert_same, lines},
    support::{Output, command, finish},
};

/// Sliding windows over generated rows, which take some seconds.
fn paced() -> Subject {
    let often = ("parallelism = 2", "parallelism = 2\ncheckpoint = { interval = \"50ms\" }");
    Subject::example("nexmark-q5", &[often, ("records = 1000000", "records = 300000\nrate = 150000")])
}

fn wait(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

/// The path in what a command said of a snapshot.
fn path_of(output: &Output) -> String {
    output.json()["path"].as_str().expect("it names a path").to_owned()
}

#[test]
fn a_job_goes_on_from_savepoints_at_any_parallelism() {
    let subject = paced();
    let expected = subject.undisturbed();
    let job = subject.path("job.toml");
    let mut from: Option<String> = None;
    for (at, parallelism) in ["1", "2", "4", "3"].into_iter().enumerate() {
        let mut arguments = vec![text(&job), "--parallelism", parallelism];
        arguments.extend(from.as_deref().map(|path| ["--from", path]).into_iter().flatten());
        let running = subject.start(&arguments);
        wait(250);
        let folder = subject.path(&format!("saved-{at}"));
        let taken = finish(&mut subject.about(&["savepoint", "--json", "--to", text(&folder)])).success();
        assert_eq!(path_of(&taken), text(&folder));
        wait(100);
        running.kill();
        from = Some(path_of(&taken));
    }
    let from = from.expect("several were taken");
    subject.start(&[text(&job), "--parallelism", "1", "--from", &from]).end().success();
    assert_same(&subject.rows(), &expected, "from savepoint to savepoint");
}

#[test]
fn a_job_that_is_stopped_at_a_savepoint_goes_on_as_if_it_had_not_been() {
    let subject = paced();
    let expected = subject.undisturbed();
    let job = subject.path("job.toml");
    let running = subject.start(&[text(&job)]);
    wait(400);
    let stop = subject.about(&["stop", "nexmark-q5", "--savepoint"]).output().expect("the command");
    let said = String::from_utf8_lossy(&stop.stdout).into_owned();
    assert!(stop.status.success(), "{}", String::from_utf8_lossy(&stop.stderr));
    assert!(
        said.contains("savepoint-00001") && said.contains("--from ") && said.contains("stopped"),
        "{said}"
    );
    let end = running.end().success();
    let summary = end.json();
    assert_eq!(summary["end"], "stopped");
    let path = summary["stopped-at"]["path"].as_str().expect("it says where").to_owned();
    assert!(path.ends_with("nexmark-q5/savepoint-00001"), "{path}");
    let before = subject.rows();
    assert!(before.len() < expected.len(), "it was stopped in the middle");
    assert!(
        before.iter().all(|row| expected.binary_search(row).is_ok()),
        "no window has fired before its time"
    );
    let latest = subject.run();
    assert!(latest.stderr.contains("going on from savepoint"), "{}", latest.stderr);
    assert_same(&subject.rows(), &expected, "from the latest");
    subject.start(&[text(&job), "--from", &path]).end().success();
    assert_same(&subject.rows(), &expected, "from the savepoint by its name");
}

#[test]
fn a_savepoint_runs_where_there_is_nothing_else() {
    let subject = paced();
    let expected = subject.undisturbed();
    let running = subject.start(&[text(&subject.path("job.toml"))]);
    wait(400);
    let saved = subject.path("saved");
    finish(&mut subject.about(&["stop", "--savepoint", "--to", text(&saved)])).success();
    running.end().success();
    // Another machine has a copy of the savepoint, and neither job file nor modules nor rows.
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let copy = elsewhere.path().join("copy");
    fs::rename(&saved, &copy).expect("on the same disk");
    let out = elsewhere.path().join("out");
    let run = || {
        let mut command = command(&out);
        command.arg("run").arg("--from").arg(&copy).args(["--quiet", "--json", "--parallelism", "3"]);
        command.arg("--checkpoint-dir").arg(elsewhere.path().join("checkpoints"));
        command.env("MILLSTREAM_GUESTS", "/nowhere").current_dir(elsewhere.path());
        command
    };
    let end = finish(&mut run()).success();
    assert!(end.stderr.contains("going on from savepoint"), "{}", end.stderr);
    let mut rows = subject.rows();
    rows.extend(lines(&out.join("nexmark-q5")));
    rows.sort();
    assert_same(&rows, &expected, "from both machines");
    let module = fs::read_dir(&copy).expect("a folder").map(|entry| entry.expect("an entry").path());
    let module = module.into_iter().find(|path| path.extension().is_some_and(|e| e == "wasm"));
    let module = module.expect("it has a module");
    let mut bytes = fs::read(&module).expect("a file");
    bytes[100] ^= 1;
    fs::write(&module, &bytes).expect("writable");
    let refused = finish(&mut run());
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(refused.stderr.contains(".wasm: the module"), "{}", refused.stderr);
    assert!(refused.stderr.contains("do not have its hash"), "{}", refused.stderr);
}

#[test]
fn a_job_without_a_job_file_needs_a_savepoint() {
    let subject = Subject::example("delays", &[]);
    subject.run();
    let checkpoints = subject.path("checkpoints/delays/run-00001");
    let checkpoint = fs::read_dir(&checkpoints).expect("a run").map(|entry| entry.expect("an entry").path());
    let checkpoint = checkpoint.into_iter().find(|path| path.is_dir()).expect("a checkpoint");
    let refused = |from: &str, code: i32, words: &str| {
        let output = finish(subject.about(&["run"]).args(["--from", from]));
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        assert!(output.stderr.contains(words), "{}", output.stderr);
    };
    refused(text(&checkpoint), 3, "is a checkpoint, and only savepoints");
    refused("latest", 3, "name the job file");
    refused(text(&subject.path("out")), 4, "there is no snapshot");
}

#[test]
fn a_drained_job_has_fired_everything_and_is_at_its_end() {
    let subject = paced();
    let running = subject.start(&[text(&subject.path("job.toml"))]);
    wait(300);
    let stopped = finish(&mut subject.about(&["stop", "--savepoint", "--drain", "--json"])).success();
    let summary = running.end().success().json();
    assert_eq!(summary["stopped-at"]["path"], Value::from(path_of(&stopped)));
    let rows = subject.rows();
    assert!(!rows.is_empty(), "windows have fired");
    let again = subject.run();
    assert!(again.stderr.contains("going on from savepoint"), "{}", again.stderr);
    assert_same(&subject.rows(), &rows, "nothing is left to do");
}

#[test]
fn an_interrupted_job_goes_on_from_its_last_checkpoint() {
    let subject = paced();
    let expected = subject.undisturbed();
    for _ in 0..2 {
        let running = subject.start(&[text(&subject.path("job.toml")), "--from", "latest"]);
        wait(250);
        running.interrupt();
        let end = running.end().success();
        assert!(end.stderr.contains("stopping at a last checkpoint"), "{}", end.stderr);
        let summary = end.json();
        assert_eq!(
            (&summary["end"], &summary["stopped-at"]["savepoint"]),
            (&"stopped".into(), &false.into())
        );
        let rows = subject.rows();
        assert!(rows.iter().all(|row| expected.binary_search(row).is_ok()), "no window has fired early");
    }
    subject.run();
    assert_same(&subject.rows(), &expected, "after Ctrl-C");
}

#[test]
fn commands_say_why_they_cannot_be_carried_out() {
    let subject = paced();
    let refused = |arguments: &[&str], code: i32, words: &[&str]| {
        let output = finish(&mut subject.about(arguments));
        assert_eq!(output.code, Some(code), "{}", output.stderr);
        words.iter().for_each(|word| assert!(output.stderr.contains(word), "{word}: {}", output.stderr));
    };
    refused(&["savepoint"], 4, &["checkpoints", "there is no such folder"]);
    let running = subject.start(&[text(&subject.path("job.toml"))]);
    refused(&["savepoint", "q6"], 3, &["`q6` has no checkpoints", "nexmark-q5"]);
    let folder = subject.path("");
    refused(&["savepoint", "--to", text(&folder)], 1, &["the job goes on", "name an empty folder"]);
    let second = finish(&mut subject.command());
    assert_eq!(second.code, Some(3), "{}", second.stderr);
    assert!(second.stderr.contains("the job runs already"), "{}", second.stderr);
    running.kill();
    refused(&["stop", "--savepoint"], 4, &["has gone", "--from latest"]);
    refused(&["stop", "--to", "x"], 2, &["--savepoint"]);
    subject.run();
    refused(&["stop", "--savepoint"], 4, &["no job", "is running"]);
}

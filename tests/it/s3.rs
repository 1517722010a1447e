//! Checkpoints and savepoints in a bucket, of a server that speaks the protocol of S3.

mod server;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use self::server::{BUCKET, Server};
use crate::{
    subject::{OFTEN, Subject, assert_same},
    support::{Output, command, finish},
};

/// The command that runs a job with its checkpoints in the bucket, and goes on from the newest.
fn run(subject: &Subject, server: &Server) -> Command {
    run_in(subject, server, &place("jobs"))
}

fn run_in(subject: &Subject, server: &Server, place: &str) -> Command {
    let mut command = command(&subject.path("out"));
    command.arg("run").arg(subject.path("job.toml")).args(["--quiet", "--json", "--from", "latest"]);
    command.args(["--checkpoint-dir", place]).env_remove("MILLSTREAM_FLIGHTS");
    server.known_to(&mut command);
    command
}

fn place(prefix: &str) -> String {
    format!("s3://{BUCKET}/{prefix}")
}

/// A command about snapshots.
fn ask(subject: &Subject, server: &Server, arguments: &[&str]) -> Output {
    let mut command = command(&subject.path("out"));
    finish(server.known_to(command.args(arguments)))
}

fn start(subject: &Subject, server: &Server) -> Child {
    let mut command = run(subject, server);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command")
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn has(server: &Server, name: &str) -> bool {
    server.keys().iter().any(|key| key.ends_with(name))
}

fn end(child: Child) -> Output {
    let output = child.wait_with_output().expect("a child");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Sliding windows over rows that come for some seconds.
fn windows() -> Subject {
    let paced = ("records = 1000000", "records = 200000\nrate = 50000");
    let often = ("parallelism = 2", "parallelism = 2\ncheckpoint = { interval = \"100ms\" }");
    Subject::example("nexmark-q5", &[often, paced])
}

#[test]
fn a_job_that_is_killed_goes_on_from_its_bucket() {
    let (server, subject) = (Server::start(), windows());
    for checkpoint in [2, 5, 9] {
        let mut child = start(&subject, &server);
        wait_for("no checkpoint", || has(&server, &format!("/chk-{checkpoint}/_metadata")));
        child.kill().expect("a child can be killed");
        child.wait().expect("a child");
    }
    // Its process has gone, which is seen at once: nobody waits for the lease to expire.
    let begun = Instant::now();
    let output = finish(&mut run(&subject, &server)).success();
    assert!(begun.elapsed() < Duration::from_secs(15), "it took {:?}", begun.elapsed());
    assert!(output.stderr.contains("going on from checkpoint"), "{}", output.stderr);
    assert_same(&subject.rows(), &subject.undisturbed(), "with checkpoints in a bucket");
    let metadata = server.keys().iter().filter(|key| key.ends_with("_metadata")).count();
    assert_eq!(metadata, 3, "those that are retained by default");
    assert!(!has(&server, "run.lock"), "who ends lets go of the run");
    let listed = ask(&subject, &server, &["checkpoint", "list", &place("jobs")]).success();
    assert_eq!(listed.stdout.matches("chk-").count(), 3, "{}", listed.stdout);
}

#[test]
fn a_savepoint_in_a_bucket_has_all_that_it_takes() {
    let (server, subject) = (Server::start(), windows());
    let child = start(&subject, &server);
    wait_for("no checkpoint", || has(&server, "/chk-2/_metadata"));
    // Names are what they are, so that other tools find them.
    let to = place("kept/jörg ü%");
    let stop = ["stop", "--checkpoint-dir", &place("jobs"), "--savepoint", "--to", &to];
    let stopped = ask(&subject, &server, &stop).success();
    assert!(stopped.stdout.contains(&to), "{}", stopped.stdout);
    assert_eq!(end(child).code, Some(0));
    assert!(has(&server, "kept/jörg ü%/_metadata"), "{:?}", server.keys());
    let shown = ask(&subject, &server, &["state", "show", &to]).success();
    assert!(shown.stdout.contains("window"), "{}", shown.stdout);
    let again = ask(&subject, &server, &["stop", "--checkpoint-dir", &place("jobs")]);
    assert!(again.stderr.contains("no job that has its checkpoints in"), "{}", again.stderr);
    let mut command = run(&subject, &server);
    finish(&mut command).success();
    assert_same(&subject.rows(), &subject.undisturbed(), "from a savepoint in a bucket");
}

#[test]
fn one_process_at_a_time_has_a_run() {
    let (server, subject) = (Server::start(), windows());
    let child = start(&subject, &server);
    wait_for("no checkpoint", || has(&server, "/chk-2/_metadata"));
    let second = finish(&mut run(&subject, &server));
    assert_eq!(second.code, Some(3), "{}", second.stderr);
    assert!(second.stderr.contains("the job runs already"), "{}", second.stderr);
    // A process of another machine, which has believed that this one had gone.
    let lock = server.keys().into_iter().find(|key| key.ends_with("run.lock")).expect("it is held");
    server.put(&lock, "another machine\n7\n1\n1\n1\n");
    let output = end(child);
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("another process has taken"), "{}", output.stderr);
    assert_eq!(server.get(&lock).as_deref(), Some("another machine\n7\n1\n1\n1\n"), "it is not let go of");
    // That one says nothing any more.
    let begun = Instant::now();
    finish(&mut run(&subject, &server)).success();
    assert!(begun.elapsed() > Duration::from_secs(19), "it might have been alive");
    assert_same(&subject.rows(), &subject.undisturbed(), "by two processes");
}

#[test]
fn a_bucket_that_does_not_answer_for_a_while_costs_checkpoints_only() {
    let server = Server::start();
    let often =
        "parallelism = 2\ncheckpoint = { interval = \"100ms\", timeout = \"1s\", tolerable-failures = 100 }";
    let paced = ("records = 1000000", "records = 400000\nrate = 50000");
    let subject = Subject::example("nexmark-q5", &[("parallelism = 2", often), paced]);
    let child = start(&subject, &server);
    wait_for("no checkpoint", || has(&server, "/chk-2/_metadata"));
    server.hang(Duration::from_secs(4));
    let output = end(child).success();
    let checkpoints = &output.json()["checkpoints"];
    assert!(checkpoints["failed"].as_u64().is_some_and(|failed| failed >= 1), "{checkpoints}");
    assert!(checkpoints["completed"].as_u64().is_some_and(|completed| completed > 3), "{checkpoints}");
    assert_same(&subject.rows(), &subject.undisturbed(), "with a bucket that hung");
}

#[test]
fn what_is_wrong_with_a_bucket_is_said() {
    let (server, subject) = (Server::start(), Subject::example("delays", &[OFTEN]));
    let refused = |place: &str, words: &[&str]| {
        let begun = Instant::now();
        let output = finish(&mut run_in(&subject, &server, place));
        assert!(matches!(output.code, Some(3 | 4)), "{:?}: {}", output.code, output.stderr);
        let text = output.stderr.replace(['│', '\n'], " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        words.iter().for_each(|word| assert!(text.contains(word), "`{word}` is missing in {text}"));
        assert!(begun.elapsed() < Duration::from_secs(10), "{place} took {:?}", begun.elapsed());
    };
    refused("s3://no-such-bucket/jobs", &["s3://no-such-bucket/jobs", "NoSuchBucket"]);
    refused("s3://bucket", &["expected `s3://BUCKET/PREFIX`"]);
    refused("gs://bucket/jobs", &["there is no storage `gs:`"]);
    refused("s3://snapshots/a/../b", &["none of them empty, `.` or `..`"]);
    let mut command = run(&subject, &server);
    let output = finish(command.env("AWS_ENDPOINT_URL", "localhost:9000"));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(
        output.stderr.contains("AWS_ENDPOINT_URL") && !output.stderr.contains("panicked"),
        "{}",
        output.stderr
    );
    let missing = ask(&subject, &server, &["run", "--from", &place("jobs/none"), "--quiet"]);
    assert!(missing.stderr.contains("there is no snapshot"), "{}", missing.stderr);
}

#[test]
fn what_answers_and_stores_nothing_is_no_store() {
    let (server, subject) = (Server::start(), Subject::example("delays", &[OFTEN]));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || say_yes(stream));
        }
    });
    let mut command = run(&subject, &server);
    let output = finish(command.env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
}

/// Answers each request by a page.
fn say_yes(mut stream: TcpStream) {
    let mut request = [0; 1 << 16];
    while stream.read(&mut request).is_ok_and(|read| read > 0) {
        let page = "<html>welcome</html>";
        let head = format!(
            "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nLast-Modified: Mon, 30 Nov 2026 08:00:00 GMT\r\nContent-Length: {}\r\n\r\n{page}",
            page.len()
        );
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
    }
}

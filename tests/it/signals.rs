//! What signals do to a running job: the first one has it finish what it has read, the second one ends the process,
//! whatever it is doing.
#![cfg(unix)]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::support::command;

/// Numbers, ten a second of event time, for as long as anybody wants them.
const NUMBERS: &str = r#"
    [job]
    name = "signals"

    [source.numbers]
    connector = "generator"
    fields = { n = { kind = "sequence" }, at = { kind = "time", start = "2024-01-01T00:00:00Z", step = "100ms" } }
    time = { column = "at", out-of-orderness = "0s" }
"#;

/// A running job.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    _folder: TempDir,
}

impl Running {
    fn start(job: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let file = folder.path().join("job.toml");
        fs::write(&file, job).expect("a temporary folder can be written to");
        let mut command = command(folder.path());
        command.args(["run", "--quiet"]).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command was built with the tests");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        Self { child, stderr, _folder: folder }
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(kill.expect("there is `kill`").success());
    }

    /// Sends a signal and waits for the job to say what it does about it.
    fn stop(&mut self, name: &str) {
        self.signal(name);
        let mut said = String::new();
        while !said.contains("stopping") {
            let read = self.stderr.read_line(&mut said).expect("text");
            assert!(read > 0, "it ended instead of stopping: {said}");
        }
    }

    /// Waits for the end and says how long that took.
    fn end(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return (status, start.elapsed());
            }
            thread::sleep(Duration::from_millis(10));
        }
        self.child.kill().expect("a child can be killed");
        panic!("it still ran after {PATIENCE:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that fails leaves nothing behind; one that does not has seen its end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// How long a process may take to end, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it takes on one that does not: the grace of a cancelled job, and something for the rest.
const PROMPT: Duration = Duration::from_secs(20);

#[test]
fn one_signal_stops_a_job_that_would_never_end() {
    for signal in ["TERM", "INT"] {
        let sink = "rate = 1000\n[sink.out]\nconnector = \"print\"\ninput = \"numbers\"\n";
        let mut job = Running::start(&format!("{NUMBERS}{sink}"));
        let mut stdout = BufReader::new(job.child.stdout.take().expect("it is piped"));
        stdout.read_line(&mut String::new()).expect("a first row");
        let rest = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        job.stop(signal);
        let (status, _) = job.end();
        assert_eq!(status.code(), Some(0), "{signal}");
        let text = rest.join().expect("a thread that reads").expect("text");
        assert!(text.contains("signals stopped after"), "{text}");
    }
}

#[test]
fn a_second_signal_ends_a_write_that_nobody_reads() {
    let mut job =
        Running::start(&format!("{NUMBERS}[sink.out]\nconnector = \"print\"\ninput = \"numbers\"\n"));
    let mut stdout = BufReader::new(job.child.stdout.take().expect("it is piped"));
    stdout.read_line(&mut String::new()).expect("a first row");
    job.stop("TERM");
    job.signal("TERM");
    let (status, took) = job.end();
    assert_eq!(status.code(), Some(130));
    assert!(took < PROMPT, "{took:?}");
}

#[test]
fn a_second_signal_ends_windows_that_fire_for_hours() {
    let windows = r#"
        records = 100_000

        [module.conformance]
        path = "${MILLSTREAM_GUESTS}/conformance.wasm"

        [operator.sums]
        function = "conformance.summed"
        input = "numbers"
        key = ["n"]
        window = { sliding = "1d1ms", slide = "2s" }

        [sink.out]
        connector = "print"
        input = "sums"
    "#;
    let mut job = Running::start(&format!("{NUMBERS}{windows}"));
    let mut stdout = BufReader::new(job.child.stdout.take().expect("it is piped"));
    let (first, fires) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        while stdout.read_line(&mut line).is_ok_and(|read| read > 0) {
            let _ = first.send(());
            line.clear();
        }
    });
    fires.recv().expect("a window that fires");
    job.stop("INT");
    job.signal("INT");
    let (status, took) = job.end();
    assert_eq!(status.code(), Some(130));
    assert!(took < PROMPT, "{took:?}");
}

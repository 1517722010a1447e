//! A cluster of real processes on this machine: what it runs has the rows of a run in one process, whatever is killed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    subject::{Subject, assert_same, lines},
    support::{Output, command, finish},
};

/// A coordinator and its workers, with certificates and records of their own.
struct Cluster {
    folder: TempDir,
    address: String,
    coordinator: Option<Process>,
    /// How many coordinators there have been.
    started: u32,
    workers: Vec<Process>,
}

/// A process of a cluster, with a file for what it says.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(command: &mut Command, log: PathBuf) -> Self {
        let to = fs::File::create(&log).expect("a temporary folder can be written to");
        let child = command.stdout(Stdio::null()).stderr(to).spawn().expect("the command");
        Self { child, log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn wait_for(&mut self, text: &str) {
        let since = Instant::now();
        while !self.log().contains(text) {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none() && since.elapsed() < PATIENCE, "no `{text}`: {}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(&mut self) {
        // One that has ended cannot be killed.
        self.child.kill().ok();
        self.child.wait().expect("a child");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.workers.iter_mut().chain(&mut self.coordinator).for_each(Process::kill);
    }
}

impl Cluster {
    /// A cluster with workers of so many slots each.
    fn start(slots: &[u32]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let free = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free.expect("a free port").to_string();
        let mut cluster = Self { folder, address, coordinator: None, started: 0, workers: Vec::new() };
        cluster.start_coordinator();
        slots.iter().for_each(|slots| cluster.add_worker(*slots));
        cluster.wait_for_workers(slots.len());
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.path("out"));
        command.args(arguments).env("MILLSTREAM_CERTS", self.path("certs")).env_remove("MILLSTREAM_FLIGHTS");
        command.env("MILLSTREAM_COORDINATOR", &self.address);
        command
    }

    fn start_coordinator(&mut self) {
        self.started += 1;
        let state = self.path("state").display().to_string();
        let mut command = self.command(&["coordinator", "--bind", &self.address.clone(), "--dir", &state]);
        let log = self.path(&format!("coordinator-{}.log", self.started));
        let mut process = Process::start(&mut command, log);
        process.wait_for("coordinator listening");
        self.coordinator = Some(process);
    }

    fn add_worker(&mut self, slots: u32) {
        let log = self.path(&format!("worker-{}.log", self.workers.len()));
        let mut command = self.command(&["worker", "--slots", &slots.to_string()]);
        self.workers.push(Process::start(&mut command, log));
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        finish(self.command(&["--json"]).args(arguments))
    }

    fn answer(&self, arguments: &[&str]) -> Value {
        let output = self.ask(arguments).success();
        serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", output.stdout))
    }

    fn wait_for_workers(&self, count: usize) {
        self.until("workers", || self.answer(&["worker", "list"]).as_array().map_or(0, Vec::len) == count);
    }

    /// Submits a job with checkpoints, and gives its number.
    fn submit(&self, job: &Path, more: &[&str]) -> String {
        let checkpoints = self.path("checkpoints").display().to_string();
        let job = job.display().to_string();
        let arguments = ["job", "submit", &job, "--checkpoint-dir", &checkpoints];
        let answer = self.answer(&[&arguments[..], more].concat());
        answer["id"].as_str().expect("a number").to_owned()
    }

    fn job(&self, id: &str) -> Value {
        self.answer(&["job", "show", id])
    }

    fn state(&self, id: &str) -> String {
        self.job(id)["job"]["state"].as_str().expect("a state").to_owned()
    }

    fn until(&self, what: &str, mut there: impl FnMut() -> bool) {
        let since = Instant::now();
        while !there() {
            assert!(since.elapsed() < PATIENCE, "{what}: {}", self.logs());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until a job has finished.
    fn finish(&self, id: &str) {
        self.until("the end", || match self.state(id).as_str() {
            "finished" => true,
            "failed" | "cancelled" | "stopped" => panic!("{}: {}", self.job(id), self.logs()),
            _ => false,
        });
    }

    fn completed(&self, id: &str) -> u64 {
        let job = self.job(id);
        let completed = job["figures"]["checkpoints"]["completed"].as_u64().unwrap_or_default();
        assert!(job["job"]["state"] != "finished", "it has ended too soon: {job}");
        completed
    }

    fn rows(&self, sink: &str) -> Vec<String> {
        lines(&self.path("out").join(sink))
    }

    /// What all of them have said, for messages.
    fn logs(&self) -> String {
        let logs =
            fs::read_dir(self.folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path());
        let logs = logs.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        let text = |path: PathBuf| {
            format!("\n{}:\n{}", path.display(), fs::read_to_string(&path).unwrap_or_default())
        };
        logs.map(text).collect()
    }
}

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The paced windows of NEXMark q5, for some seconds.
fn paced() -> Subject {
    Subject::example("nexmark-q5", &[OFTEN, ("records = 1000000", "records = 150000\nrate = 20000")])
}

const OFTEN: (&str, &str) = (
    "parallelism = 2",
    "parallelism = 2\ncheckpoint = { interval = \"50ms\" }\nrestart = { strategy = \"fixed-delay\", attempts = 1000, delay = \"10ms\" }",
);

#[test]
fn several_workers_have_the_rows_of_one_process() {
    let cluster = Cluster::start(&[1, 1]);
    for example in ["delays", "wordcount", "rotations"] {
        let subject = Subject::example(example, &[]);
        let id = cluster.submit(&subject.path("job.toml"), &[]);
        cluster.finish(&id);
        assert_same(&cluster.rows(example), &subject.undisturbed(), example);
    }
    let subject = Subject::example("nexmark-q5", &[OFTEN, ("records = 1000000", "records = 200000")]);
    let id = cluster.submit(&subject.path("job.toml"), &[]);
    cluster.finish(&id);
    assert_same(&cluster.rows("nexmark-q5"), &subject.undisturbed(), "q5");
    assert_eq!(cluster.answer(&["job", "list"]).as_array().map(Vec::len), Some(4));
    let free: u64 = cluster
        .answer(&["worker", "list"])
        .as_array()
        .expect("workers")
        .iter()
        .map(|w| w["free"].as_u64().expect("a number"))
        .sum();
    assert_eq!(free, 2);
}

#[test]
fn a_worker_that_is_killed_is_replaced_by_another() {
    let mut cluster = Cluster::start(&[1, 1, 1]);
    let subject = paced();
    let expected = subject.undisturbed();
    let id = cluster.submit(&subject.path("job.toml"), &[]);
    for killed in 0..3 {
        let before = cluster.completed(&id);
        cluster.until("a checkpoint", || cluster.completed(&id) > before + 1);
        // One of those that run it; whichever that is, there is one more than it needs.
        cluster.workers[killed].kill();
        cluster.add_worker(1);
    }
    cluster.finish(&id);
    assert_same(&cluster.rows("nexmark-q5"), &expected, "three workers killed");
    let job = cluster.job(&id);
    let attempts = job["job"]["attempts"].as_u64().expect("a number");
    assert!(attempts >= 2, "{job}");
}

#[test]
fn a_coordinator_that_is_killed_goes_on_with_its_jobs() {
    let mut cluster = Cluster::start(&[2]);
    let subject = paced();
    let expected = subject.undisturbed();
    let id = cluster.submit(&subject.path("job.toml"), &[]);
    for _ in 0..2 {
        cluster.until("a checkpoint", || cluster.completed(&id) > 2);
        cluster.coordinator.take().expect("it runs").kill();
        cluster.start_coordinator();
    }
    cluster.finish(&id);
    assert_same(&cluster.rows("nexmark-q5"), &expected, "two coordinators killed");
}

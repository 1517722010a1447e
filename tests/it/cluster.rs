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
    recovery::{Random, number},
    subject::{Subject, assert_same, lines},
    support::{Output, command, finish},
};

/// A coordinator and its workers, with certificates and records of their own.
struct Cluster {
    folder: TempDir,
    address: String,
    coordinator: Option<Process>,
    /// How many processes there have been.
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

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill").args([signal, &id]).status().expect("a command of the system").success()
        );
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
        let mut process = self.new_coordinator();
        process.wait_for("coordinator listening");
        self.coordinator = Some(process);
    }

    fn new_coordinator(&mut self) -> Process {
        self.started += 1;
        let state = self.path("state").display().to_string();
        let mut command = self.command(&["coordinator", "--bind", &self.address.clone(), "--dir", &state]);
        Process::start(&mut command, self.path(&format!("coordinator-{}.log", self.started)))
    }

    fn add_worker(&mut self, slots: u32) {
        self.started += 1;
        let log = self.path(&format!("worker-{}.log", self.started));
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

const OFTEN: (&str, &str) = ("parallelism = 2", "parallelism = 2\ncheckpoint = { interval = \"50ms\" }");

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

/// Any worker, two of them, the coordinator, or all at once, again and again.
#[test]
fn clusters_killed_at_any_moment() {
    let kills = number("MILLSTREAM_KILLS").unwrap_or(5);
    let seed = 0x5eed_0030 ^ number("MILLSTREAM_SEED").unwrap_or_default();
    let mut random = Random(seed);
    let expected = paced().undisturbed();
    let mut killed = 0;
    while killed < kills {
        let mut cluster = Cluster::start(&[1, 1, 1]);
        let subject = paced();
        let id = cluster.submit(&subject.path("job.toml"), &[]);
        let of_round = (kills - killed).min(5);
        for _ in 0..of_round {
            thread::sleep(Duration::from_millis(100 + random.below(1200)));
            let what = random.below(4);
            let (workers, coordinator) = [(1, false), (2, false), (0, true), (3, true)][what as usize];
            for worker in 0..workers {
                cluster.workers[worker].kill();
            }
            if coordinator {
                cluster.coordinator.take().expect("it runs").kill();
                cluster.start_coordinator();
            }
            cluster.workers.drain(..workers);
            (0..workers).for_each(|_| cluster.add_worker(1));
        }
        cluster.finish(&id);
        assert_same(&cluster.rows("nexmark-q5"), &expected, &format!("seed {seed}, after {of_round} kills"));
        killed += of_round;
    }
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

#[test]
fn a_standby_takes_over() {
    let mut cluster = Cluster::start(&[1, 1]);
    let mut standby = cluster.new_coordinator();
    standby.wait_for("standing by");
    let subject = paced();
    let expected = subject.undisturbed();
    let id = cluster.submit(&subject.path("job.toml"), &[]);
    cluster.until("a checkpoint", || cluster.completed(&id) > 2);
    cluster.coordinator.take().expect("it runs").kill();
    let since = Instant::now();
    standby.wait_for("coordinator listening");
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    cluster.coordinator = Some(standby);
    cluster.finish(&id);
    assert_same(&cluster.rows("nexmark-q5"), &expected, "under another coordinator");
}

/// A worker that stands still is lost; when it goes on, others have its work, and nothing that it still does counts.
#[test]
fn a_worker_that_returns_disturbs_nothing() {
    let cluster = Cluster::start(&[1, 1, 1]);
    let subject = paced();
    let expected = subject.undisturbed();
    let id = cluster.submit(&subject.path("job.toml"), &[]);
    let attempts = || cluster.job(&id)["job"]["attempts"].as_u64().expect("a number");
    // Two of three run it, and each is stopped once.
    for stopped in &cluster.workers {
        let completed = cluster.completed(&id);
        cluster.until("a checkpoint", || cluster.completed(&id) > completed + 1);
        stopped.signal("-STOP");
        cluster.wait_for_workers(2);
        cluster.until("it runs", || cluster.state(&id) == "running");
        stopped.signal("-CONT");
        cluster.wait_for_workers(3);
    }
    assert!(attempts() > 1, "{}", cluster.job(&id));
    cluster.finish(&id);
    assert_same(&cluster.rows("nexmark-q5"), &expected, "workers that returned");
}

/// Between two checkpoints its parts are open: what it gives up when it goes on are those of an attempt of the past.
#[test]
fn a_worker_that_returns_takes_no_parts_away() {
    let cluster = Cluster::start(&[1, 1, 1]);
    let seldom = ("parallelism = 2", "parallelism = 2\ncheckpoint = { interval = \"3s\" }");
    let subject =
        Subject::example("nexmark-q1", &[seldom, ("records = 1000000", "records = 150000\nrate = 20000")]);
    let expected = subject.undisturbed();
    let id = cluster.submit(&subject.path("job.toml"), &[]);
    cluster.until("a checkpoint", || cluster.completed(&id) > 0);
    let attempts = || cluster.job(&id)["job"]["attempts"].as_u64().expect("a number");
    // Two of three run it.
    for stopped in &cluster.workers[..2] {
        if attempts() > 1 {
            break;
        }
        stopped.signal("-STOP");
        cluster.wait_for_workers(2);
        cluster.until("it runs", || cluster.state(&id) == "running");
        thread::sleep(Duration::from_millis(300));
        stopped.signal("-CONT");
        cluster.wait_for_workers(3);
    }
    assert!(attempts() > 1, "{}", cluster.job(&id));
    cluster.finish(&id);
    assert_same(&cluster.rows("nexmark-q1"), &expected, "a worker that returned");
}

#[test]
fn a_job_that_waits_for_slots_is_given_them_or_given_up() {
    let mut cluster = Cluster::start(&[1]);
    let subject = Subject::example("delays", &[]);
    let waits = cluster.submit(&subject.path("job.toml"), &[]);
    let many = Subject::example("wordcount", &[]);
    let other = cluster.submit(&many.path("job.toml"), &["--parallelism", "3"]);
    // Two that write into one folder would take each other's rows away.
    let same = cluster.submit(&subject.path("job.toml"), &[]);
    cluster.until("it is refused", || cluster.state(&same) == "failed");
    let problem = cluster.job(&same)["job"]["problem"].to_string();
    assert!(problem.contains("another job that runs writes into this folder"), "{problem}");
    cluster.until("it waits", || cluster.job(&waits)["job"]["problem"] == "waits for 2 slots, 1 are free");
    cluster.ask(&["job", "cancel", &other]).success();
    cluster.until("it is given up", || cluster.state(&other) == "cancelled");
    cluster.add_worker(1);
    cluster.finish(&waits);
    // The same number is the same job, whatever is handed in with it.
    let again = cluster.submit(&subject.path("job.toml"), &["--id", &waits]);
    assert_eq!(again, waits);
    let another = Subject::example("wordcount", &[]);
    let refused =
        cluster.ask(&["job", "submit", another.path("job.toml").to_str().expect("text"), "--id", &waits]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("there is another job"), "{}", refused.stderr);
    let ended = cluster.ask(&["job", "cancel", &waits]);
    assert!(ended.code == Some(3) && ended.stderr.contains("has ended already"), "{}", ended.stderr);
    assert_eq!(cluster.answer(&["job", "list"]).as_array().map(Vec::len), Some(3));
    assert_same(&cluster.rows("delays"), &subject.undisturbed(), "with slots");
}

#[test]
fn a_job_goes_on_from_its_savepoint_at_another_parallelism() {
    let cluster = Cluster::start(&[2, 2]);
    let subject = paced();
    let expected = subject.undisturbed();
    let id = cluster.submit(&subject.path("job.toml"), &[]);
    cluster.until("a checkpoint", || cluster.completed(&id) > 2);
    let savepoint = cluster.answer(&["job", "stop", &id, "--savepoint"]);
    cluster.until("it has stopped", || cluster.state(&id) == "stopped");
    let path = savepoint["path"].as_str().expect("a path");
    let next = cluster.submit(&subject.path("job.toml"), &["--from", path, "--parallelism", "4"]);
    cluster.finish(&next);
    assert_same(&cluster.rows("nexmark-q5"), &expected, "at another parallelism");
}

#[test]
fn who_is_not_of_the_cluster_is_told_so() {
    let cluster = Cluster::start(&[1]);
    let said = |certs: &Path| {
        let mut command = cluster.command(&["worker", "list"]);
        let output = finish(command.env("MILLSTREAM_CERTS", certs));
        assert_eq!(output.code, Some(4), "{}", output.stderr);
        output.stderr
    };
    let none = said(&cluster.path("none"));
    assert!(none.contains("there are no certificates in"), "{none}");
    let other = cluster.path("other");
    let other = other.to_str().expect("a path of text");
    cluster.ask(&["certs", "init", "--certs", other]).success();
    let stranger = said(Path::new(other));
    assert!(stranger.contains("is not the coordinator that was expected there"), "{stranger}");
    let worker = cluster.path("worker");
    cluster.ask(&["certs", "issue", "worker", "--to", worker.to_str().expect("a path of text")]).success();
    let not_a_client = said(&worker);
    assert!(not_a_client.contains("client.pem"), "{not_a_client}");
}

//! A job with a folder of its own, that tests run, kill and go on with.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::support::{Output, command, finish, root};

/// A job with a folder of its own for its file, its checkpoints and its rows.
pub(crate) struct Subject {
    folder: TempDir,
    sink: String,
}

impl Subject {
    /// An example, with its job file edited.
    pub(crate) fn example(name: &str, edits: &[(&str, &str)]) -> Self {
        let file = root().join("examples").join(name).join("job.toml");
        let mut text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let data = format!("{}/", root().join("examples/data").display());
        for (from, to) in edits {
            assert!(text.contains(from), "{name} has no `{from}`");
            text = text.replace(from, to);
        }
        // Those that generate their rows read no file.
        Self::new(&text.replace("../data/", &data), name)
    }

    pub(crate) fn new(job: &str, sink: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        fs::write(folder.path().join("job.toml"), job).expect("a temporary folder can be written to");
        Self { folder, sink: sink.to_owned() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command that runs it and goes on from its newest checkpoint.
    pub(crate) fn command(&self) -> Command {
        let mut command = command(&self.path("out"));
        command.arg("run").arg(self.path("job.toml")).args(["--quiet", "--json", "--from", "latest"]);
        command.arg("--checkpoint-dir").arg(self.path("checkpoints")).env_remove("MILLSTREAM_FLIGHTS");
        command
    }

    pub(crate) fn run(&self) -> Output {
        finish(&mut self.command()).success()
    }

    pub(crate) fn run_at(&self, parallelism: u32) -> Output {
        finish(self.command().args(["--parallelism", &parallelism.to_string()])).success()
    }

    /// Runs it without checkpoints.
    pub(crate) fn undisturbed(&self) -> Vec<String> {
        let job = fs::read_to_string(self.path("job.toml")).expect("it was written");
        let plain = job.lines().filter(|line| !line.trim_start().starts_with("checkpoint = "));
        let plain = plain.collect::<Vec<_>>().join("\n");
        fs::write(self.path("plain.toml"), plain).expect("a temporary folder can be written to");
        let mut command = command(&self.path("undisturbed"));
        command.arg("run").arg(self.path("plain.toml")).arg("--quiet").env_remove("MILLSTREAM_FLIGHTS");
        finish(&mut command).success();
        lines(&self.path("undisturbed").join(&self.sink))
    }

    /// Runs it and kills it after a while; false if it has come to its end before.
    pub(crate) fn run_and_kill(&self, after: Duration) -> bool {
        self.run_and_kill_at(2, after)
    }

    pub(crate) fn run_and_kill_at(&self, parallelism: u32, after: Duration) -> bool {
        let mut command = self.command();
        command.args(["--parallelism", &parallelism.to_string()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command");
        let started = Instant::now();
        while started.elapsed() < after {
            if let Some(status) = child.try_wait().expect("a child") {
                let output = child.wait_with_output().expect("a child");
                assert!(status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("a child can be killed");
        child.wait().expect("a child");
        true
    }

    /// Starts it with these arguments and waits until it takes commands.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let mut command = command(&self.path("out"));
        command.arg("run").args(["--quiet", "--json", "--checkpoint-dir"]).arg(self.path("checkpoints"));
        command.args(arguments).env_remove("MILLSTREAM_FLIGHTS");
        let running =
            Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command"));
        let process = format!("\"process\":{},", running.0.id());
        let since = Instant::now();
        while !self.controls().iter().any(|control| control.contains(&process)) {
            assert!(since.elapsed() < Duration::from_secs(60), "it does not start: {}", running.end().stderr);
            thread::sleep(Duration::from_millis(2));
        }
        running
    }

    /// What processes say of themselves in the folders of their runs.
    fn controls(&self) -> Vec<String> {
        let folders = |path: &Path| {
            let read = fs::read_dir(path).into_iter().flatten();
            read.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>()
        };
        let runs = folders(&self.path("checkpoints")).into_iter().flat_map(|job| folders(&job));
        runs.filter_map(|run| fs::read_to_string(run.join("run.control")).ok()).collect()
    }

    /// A command about its checkpoints.
    pub(crate) fn about(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.path("out"));
        command.args(arguments).arg("--checkpoint-dir").arg(self.path("checkpoints"));
        command
    }

    pub(crate) fn rows(&self) -> Vec<String> {
        lines(&self.path("out").join(&self.sink))
    }
}

/// A process that runs a job.
pub(crate) struct Running(Child);

impl Running {
    /// Ends it without a word.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("a child can be killed");
        self.0.wait().expect("a child");
    }

    /// What Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let id = self.0.id().to_string();
        assert!(
            Command::new("kill").args(["-INT", &id]).status().expect("a command of the system").success()
        );
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> Output {
        let output = self.0.wait_with_output().expect("a child");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The lines of all visible files in a folder, sorted.
pub(crate) fn lines(folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for file in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = file.expect("a folder that stays").path();
        if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    lines.sort();
    lines
}

#[track_caller]
pub(crate) fn assert_same(found: &[String], expected: &[String], what: &str) {
    let difference = found.iter().zip(expected).find(|(found, expected)| found != expected);
    assert!(
        found.len() == expected.len() && difference.is_none(),
        "{what}: {} rows found, {} expected; first difference {difference:?}",
        found.len(),
        expected.len()
    );
}

/// Checkpoints as often as they can be had.
pub(crate) const OFTEN: (&str, &str) =
    ("parallelism = 2", "parallelism = 2\ncheckpoint = { interval = \"5ms\" }");

/// The same, and barriers overtake rows: at once, or where a moment is not enough.
pub(crate) const OFTEN_UNALIGNED: (&str, &str) =
    ("parallelism = 2", "parallelism = 2\ncheckpoint = { interval = \"5ms\", unaligned = true }");
pub(crate) const OFTEN_OVERTAKING: (&str, &str) = (
    "parallelism = 2",
    "parallelism = 2\ncheckpoint = { interval = \"5ms\", unaligned = true, aligned-timeout = \"2ms\" }",
);

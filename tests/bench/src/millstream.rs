//! The workloads on Millstream: `millstream run` over a job file, as a user runs it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    measure::{Engine, Latency, Measurement},
    workload::{CHECKED, Checksum, End, Workload},
};

/// The command and the guests.
pub(crate) struct Millstream {
    command: PathBuf,
    guests: PathBuf,
    folder: TempDir,
}

/// How a job keeps its state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keeping {
    /// The time between two checkpoints; none without checkpoints.
    pub(crate) checkpoints: Option<String>,
    /// The memory that state may take, with RocksDB behind it; none for state in memory.
    pub(crate) rocksdb: Option<String>,
}

impl Keeping {
    /// The lines of `[job]` that say so, with all files in `folder`.
    fn settings(&self, folder: &str) -> String {
        let checkpoint = self.checkpoints.as_ref().map(|interval| {
            format!("checkpoint = {{ interval = \"{interval}\", dir = \"{folder}/checkpoints\" }}\n")
        });
        let state = self.rocksdb.as_ref().map(|memory| {
            format!("state = {{ backend = \"rocksdb\", memory = \"{memory}\", dir = \"{folder}/state\" }}\n")
        });
        checkpoint.into_iter().chain(state).collect()
    }
}

impl Millstream {
    /// Finds the command beside this program, and the guests in the folder of all builds.
    pub(crate) fn find() -> Result<Self> {
        let folder = env::current_exe()?.parent().context("this program has no folder")?.to_owned();
        let command = folder.join("millstream").with_extension(env::consts::EXE_EXTENSION);
        ensure!(
            command.is_file(),
            "there is no {}: run `cargo xtask bench`, which builds it",
            command.display()
        );
        let beside = || folder.parent().map(|target| target.join("guests"));
        let guests = env::var_os("MILLSTREAM_GUESTS").map(PathBuf::from).or_else(beside);
        let guests =
            guests.filter(|g| g.is_dir()).context("there are no guests: run `cargo xtask guests`")?;
        Ok(Self { command, guests, folder: TempDir::new()? })
    }

    /// The command.
    pub(crate) fn command(&self) -> &Path {
        &self.command
    }

    /// The folder of the guests.
    pub(crate) fn guests(&self) -> Result<&str> {
        self.guests.to_str().context("the guests' folder has a name that is not Unicode")
    }

    /// A folder for job files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a workload for some seconds.
    pub(crate) fn measure(
        &self,
        workload: &Workload,
        parallelism: u32,
        seconds: f64,
        keeping: &Keeping,
    ) -> Result<(Measurement, Summary)> {
        let summary = self.run(workload, parallelism, End::Seconds(seconds), false, keeping)?;
        let operators = summary["operators"].as_array().context("the summary has no operators")?;
        let source = operators.iter().find(|o| o["name"] == workload.source);
        let records = source.and_then(|s| s["records-in"].as_f64()).context("the summary has no source")?;
        let elapsed = number(&summary, "/elapsed-ms")? / 1000.0;
        let measurement = Measurement {
            workload: workload.name.to_owned(),
            engine: Engine::Millstream,
            parallelism,
            records_per_second: records / elapsed,
            cpu_seconds_per_million: number(&summary, "/process/cpu-seconds")? / records * 1e6,
            peak_rss_mb: number(&summary, "/process/peak-memory")? / 1e6,
            latency: latency(&summary),
        };
        Ok((measurement, Summary(summary)))
    }

    /// Runs a workload over a million records and adds its output up.
    pub(crate) fn checksum(&self, workload: &Workload, parallelism: u32) -> Result<Checksum> {
        let summary = self.run(workload, parallelism, End::Records(CHECKED), true, &Keeping::default())?;
        let found = summary.pointer("/results/checksum").cloned().context("the summary has no checksum")?;
        Ok(serde_json::from_value(found)?)
    }

    fn run(
        &self,
        workload: &Workload,
        parallelism: u32,
        end: End,
        checked: bool,
        keeping: &Keeping,
    ) -> Result<Value> {
        // What one run has stored is not what the next one finds.
        let files = TempDir::new_in(self.folder.path())?;
        let settings = keeping.settings(files.path().to_str().context("a folder whose name is not Unicode")?);
        let job = self.folder.path().join(format!("{}.toml", workload.name));
        fs::write(&job, workload.job(self.guests()?, end, checked, &settings))?;
        run_job(&self.command, &job, parallelism)
    }
}

/// What the command says at the end of a job.
pub(crate) struct Summary(Value);

impl Summary {
    /// How many checkpoints were complete, and how many failed.
    pub(crate) fn checkpoints(&self) -> Result<(u64, u64)> {
        let of = |name: &str| self.0.pointer(&format!("/checkpoints/{name}")).and_then(Value::as_u64);
        Ok((of("completed").context("the summary has no checkpoints")?, of("failed").unwrap_or_default()))
    }
}

fn run_job(command: &Path, job: &Path, parallelism: u32) -> Result<Value> {
    let mut run = Command::new(command);
    run.arg("run").arg(job).args(["--quiet", "--json", "--parallelism", &parallelism.to_string()]);
    let output =
        run.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run {}", command.display()))?;
    ensure!(output.status.success(), "{} failed: {}", job.display(), output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("no summary: {last}"))
}

fn latency(summary: &Value) -> Option<Latency> {
    let of = |name: &str| summary.pointer(&format!("/results/latency/from-emission/{name}"))?.as_f64();
    Some(Latency { p50_us: of("p50-us")?, p99_us: of("p99-us")?, p999_us: of("p999-us")? })
}

fn number(summary: &Value, path: &str) -> Result<f64> {
    summary.pointer(path).and_then(Value::as_f64).with_context(|| format!("the summary has no {path}"))
}

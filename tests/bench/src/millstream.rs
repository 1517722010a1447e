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
    pub(crate) fn measure(&self, workload: &Workload, parallelism: u32, seconds: f64) -> Result<Measurement> {
        let summary = self.run(workload, parallelism, End::Seconds(seconds), false)?;
        let operators = summary["operators"].as_array().context("the summary has no operators")?;
        let source = operators.iter().find(|o| o["name"] == workload.source);
        let records = source.and_then(|s| s["records-in"].as_f64()).context("the summary has no source")?;
        let elapsed = number(&summary, "/elapsed-ms")? / 1000.0;
        Ok(Measurement {
            workload: workload.name.to_owned(),
            engine: Engine::Millstream,
            parallelism,
            records_per_second: records / elapsed,
            cpu_seconds_per_million: number(&summary, "/process/cpu-seconds")? / records * 1e6,
            peak_rss_mb: number(&summary, "/process/peak-memory")? / 1e6,
            latency: latency(&summary),
        })
    }

    /// Runs a workload over a million records and adds its output up.
    pub(crate) fn checksum(&self, workload: &Workload, parallelism: u32) -> Result<Checksum> {
        let summary = self.run(workload, parallelism, End::Records(CHECKED), true)?;
        let found = summary.pointer("/results/checksum").cloned().context("the summary has no checksum")?;
        Ok(serde_json::from_value(found)?)
    }

    fn run(&self, workload: &Workload, parallelism: u32, end: End, checked: bool) -> Result<Value> {
        let job = self.folder.path().join(format!("{}.toml", workload.name));
        fs::write(&job, workload.job(self.guests()?, end, checked))?;
        run_job(&self.command, &job, parallelism)
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

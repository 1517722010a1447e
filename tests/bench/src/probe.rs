//! What is measured of a job that is not busy: the time to its first row, and its memory.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::{measure::median, millstream::Millstream, process::ProcessFigures, report};

/// One of these figures.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Probed {
    /// `start` or `idle`.
    pub(crate) workload: &'static str,
    engine: &'static str,
    parallelism: u32,
    /// From the start of `millstream run` to the first row that it prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_row_ms: Option<f64>,
    /// Resident once nothing more is to be set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    rss_mb: Option<f64>,
}

/// Their names.
pub(crate) const PROBES: [&str; 2] = ["start", "idle"];

/// Measures one of them: the median of some rounds.
pub(crate) fn measure(name: &str, millstream: &Millstream, rounds: u32) -> Result<Probed> {
    let (workload, job, once): (_, _, fn(Command) -> Result<f64>) = match name {
        "start" => ("start", include_str!("../jobs/start.toml"), first_row_ms),
        _ => ("idle", include_str!("../jobs/idle.toml"), idle_mb),
    };
    let file = millstream.folder().join(format!("{workload}.toml"));
    fs::write(&file, job.replace("{guests}", millstream.guests()?))?;
    let run = || {
        let mut run = Command::new(millstream.command());
        run.arg("run").arg(&file).arg("--quiet").stdin(Stdio::null()).stdout(Stdio::piped());
        once(run)
    };
    // The first run compiles the module, which those that count find in the cache.
    run()?;
    let figures = (0..rounds).map(|_| run()).collect::<Result<Vec<_>>>()?;
    let figure = Some(median(figures));
    let (first_row_ms, rss_mb) = if workload == "start" { (figure, None) } else { (None, figure) };
    Ok(Probed { workload, engine: "millstream", parallelism: 1, first_row_ms, rss_mb })
}

/// Prints a figure with its bar.
pub(crate) fn print(probed: &Probed) {
    if let Some(time) = probed.first_row_ms {
        report::print(&format!(
            "start: first row after {time:.0} ms, with compiled modules cached (bar: 300 ms)"
        ));
    }
    if let Some(memory) = probed.rss_mb {
        report::print(&format!("idle: {memory:.1} MB resident (bar: 60 MB)"));
    }
}

fn first_row_ms(mut run: Command) -> Result<f64> {
    let started = Instant::now();
    let mut job = Running(run.spawn().context("cannot run the command")?);
    let rows = job.0.stdout.take().context("the command has an output")?;
    let mut first = String::new();
    BufReader::new(rows).read_line(&mut first)?;
    ensure!(!first.is_empty(), "the job printed no row");
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn idle_mb(mut run: Command) -> Result<f64> {
    let job = Running(run.spawn().context("cannot run the command")?);
    thread::sleep(SETTLED);
    let figures = ProcessFigures::of(job.0.id()).context("this system does not say what a process uses")?;
    Ok(figures.memory as f64 / 1e6)
}

/// A job without end, which ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Until a job has set up everything.
const SETTLED: Duration = Duration::from_secs(3);

//! The workloads in native Rust: the same loop over the same batches, without an engine around it.
//!
//! The generator and the sinks are those of the jobs. Between them stands what a careful programmer would write by
//! hand for this one workload: no plan, no operators, no sandbox, state in tables made for it. How far a job is from
//! that is what the engine costs.

mod bids;
mod child;
mod counts;
mod lines;
mod records;
mod table;
mod windows;
mod words;
mod work;

use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

pub(crate) use child::{Child, Report, run_child};

use crate::{
    measure::{Engine, Measurement},
    workload::{CHECKED, Checksum, End, Workload},
};

/// This program, which runs a workload in a process of its own.
pub(crate) struct Native {
    program: PathBuf,
}

impl Native {
    /// Finds it.
    pub(crate) fn find() -> Result<Self> {
        Ok(Self { program: env::current_exe()? })
    }

    /// Whether there is a loop for a workload.
    pub(crate) fn has(workload: &Workload) -> bool {
        work::find(workload.name).is_some()
    }

    /// Runs a workload for some seconds.
    pub(crate) fn measure(&self, workload: &Workload, parallelism: u32, seconds: f64) -> Result<Measurement> {
        let report = self.run(workload, parallelism, End::Seconds(seconds), false)?;
        let records = report.records as f64;
        Ok(Measurement {
            workload: workload.name.to_owned(),
            engine: Engine::Native,
            parallelism,
            records_per_second: records / report.seconds,
            cpu_seconds_per_million: report.cpu_seconds / records * 1e6,
            peak_rss_mb: report.peak_memory as f64 / 1e6,
            latency: None,
        })
    }

    /// Runs a workload over a million records and adds its output up.
    pub(crate) fn checksum(&self, workload: &Workload, parallelism: u32) -> Result<Checksum> {
        let report = self.run(workload, parallelism, End::Records(CHECKED), true)?;
        report.checksum.context("the native loop reported no checksum")
    }

    fn run(&self, workload: &Workload, parallelism: u32, end: End, checked: bool) -> Result<Report> {
        let child = Child { workload: workload.name.to_owned(), parallelism, end, checked };
        let mut run = Command::new(&self.program);
        run.arg("--native").arg(serde_json::to_string(&child)?);
        let output = run.stderr(Stdio::inherit()).output().context("cannot run the native loop")?;
        ensure!(output.status.success(), "the native {} failed: {}", workload.name, output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(text.trim()).with_context(|| format!("no report: {text}"))
    }
}

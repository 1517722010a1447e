//! The workloads on Apache Flink: the jobs of `tests/bench/flink`.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    measure::{Engine, Latency, Measurement},
    workload::Workload,
};

/// Flink's jobs, compiled.
pub(crate) struct Flink {
    script: PathBuf,
    seconds: f64,
}

impl Flink {
    /// Finds the jobs, and builds them if that has not been done.
    pub(crate) fn find(seconds: f64) -> Result<Self> {
        let package = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask bench`")?;
        let folder = Path::new(&package).join("flink");
        let built = Command::new(folder.join("build.sh")).stdout(Stdio::null()).status();
        let built = built.context("cannot run tests/bench/flink/build.sh")?;
        ensure!(built.success(), "tests/bench/flink/build.sh failed: {built}");
        Ok(Self { script: folder.join("run.sh"), seconds })
    }

    /// Runs a workload, the first half of the time to warm up. Stateful ones take no checkpoints, as Millstream takes
    /// none.
    pub(crate) fn measure(&self, workload: &Workload, parallelism: u32) -> Result<Measurement> {
        let mut run = Command::new(&self.script);
        run.arg(workload.name).args(["--p", &parallelism.to_string(), "--checkpoint", "0"]);
        run.args([
            "--secs",
            &format!("{:.0}", self.seconds),
            "--warm",
            &format!("{:.0}", self.seconds / 2.0),
        ]);
        if workload.name == "latency" {
            run.args(["--rate", "50000", "--buffer-timeout", "1"]);
        }
        let output = run.stderr(Stdio::inherit()).output().context("cannot run tests/bench/flink/run.sh")?;
        ensure!(output.status.success(), "Flink's {} failed: {}", workload.name, output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        let line =
            text.lines().rfind(|l| l.starts_with('{')).with_context(|| format!("no result line: {text}"))?;
        let result: Value = serde_json::from_str(line)?;
        let of = |name: &str| result[name].as_f64().with_context(|| format!("no {name} in {line}"));
        Ok(Measurement {
            workload: workload.name.to_owned(),
            engine: Engine::Flink,
            parallelism,
            records_per_second: of("rec_s")?,
            cpu_seconds_per_million: of("cpu_s_per_Mrec")?,
            peak_rss_mb: of("rss_mb")?,
            latency: latency(&result["from_emit_us"]),
        })
    }
}

fn latency(measured: &Value) -> Option<Latency> {
    let of = |name: &str| measured[name].as_f64();
    Some(Latency { p50_us: of("p50")?, p99_us: of("p99")?, p999_us: of("p999")? })
}

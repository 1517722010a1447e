//! `cargo xtask bench`: the workloads on Millstream, in native Rust and, when asked for, on Apache Flink, interleaved in
//! one run.
//!
//! Each measurement is a process of its own, so that its processor time and memory are its own. Rounds go through all
//! engines before the next one starts, and the table has the medians: what else the machine does then falls on all.

mod flink;
mod measure;
mod millstream;
mod native;
mod pairs;
mod probe;
mod process;
mod report;
mod workload;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::{
    flink::Flink,
    measure::Measurement,
    millstream::{Keeping, Millstream},
    native::Native,
    workload::Workload,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the workloads, and compares with native Rust and Apache Flink.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Args {
    /// The workloads, `start` (time to the first row) and `idle` (memory of an idle job); all if none is named
    names: Vec<String>,
    /// Measure Apache Flink too (see tests/bench/flink/README.md)
    #[arg(long)]
    flink: bool,
    /// Parallelisms
    #[arg(long, short, value_delimiter = ',', default_value = "1,2")]
    parallelism: Vec<u32>,
    /// Seconds that each run of Millstream, and of the native loop, lasts
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Seconds that each run of Flink lasts; the first half warms it up
    #[arg(long, default_value_t = 40.0)]
    flink_seconds: f64,
    /// Rounds, of which the medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Compare the order-independent checksum of a million records with the expected one, and measure nothing
    #[arg(long)]
    check: bool,
    /// Take a checkpoint every so often, and measure what that costs: each round is a pair of runs, without and with
    #[arg(long, value_name = "INTERVAL", conflicts_with_all = ["flink", "check"])]
    checkpoints: Option<String>,
    /// Keep state in RocksDB, with so much memory for it
    #[arg(long, value_name = "MEMORY", conflicts_with = "check")]
    rocksdb: Option<String>,
    /// Write the measurements as a JSON array
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run a native loop in this process
    #[arg(long, hide = true)]
    native: Option<String>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if let Some(child) = &args.native {
        return native::run_child(child);
    }
    let (probes, workloads) = selected(&args.names)?;
    let (millstream, native) = (Millstream::find()?, Native::find()?);
    if args.check {
        return check(&workloads, args, &millstream, &native);
    }
    if let Some(interval) = &args.checkpoints {
        return pairs::run(&workloads, args, interval, &millstream);
    }
    let flink = args.flink.then(|| Flink::find(args.flink_seconds)).transpose()?;
    let medians = measure::medians(&rounds(&workloads, args, &millstream, &native, flink.as_ref())?);
    if !medians.is_empty() {
        report::print(&report::table(&medians));
    }
    let probed = probes.iter().map(|probe| probe::measure(probe, &millstream, args.rounds));
    let probed = probed.collect::<Result<Vec<_>>>()?;
    probed.iter().for_each(probe::print);
    let Some(path) = &args.json else { return Ok(()) };
    let mut all = medians.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    all.extend(probed.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?);
    std::fs::write(path, serde_json::to_string_pretty(&all)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

impl Args {
    fn keeping(&self) -> Keeping {
        Keeping { checkpoints: None, rocksdb: self.rocksdb.clone() }
    }
}

/// The probes and workloads of these names; all of both if there is none.
fn selected(names: &[String]) -> Result<(Vec<&'static str>, Vec<&'static Workload>)> {
    if names.is_empty() {
        return Ok((probe::PROBES.to_vec(), workload::select(names)?));
    }
    let (mut probes, mut workloads) = (Vec::new(), Vec::new());
    for name in names {
        match probe::PROBES.iter().find(|probe| *probe == name) {
            Some(probe) => probes.push(*probe),
            None => workloads.extend(workload::select(std::slice::from_ref(name))?),
        }
    }
    Ok((probes, workloads))
}

/// What every engine measures in every round.
fn rounds(
    workloads: &[&Workload],
    args: &Args,
    millstream: &Millstream,
    native: &Native,
    flink: Option<&Flink>,
) -> Result<Vec<Measurement>> {
    let mut measured = Vec::new();
    for round in 1..=args.rounds {
        for workload in workloads {
            for &parallelism in &args.parallelism {
                report::note(&format!("round {round} of {}: {} p={parallelism}", args.rounds, workload.name));
                measured.push(millstream.measure(workload, parallelism, args.seconds, &args.keeping())?.0);
                if Native::has(workload) {
                    measured.push(native.measure(workload, parallelism, args.seconds)?);
                }
                if let Some(flink) = flink {
                    measured.push(flink.measure(workload, parallelism)?);
                }
            }
        }
    }
    Ok(measured)
}

/// Runs the same plans as the measurements, over a million records into a sink that adds them up.
fn check(workloads: &[&Workload], args: &Args, millstream: &Millstream, native: &Native) -> Result<()> {
    let mut wrong = Vec::new();
    for workload in workloads {
        let Some(expected) = workload.expected()? else { continue };
        for &parallelism in &args.parallelism {
            let mut found = vec![("millstream", millstream.checksum(workload, parallelism)?)];
            if Native::has(workload) {
                found.push(("native", native.checksum(workload, parallelism)?));
            }
            for (engine, found) in found {
                let run = format!("{} p={parallelism} {engine}", workload.name);
                let verdict = if found == expected { "as expected" } else { "WRONG" };
                report::print(&format!("{run}: {found}, {verdict} ({expected})"));
                wrong.extend((found != expected).then_some(run));
            }
        }
    }
    ensure!(wrong.is_empty(), "checksums differ: {}", wrong.join(", "));
    Ok(())
}

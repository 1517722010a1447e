//! `cargo xtask bench`: the workloads on Millstream and, when asked for, on Apache Flink, interleaved in one run.
//!
//! Each measurement is a process of its own, so that its processor time and memory are its own. Rounds go through all
//! engines before the next one starts, and the table has the medians: what else the machine does then falls on all.

mod flink;
mod measure;
mod millstream;
mod report;
mod workload;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::{flink::Flink, millstream::Millstream, workload::Workload};

/// Measures the workloads, and compares with Apache Flink.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Args {
    /// The workloads; all if none is named
    names: Vec<String>,
    /// Measure Apache Flink too (see tests/bench/flink/README.md)
    #[arg(long)]
    flink: bool,
    /// Parallelisms
    #[arg(long, short, value_delimiter = ',', default_value = "1,2")]
    parallelism: Vec<u32>,
    /// Seconds that each run of Millstream lasts
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
    /// Write the measurements as a JSON array
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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
    let workloads = workload::select(&args.names)?;
    let millstream = Millstream::find()?;
    if args.check {
        return check(&workloads, args, &millstream);
    }
    let flink = args.flink.then(|| Flink::find(args.flink_seconds)).transpose()?;
    let mut measured = Vec::new();
    for round in 1..=args.rounds {
        for workload in &workloads {
            for &parallelism in &args.parallelism {
                report::note(&format!("round {round} of {}: {} p={parallelism}", args.rounds, workload.name));
                measured.push(millstream.measure(workload, parallelism, args.seconds)?);
                if let Some(flink) = &flink {
                    measured.push(flink.measure(workload, parallelism)?);
                }
            }
        }
    }
    let medians = measure::medians(&measured);
    report::print(&report::table(&medians));
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&medians)?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Runs the same plans as the measurements, over a million records into a sink that adds them up.
fn check(workloads: &[&Workload], args: &Args, millstream: &Millstream) -> Result<()> {
    let mut wrong = Vec::new();
    for workload in workloads {
        let Some(expected) = workload.expected()? else { continue };
        for &parallelism in &args.parallelism {
            let found = millstream.checksum(workload, parallelism)?;
            let same = found == expected;
            let verdict = if same { "as expected" } else { "WRONG" };
            report::print(&format!("{} p={parallelism}: {found}, {verdict} ({expected})", workload.name));
            if !same {
                wrong.push(format!("{} p={parallelism}", workload.name));
            }
        }
    }
    ensure!(wrong.is_empty(), "checksums differ: {}", wrong.join(", "));
    Ok(())
}

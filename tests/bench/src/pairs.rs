//! What checkpoints cost: pairs of runs that differ in nothing else.

use anyhow::{Context, Result, ensure};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::{
    Args,
    measure::median,
    millstream::{Keeping, Millstream},
    report,
    workload::Workload,
};

/// The pairs of one workload.
#[derive(Debug, Serialize)]
struct Cost {
    workload: &'static str,
    parallelism: u32,
    /// Processor time for a million records, with checkpoints over without, of each pair.
    ratios: Vec<f64>,
    /// The same for records per second.
    rates: Vec<f64>,
    /// Complete checkpoints of each run.
    completed: Vec<u64>,
    /// Those that failed, of all runs.
    failed: u64,
}

/// Measures each workload in as many pairs as there are rounds, and prints the medians of their ratios.
pub(crate) fn run(
    workloads: &[&Workload],
    args: &Args,
    interval: &str,
    millstream: &Millstream,
) -> Result<()> {
    let plain = args.keeping();
    let kept = Keeping { checkpoints: Some(interval.to_owned()), ..plain.clone() };
    let mut costs: Vec<Cost> = Vec::new();
    for round in 1..=args.rounds {
        for workload in workloads {
            for &parallelism in &args.parallelism {
                let name = workload.name;
                report::note(&format!("pair {round} of {}: {name} p={parallelism}", args.rounds));
                let at = costs.iter().position(|c| (c.workload, c.parallelism) == (name, parallelism));
                let at = at.unwrap_or_else(|| {
                    costs.push(Cost::new(name, parallelism));
                    costs.len() - 1
                });
                let measure = |keeping| millstream.measure(workload, parallelism, args.seconds, keeping);
                // Each comes first every other time, as whoever is first may find another machine.
                let (without, with) = match round % 2 {
                    0 => {
                        let with = measure(&kept)?;
                        (measure(&plain)?, with)
                    }
                    _ => (measure(&plain)?, measure(&kept)?),
                };
                let cost = &mut costs[at];
                let (completed, failed) = with.1.checkpoints()?;
                ensure!(completed > 1, "{name}: too short for `--checkpoints {interval}`: use `--seconds`");
                cost.ratios.push(with.0.cpu_seconds_per_million / without.0.cpu_seconds_per_million);
                cost.rates.push(with.0.records_per_second / without.0.records_per_second);
                cost.completed.push(completed);
                cost.failed += failed;
            }
        }
    }
    report::print(&table(&costs));
    let Some(path) = &args.json else { return Ok(()) };
    std::fs::write(path, serde_json::to_string_pretty(&costs)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

impl Cost {
    fn new(workload: &'static str, parallelism: u32) -> Self {
        let (ratios, rates, completed) = (Vec::new(), Vec::new(), Vec::new());
        Self { workload, parallelism, ratios, rates, completed, failed: 0 }
    }
}

fn table(costs: &[Cost]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "workload",
        "p",
        "pairs",
        "CPU with/without",
        "least",
        "most",
        "rate",
        "checkpoints",
        "failed",
    ]);
    for cost in costs {
        let ends = |pick: fn(f64, f64) -> f64| cost.ratios.iter().copied().reduce(pick).unwrap_or(f64::NAN);
        let completed = median(cost.completed.iter().map(|&n| n as f64).collect());
        table.add_row([
            cost.workload.to_owned(),
            cost.parallelism.to_string(),
            cost.ratios.len().to_string(),
            format!("{:.3}", median(cost.ratios.clone())),
            format!("{:.3}", ends(f64::min)),
            format!("{:.3}", ends(f64::max)),
            format!("{:.3}", median(cost.rates.clone())),
            format!("{completed:.0}"),
            cost.failed.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

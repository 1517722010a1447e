//! The table, and the only place that writes.

use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};

use crate::measure::{Engine, Measurement};

/// A line of results.
pub(crate) fn print(text: &str) {
    drop(writeln!(std::io::stdout(), "{text}"));
}

/// A line for whoever waits.
pub(crate) fn note(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// One row a workload, parallelism and engine; ratios are to Flink at the same parallelism.
pub(crate) fn table(measured: &[Measurement]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "workload",
        "p",
        "engine",
        "records/s",
        "CPU s/M",
        "RSS MB",
        "rate ratio",
        "CPU ratio",
        "p99 ms",
    ]);
    for m in measured {
        let flink = measured.iter().find(|f| {
            f.engine == Engine::Flink && (&f.workload, f.parallelism) == (&m.workload, m.parallelism)
        });
        let flink = flink.filter(|_| m.engine != Engine::Flink);
        let ratio = |figure: fn(&Measurement) -> f64| {
            flink.map(|f| format!("{:.2}", figure(m) / figure(f))).unwrap_or_default()
        };
        table.add_row([
            m.workload.clone(),
            m.parallelism.to_string(),
            format!("{:?}", m.engine).to_lowercase(),
            millions(m.records_per_second),
            format!("{:.4}", m.cpu_seconds_per_million),
            format!("{:.0}", m.peak_rss_mb),
            ratio(|m| m.records_per_second),
            ratio(|m| m.cpu_seconds_per_million),
            m.latency.map(|l| format!("{:.2}", l.p99_us / 1000.0)).unwrap_or_default(),
        ]);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn millions(rate: f64) -> String {
    if rate >= 1e6 { format!("{:.2} M", rate / 1e6) } else { format!("{:.0} k", rate / 1e3) }
}

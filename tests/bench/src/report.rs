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

/// One row a workload, parallelism and engine; ratios are to Flink and to native Rust at the same parallelism.
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
        "rate/Flink",
        "CPU/Flink",
        "rate/native",
        "p99 ms",
    ]);
    for m in measured {
        let of = |engine: Engine| {
            let same = |o: &&Measurement| (&o.workload, o.parallelism) == (&m.workload, m.parallelism);
            measured.iter().filter(|o| o.engine == engine && m.engine != engine).find(same)
        };
        let ratio = |other: Option<&Measurement>, figure: fn(&Measurement) -> f64| {
            other.map(|o| format!("{:.2}", figure(m) / figure(o))).unwrap_or_default()
        };
        let (flink, native) = (of(Engine::Flink), of(Engine::Native).filter(|_| m.engine != Engine::Flink));
        table.add_row([
            m.workload.clone(),
            m.parallelism.to_string(),
            format!("{:?}", m.engine).to_lowercase(),
            millions(m.records_per_second),
            format!("{:.4}", m.cpu_seconds_per_million),
            format!("{:.0}", m.peak_rss_mb),
            ratio(flink, |m| m.records_per_second),
            ratio(flink, |m| m.cpu_seconds_per_million),
            ratio(native, |m| m.records_per_second),
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

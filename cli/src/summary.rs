//! What is shown at the end of a job.

use comfy_table::{CellAlignment, Table, presets};
use millstream_task::TaskError;
use millstream_worker::{JobStatus, OperatorStatus};
use serde::Serialize;

/// The end of a job as a document.
#[derive(Serialize)]
pub(crate) struct Summary<'a> {
    end: &'static str,
    #[serde(flatten)]
    status: &'a JobStatus,
}

impl<'a> Summary<'a> {
    pub(crate) fn new(status: &'a JobStatus, stopped: bool) -> Self {
        Self { end: if stopped { "stopped" } else { "finished" }, status }
    }
}

/// A job that failed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the job failed")]
pub(crate) struct JobFailed {
    #[source]
    error: TaskError,
}

impl JobFailed {
    pub(crate) fn new(error: TaskError) -> Self {
        Self { error }
    }
}

/// The end of a job as a table.
pub(crate) fn table(status: &JobStatus, stopped: bool) -> String {
    let seconds = status.elapsed_ms as f64 / 1000.0;
    let how = if stopped { "stopped after" } else { "finished in" };
    let mut table = operators(&status.operators, status.elapsed_ms);
    for metrics in status.operators.iter().filter(|o| !o.metrics.is_empty()) {
        let text = metrics.metrics.iter().map(|(k, v)| format!("{k} = {v}")).collect::<Vec<_>>().join(", ");
        table.push_str(&format!("\n{}: {text}", metrics.name));
    }
    format!("{table}\n{} {how} {seconds:.2} s", status.job)
}

/// The figures of operators, one a row.
pub(crate) fn operators(operators: &[OperatorStatus], elapsed_ms: u64) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "operator",
        "p",
        "in",
        "out",
        "rows/s",
        "late",
        "rejected",
        "busy",
        "blocked",
        "watermark",
    ]);
    for o in operators {
        let rows = o.records_in.max(o.records_out);
        let rate = rows * 1000 / elapsed_ms.max(1);
        table.add_row([
            o.name.clone(),
            o.parallelism.to_string(),
            count(o.records_in),
            count(o.records_out),
            count(rate),
            count(o.late),
            count(o.rejected),
            format!("{:.0} %", o.busy * 100.0),
            format!("{:.0} %", o.backpressured * 100.0),
            o.watermark.map(time).unwrap_or_default(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// A number with its thousands apart.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|g| String::from_utf8_lossy(g).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

/// An event time as people write it.
fn time(millis: i64) -> String {
    use arrow_array::temporal_conversions::timestamp_ms_to_datetime;
    timestamp_ms_to_datetime(millis)
        .map_or_else(|| millis.to_string(), |t| t.format("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_can_be_read() {
        assert_eq!([0, 12, 1234, 1_234_567].map(count), ["0", "12", "1,234", "1,234,567"]);
        assert_eq!(time(1_357_034_400_000), "2013-01-01 10:00:00");
    }
}

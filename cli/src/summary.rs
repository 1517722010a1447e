//! What is shown at the end of a job.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use millstream_connectors::{Histogram, SinkResults};
use millstream_worker::{CheckpointStatus, JobStatus, OperatorStatus, SnapshotTaken};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::process::ProcessFigures;

/// The end of a job as a document.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Summary {
    end: End,
    #[serde(flatten)]
    status: JobStatus,
    /// The snapshot from which it can go on, if it was stopped at one.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<SnapshotTaken>,
    /// What sinks have found out.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    results: Map<String, Value>,
    /// What the process used; none where the system does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessFigures>,
}

/// Why a job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// Its input had an end.
    Finished,
    /// Somebody stopped it.
    Stopped,
}

impl Summary {
    pub(crate) fn new(
        status: JobStatus,
        results: &SinkResults,
        end: End,
        stopped_at: Option<SnapshotTaken>,
    ) -> Self {
        Self { end, status, stopped_at, results: results_json(results), process: ProcessFigures::now() }
    }
}

fn results_json(results: &SinkResults) -> Map<String, Value> {
    let checksums = results.checksums().into_iter();
    let checksums =
        checksums.map(|(name, c)| (name, json!({ "rows": c.rows, "checksum": format!("{:x}", c.sum) })));
    let latencies = results.latencies().into_iter();
    let latencies = latencies.map(|(name, l)| {
        (name, json!({ "from-emission": percentiles(&l.from_emission), "from-schedule": percentiles(&l.from_schedule) }))
    });
    checksums.chain(latencies).collect()
}

fn percentiles(histogram: &Histogram) -> Value {
    let micros = |share| histogram.quantile(share).map(|nanos| nanos as f64 / 1000.0);
    let (p50, p99, p999) = (micros(0.5), micros(0.99), micros(0.999));
    json!({ "count": histogram.count(), "p50-us": p50, "p99-us": p99, "p999-us": p999, "max-us": micros(1.0) })
}

/// A job that failed, or did not start.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the job failed")]
pub(crate) struct JobFailed {
    #[source]
    error: Box<dyn std::error::Error + Send + Sync>,
    #[help]
    help: Option<String>,
}

impl JobFailed {
    pub(crate) fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { error: Box::new(error), help: None }
    }

    /// The same with what to do, if that is known.
    pub(crate) fn with_help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = &self.status;
        writeln!(f, "{}", operators(&status.operators, status.elapsed_ms))?;
        for operator in status.operators.iter().filter(|o| !o.metrics.is_empty()) {
            let metrics = operator.metrics.iter().map(|(name, value)| format!("{name} = {value}"));
            writeln!(f, "{}: {}", operator.name, metrics.collect::<Vec<_>>().join(", "))?;
        }
        for operator in status.operators.iter().filter(|o| o.timers_dropped > 0) {
            let (name, dropped) = (&operator.name, operator.timers_dropped);
            writeln!(
                f,
                "{name}: {dropped} timers or windows by processing time were pending at the end and are lost"
            )?;
        }
        for operator in status.operators.iter().filter(|o| o.keys_expired > 0) {
            writeln!(f, "{}: the state of {} keys has expired", operator.name, count(operator.keys_expired))?;
        }
        for failure in &status.failures {
            let (attempt, after) = (failure.attempt, failure.after_ms as f64 / 1000.0);
            writeln!(f, "attempt {attempt} failed after {after:.1} s: {}", failure.cause)?;
        }
        if let Some(checkpoints) = &status.checkpoints {
            writeln!(f, "{}", checkpoint_line(checkpoints))?;
        }
        for (name, result) in &self.results {
            writeln!(f, "{name}: {result}")?;
        }
        if let Some(at) = &self.stopped_at {
            writeln!(f, "{}", stopped_line(at))?;
        }
        let how = if self.end == End::Stopped { "stopped after" } else { "finished in" };
        write!(f, "{} {how} {:.2} s", status.job, status.elapsed_ms as f64 / 1000.0)?;
        match &self.process {
            None => Ok(()),
            Some(used) => {
                let megabytes = used.peak_memory as f64 / 1e6;
                write!(f, ", {:.2} s of processor time, at most {megabytes:.0} MB", used.cpu_seconds)
            }
        }
    }
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

/// Where a job was stopped, and how it goes on.
fn stopped_line(at: &SnapshotTaken) -> String {
    match at.savepoint {
        true => format!("stopped at savepoint {} in {}: go on with `--from {}`", at.id, at.path, at.path),
        false => format!("stopped at checkpoint {} in {}: go on with `--from latest`", at.id, at.path),
    }
}

/// What became of a job's checkpoints.
pub(crate) fn checkpoint_line(checkpoints: &CheckpointStatus) -> String {
    let mut line = format!("checkpoints: {} complete, {} failed", checkpoints.completed, checkpoints.failed);
    if let Some(last) = &checkpoints.last {
        line +=
            &format!("; the last one, {}, took {} ms for {} bytes", last.id, last.took_ms, count(last.bytes));
        if let Some(in_flight) = last.in_flight_bytes {
            line += &format!(", {} of them in flight", count(in_flight));
        }
    }
    if checkpoints.savepoints > 0 {
        line += &format!("; {} savepoints", checkpoints.savepoints);
    }
    if let Some(failed) = &checkpoints.last_failed {
        line += &format!("; {} failed: {}", failed.id, failed.reason);
    }
    line
}

/// A number with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|g| String::from_utf8_lossy(g).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

/// An event time as people write it.
pub(crate) fn time(millis: i64) -> String {
    use arrow_array::temporal_conversions::timestamp_ms_to_datetime;
    timestamp_ms_to_datetime(millis)
        .map_or_else(|| millis.to_string(), |t| t.format("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use millstream_worker::{CompletedCheckpoint, FailedCheckpoint};

    use super::*;

    #[test]
    fn checkpoints_are_told_with_what_became_of_them() {
        let mut status = CheckpointStatus { completed: 3, ..CheckpointStatus::default() };
        assert_eq!(checkpoint_line(&status), "checkpoints: 3 complete, 0 failed");
        status.last = Some(CompletedCheckpoint { id: 7, took_ms: 12, bytes: 48_210, in_flight_bytes: None });
        status.last_failed = Some(FailedCheckpoint { id: 5, reason: "disk full".into() });
        (status.failed, status.savepoints) = (1, 2);
        let line = "checkpoints: 3 complete, 1 failed; the last one, 7, took 12 ms for 48,210 bytes; 2 savepoints; 5 failed: disk full";
        assert_eq!(checkpoint_line(&status), line);
        status.last =
            Some(CompletedCheckpoint { id: 8, took_ms: 3, bytes: 48_210, in_flight_bytes: Some(1200) });
        let line = checkpoint_line(&status);
        assert!(line.contains("8, took 3 ms for 48,210 bytes, 1,200 of them in flight;"), "{line}");
    }

    #[test]
    fn numbers_and_times_can_be_read() {
        assert_eq!([0, 12, 1234, 1_234_567].map(count), ["0", "12", "1,234", "1,234,567"]);
        assert_eq!(time(1_357_034_400_000), "2013-01-01 10:00:00");
    }
}

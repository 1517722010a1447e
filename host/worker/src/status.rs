//! How far a job is: what the progress view, the summary and `--json` show.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use millstream_operator::{MetricValue, OperatorMetrics};
use millstream_types::{MAX_WATERMARK, MIN_WATERMARK};
use serde::Serialize;

/// The figures of a job at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct JobStatus {
    /// The job's name.
    pub job: String,
    /// Time since its start, in milliseconds.
    pub elapsed_ms: u64,
    /// Its operators in topological order, all subtasks taken together.
    pub operators: Vec<OperatorStatus>,
}

/// The figures of one operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OperatorStatus {
    /// Its name in the job file.
    pub name: String,
    /// `source`, `operator` or `sink`.
    pub kind: &'static str,
    /// Number of its subtasks.
    pub parallelism: u32,
    /// Rows that came in.
    pub records_in: u64,
    /// Rows that went out.
    pub records_out: u64,
    /// Rows that came too late and had nowhere to go.
    pub late: u64,
    /// Rows that could not be used.
    pub rejected: u64,
    /// Processing-time timers that were pending when the input ended.
    pub timers_dropped: u64,
    /// Share of the time since the start that its subtasks worked, 0 to 1.
    pub busy: f64,
    /// Share of the time since the start that its subtasks waited for those behind them, 0 to 1.
    pub backpressured: f64,
    /// The slowest subtask's watermark, milliseconds since the epoch; none before the first and at the end of time.
    pub watermark: Option<i64>,
    /// What the user's function counts and measures.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub metrics: serde_json::Map<String, serde_json::Value>,
}

impl OperatorStatus {
    /// Takes the figures of an operator's subtasks together.
    pub(crate) fn of(
        name: &str,
        kind: &'static str,
        subtasks: &[Arc<OperatorMetrics>],
        elapsed: Duration,
    ) -> Self {
        let sum = |figure: fn(&OperatorMetrics) -> u64| subtasks.iter().map(|m| figure(m)).sum::<u64>();
        let whole = elapsed.as_nanos() as f64 * subtasks.len() as f64;
        let share = |nanos: u64| if whole > 0.0 { (nanos as f64 / whole).min(1.0) } else { 0.0 };
        let watermark = subtasks.iter().map(|m| m.watermark.load(Relaxed)).min();
        Self {
            name: name.to_owned(),
            kind,
            parallelism: subtasks.len() as u32,
            records_in: sum(|m| m.records_in.load(Relaxed)),
            records_out: sum(|m| m.records_out.load(Relaxed)),
            late: sum(|m| m.late_dropped.load(Relaxed)),
            rejected: sum(|m| m.rejected.load(Relaxed)),
            timers_dropped: sum(|m| m.timers_dropped.load(Relaxed)),
            busy: share(sum(|m| m.busy_nanos.load(Relaxed))),
            backpressured: share(sum(|m| m.backpressured_nanos.load(Relaxed))),
            watermark: watermark.filter(|w| *w != MIN_WATERMARK && *w != MAX_WATERMARK),
            metrics: user_metrics(subtasks),
        }
    }
}

/// Counters added up over the subtasks; of gauges the highest.
fn user_metrics(subtasks: &[Arc<OperatorMetrics>]) -> serde_json::Map<String, serde_json::Value> {
    let mut all = std::collections::BTreeMap::new();
    for (name, value) in subtasks.iter().flat_map(|m| m.user()) {
        all.entry(name).and_modify(|sum| *sum = together(*sum, value)).or_insert(value);
    }
    let json = |value| match value {
        MetricValue::Counter(count) => count.into(),
        MetricValue::Gauge(level) => level.into(),
    };
    all.into_iter().map(|(name, value)| (name, json(value))).collect()
}

fn together(a: MetricValue, b: MetricValue) -> MetricValue {
    match (a, b) {
        (MetricValue::Counter(a), MetricValue::Counter(b)) => MetricValue::Counter(a.saturating_add(b)),
        (MetricValue::Gauge(a), MetricValue::Gauge(b)) => MetricValue::Gauge(a.max(b)),
        (_, b) => b,
    }
}

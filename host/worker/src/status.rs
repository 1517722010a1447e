//! How far a job is: what the progress view, the summary and `--json` show.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::Duration,
};

use millstream_operator::{MetricValue, OperatorMetrics};
use millstream_task::TaskError;
use millstream_types::{Attempt, MAX_WATERMARK, MIN_WATERMARK};
use serde::Serialize;

use crate::SnapshotTaken;

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
    /// Its checkpoints, once there has been one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<CheckpointStatus>,
    /// The executions that have failed before the current one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedAttempt>,
}

/// What is known of the checkpoints of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CheckpointStatus {
    /// How many are complete.
    pub completed: u64,
    /// How many have failed.
    pub failed: u64,
    /// How many savepoints are complete, which do not count as checkpoints.
    #[serde(skip_serializing_if = "is_zero")]
    pub savepoints: u64,
    /// The last one that is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<CompletedCheckpoint>,
    /// The last one that has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed: Option<FailedCheckpoint>,
}

/// A checkpoint that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CompletedCheckpoint {
    /// Its number.
    pub id: u64,
    /// From its trigger until it was complete, in milliseconds.
    pub took_ms: u64,
    /// Bytes of state that it refers to.
    pub bytes: u64,
    /// Bytes of rows in channels among those; none if it was aligned all the way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight_bytes: Option<u64>,
}

/// A checkpoint that has failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailedCheckpoint {
    /// Its number.
    pub id: u64,
    /// Why.
    pub reason: String,
}

/// An execution of the job that has failed, after which it was started again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailedAttempt {
    /// Its number, the first one is 0.
    pub attempt: u32,
    /// When it failed, milliseconds after the start of the job.
    pub after_ms: u64,
    /// Why.
    pub cause: String,
}

/// Where those who run a job write down what whoever watches it reads. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    /// Of the current execution, by node and subtask.
    metrics: Vec<Vec<Arc<OperatorMetrics>>>,
    checkpoints: CheckpointStatus,
    failures: Vec<FailedAttempt>,
    /// Whether the last execution has failed and none has begun since.
    restarting: bool,
    /// Where the job has been stopped, if it has been.
    stopped: Option<SnapshotTaken>,
}

impl Board {
    pub(crate) fn started(&self, metrics: Vec<Vec<Arc<OperatorMetrics>>>) {
        let mut notes = self.lock();
        notes.metrics = metrics;
        notes.restarting = false;
    }

    pub(crate) fn checkpoint_completed(&self, checkpoint: CompletedCheckpoint) {
        let checkpoints = &mut self.lock().checkpoints;
        checkpoints.completed += 1;
        checkpoints.last = Some(checkpoint);
    }

    pub(crate) fn savepoint_completed(&self) {
        self.lock().checkpoints.savepoints += 1;
    }

    pub(crate) fn stopped_at(&self, snapshot: SnapshotTaken) {
        self.lock().stopped = Some(snapshot);
    }

    pub(crate) fn stopped(&self) -> Option<SnapshotTaken> {
        self.lock().stopped.clone()
    }

    pub(crate) fn checkpoint_failed(&self, id: u64, reason: String) {
        let checkpoints = &mut self.lock().checkpoints;
        checkpoints.failed += 1;
        checkpoints.last_failed = Some(FailedCheckpoint { id, reason });
    }

    pub(crate) fn failed(&self, attempt: Attempt, after: Duration, error: &TaskError) {
        let (attempt, after_ms) = (attempt.0, millis(after));
        let mut notes = self.lock();
        notes.failures.push(FailedAttempt { attempt, after_ms, cause: in_full(error) });
        notes.restarting = true;
    }

    pub(crate) fn is_restarting(&self) -> bool {
        self.lock().restarting
    }

    pub(crate) fn metrics(&self) -> Vec<Vec<Arc<OperatorMetrics>>> {
        self.lock().metrics.clone()
    }

    /// What is known of checkpoints; none before the first has come to an end.
    pub(crate) fn checkpoints(&self) -> Option<CheckpointStatus> {
        let known = |status: &CheckpointStatus| status.completed + status.failed + status.savepoints > 0;
        Some(self.lock().checkpoints.clone()).filter(known)
    }

    pub(crate) fn failures(&self) -> Vec<FailedAttempt> {
        self.lock().failures.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error with all that is behind it, on a line.
pub fn in_full(error: &dyn std::error::Error) -> String {
    let behind = std::iter::successors(error.source(), |cause| cause.source());
    behind.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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
    /// Keys whose state has expired.
    pub keys_expired: u64,
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
            keys_expired: sum(|m| m.keys_expired.load(Relaxed)),
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

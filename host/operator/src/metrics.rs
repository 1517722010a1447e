//! Figures of one operator subtask, written by its thread a batch at a time and read by whoever shows them.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
};

use millstream_types::MIN_WATERMARK;
use serde::{Deserialize, Serialize};

/// The figures of one operator in one subtask.
#[derive(Debug)]
pub struct OperatorMetrics {
    /// Rows that came in.
    pub records_in: AtomicU64,
    /// Rows that went out, on all ports.
    pub records_out: AtomicU64,
    /// Rows that came after their window had been cleared and had no late output to go to.
    pub late_dropped: AtomicU64,
    /// Rows refused by the function or unreadable, by whatever policy they were treated.
    pub rejected: AtomicU64,
    /// Processing-time timers that were pending at the end of input.
    pub timers_dropped: AtomicU64,
    /// Keys whose state has expired.
    pub keys_expired: AtomicU64,
    /// Time spent working.
    pub busy_nanos: AtomicU64,
    /// Time spent waiting for credit.
    pub backpressured_nanos: AtomicU64,
    /// The last watermark sent on.
    pub watermark: AtomicI64,
    user: Mutex<BTreeMap<String, MetricValue>>,
}

/// The figures of an operator subtask at one moment; each is that of [`OperatorMetrics`] with its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each stands in `OperatorMetrics` with what it is")]
pub struct Figures {
    pub records_in: u64,
    pub records_out: u64,
    pub late_dropped: u64,
    pub rejected: u64,
    pub timers_dropped: u64,
    pub keys_expired: u64,
    pub busy_nanos: u64,
    pub backpressured_nanos: u64,
    pub watermark: i64,
    /// The user's, by name.
    pub user: Vec<(String, MetricValue)>,
}

/// A figure that a user function keeps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum MetricValue {
    /// A sum that only grows.
    Counter(u64),
    /// The latest value.
    Gauge(f64),
}

impl Default for OperatorMetrics {
    fn default() -> Self {
        Self {
            records_in: AtomicU64::new(0),
            records_out: AtomicU64::new(0),
            late_dropped: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            timers_dropped: AtomicU64::new(0),
            keys_expired: AtomicU64::new(0),
            busy_nanos: AtomicU64::new(0),
            backpressured_nanos: AtomicU64::new(0),
            watermark: AtomicI64::new(MIN_WATERMARK),
            user: Mutex::default(),
        }
    }
}

impl OperatorMetrics {
    /// Adds to a figure.
    pub fn add(figure: &AtomicU64, by: u64) {
        figure.fetch_add(by, Relaxed);
    }

    /// Adds to a counter of the user's.
    pub fn count(&self, name: &str, by: u64) {
        let mut user = self.user.lock().unwrap_or_else(PoisonError::into_inner);
        match user.get_mut(name) {
            Some(MetricValue::Counter(sum)) => *sum = sum.saturating_add(by),
            _ => {
                user.insert(name.to_owned(), MetricValue::Counter(by));
            }
        }
    }

    /// Sets a gauge of the user's.
    pub fn gauge(&self, name: &str, value: f64) {
        self.user
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), MetricValue::Gauge(value));
    }

    /// All figures as they are now, to be taken elsewhere.
    pub fn figures(&self) -> Figures {
        Figures {
            records_in: self.records_in.load(Relaxed),
            records_out: self.records_out.load(Relaxed),
            late_dropped: self.late_dropped.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            timers_dropped: self.timers_dropped.load(Relaxed),
            keys_expired: self.keys_expired.load(Relaxed),
            busy_nanos: self.busy_nanos.load(Relaxed),
            backpressured_nanos: self.backpressured_nanos.load(Relaxed),
            watermark: self.watermark.load(Relaxed),
            user: self.user().into_iter().collect(),
        }
    }

    /// Takes over figures from where the operator runs.
    pub fn set(&self, figures: &Figures) {
        self.records_in.store(figures.records_in, Relaxed);
        self.records_out.store(figures.records_out, Relaxed);
        self.late_dropped.store(figures.late_dropped, Relaxed);
        self.rejected.store(figures.rejected, Relaxed);
        self.timers_dropped.store(figures.timers_dropped, Relaxed);
        self.keys_expired.store(figures.keys_expired, Relaxed);
        self.busy_nanos.store(figures.busy_nanos, Relaxed);
        self.backpressured_nanos.store(figures.backpressured_nanos, Relaxed);
        self.watermark.store(figures.watermark, Relaxed);
        *self.user.lock().unwrap_or_else(PoisonError::into_inner) = figures.user.iter().cloned().collect();
    }

    /// The user's figures by name.
    pub fn user(&self) -> BTreeMap<String, MetricValue> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

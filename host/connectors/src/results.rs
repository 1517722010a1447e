//! What sinks have found out by the end of a run, for who started it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::histogram::Histogram;

/// Results of the sinks of one run by their names, added up over subtasks. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SinkResults(Arc<Mutex<Results>>);

#[derive(Debug, Default)]
struct Results {
    checksums: BTreeMap<String, Checksum>,
    latencies: BTreeMap<String, Latencies>,
}

/// A sum over rows that does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    /// How many rows there were.
    pub rows: u64,
    /// The wrapping sum of the rows' mixed hashes.
    pub sum: u64,
}

/// How long records took, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// From when a record was made.
    pub from_emission: Histogram,
    /// From when it was due.
    pub from_schedule: Histogram,
}

impl SinkResults {
    /// The sums of the `checksum` sinks that have finished.
    pub fn checksums(&self) -> BTreeMap<String, Checksum> {
        self.with(|results| results.checksums.clone())
    }

    /// What the `latency` sinks that have finished measured.
    pub fn latencies(&self) -> BTreeMap<String, Latencies> {
        self.with(|results| results.latencies.clone())
    }

    pub(crate) fn add_checksum(&self, name: &str, found: Checksum) {
        self.with(|results| {
            let total = results.checksums.entry(name.to_owned()).or_default();
            total.rows += found.rows;
            total.sum = total.sum.wrapping_add(found.sum);
        });
    }

    pub(crate) fn add_latencies(&self, name: &str, found: &Latencies) {
        self.with(|results| {
            let total = results.latencies.entry(name.to_owned()).or_default();
            total.from_emission.add(&found.from_emission);
            total.from_schedule.add(&found.from_schedule);
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut Results) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

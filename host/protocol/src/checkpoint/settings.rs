//! When checkpoints are taken and how much may go wrong.

use std::time::Duration;

/// The settings of a job's checkpoints that decide when one is due and what becomes of those that fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointSettings {
    /// From one trigger to the next.
    pub interval: Duration,
    /// From the end of one to the next trigger, at least.
    pub min_pause: Duration,
    /// How long participants may take to acknowledge.
    pub timeout: Duration,
    /// How many may be under way at a time. With a pause between two it is one.
    pub max_concurrent: u32,
    /// How many may fail in a row before the job does.
    pub tolerable_failures: u32,
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            min_pause: Duration::ZERO,
            timeout: Duration::from_secs(600),
            max_concurrent: 1,
            tolerable_failures: 3,
        }
    }
}

impl CheckpointSettings {
    /// How many may really be under way at a time.
    pub(crate) fn concurrent(&self) -> usize {
        if self.min_pause.is_zero() { self.max_concurrent.max(1) as usize } else { 1 }
    }
}

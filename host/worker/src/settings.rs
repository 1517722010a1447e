//! What a job file says of checkpoints and restarts, as the machines that decide about them take it.

use std::time::Duration;

use millstream_graph::{CheckpointSpec, RestartSpec};
use millstream_protocol::{CheckpointSettings, RestartStrategy};
use millstream_storage::RunStore;

use crate::{CheckpointOptions, JobFileText};

impl CheckpointOptions {
    /// Checkpoints of a run, as the job file wants them.
    pub fn new(spec: &CheckpointSpec, run: RunStore, job_file: JobFileText) -> Self {
        let settings = CheckpointSettings {
            interval: spec.interval,
            min_pause: spec.min_pause,
            timeout: spec.timeout,
            max_concurrent: spec.max_concurrent,
            tolerable_failures: spec.tolerable_failures,
        };
        Self { settings, alignment: spec.alignment, retain: spec.retain, run, job_file }
    }
}

/// The restarts that a job on a cluster has if its job file does not say: where it takes checkpoints, for ever, as some
/// machine fails some time.
pub fn usual_on_cluster(takes_checkpoints: bool) -> RestartStrategy {
    match takes_checkpoints {
        false => RestartStrategy::None,
        true => RestartStrategy::ExponentialDelay {
            initial: Duration::from_millis(500),
            max: Duration::from_secs(60),
            multiplier: 1.5,
            reset_after: Duration::from_secs(600),
        },
    }
}

/// The restarts that the job file wants.
pub fn restart_strategy(spec: RestartSpec) -> RestartStrategy {
    match spec {
        RestartSpec::None => RestartStrategy::None,
        RestartSpec::FixedDelay { attempts, delay } => RestartStrategy::FixedDelay { attempts, delay },
        RestartSpec::ExponentialDelay { initial, max, reset_after } => {
            RestartStrategy::ExponentialDelay { initial, max, multiplier: 1.5, reset_after }
        }
        RestartSpec::FailureRate { failures, interval, delay } => {
            RestartStrategy::FailureRate { failures, interval, delay }
        }
    }
}

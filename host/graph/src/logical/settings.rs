//! What holds for a whole job.

use std::time::Duration;

use millstream_types::{Alignment, JobName, Limits, MaxParallelism};

/// The `[job]` table with its defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSettings {
    /// The job's name.
    pub name: JobName,
    /// Subtasks of each node that does not say otherwise.
    pub parallelism: u32,
    /// Number of key groups.
    pub max_parallelism: MaxParallelism,
    /// How long a row may wait in an exchange for others; zero sends each batch on at once.
    pub buffer_timeout: Duration,
    /// How often sources send watermarks while they read.
    pub watermark_interval: Duration,
    /// How checkpoints are taken, if any are.
    pub checkpoint: Option<CheckpointSpec>,
    /// Whether and when it is started again after a failure; none if the job file does not say.
    pub restart: Option<RestartSpec>,
    /// Where the state of keys is kept.
    pub state: StateSpec,
    /// For how long what process functions keep for a key stays when nothing is about the key, unless an operator says
    /// otherwise; none for ever.
    pub state_ttl: Option<Duration>,
}

/// The `state` table of a job with its defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateSpec {
    /// In memory.
    Memory,
    /// In memory as far as it has room, and in RocksDB.
    RocksDb {
        /// How much memory it may take in all, in bytes.
        memory: u64,
        /// Where its files go while the job runs; relative paths start at the job file.
        dir: Option<String>,
    },
}

impl StateSpec {
    /// The memory for RocksDB where the job does not say.
    pub const MEMORY: u64 = 512_000_000;

    /// `memory` or `rocksdb`.
    pub fn name(&self) -> &'static str {
        match self {
            StateSpec::Memory => "memory",
            StateSpec::RocksDb { .. } => "rocksdb",
        }
    }
}

/// The `restart` table of a job with its defaults filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartSpec {
    /// It is not.
    None,
    /// So many times, after a while.
    FixedDelay {
        /// How many times.
        attempts: u32,
        /// How long it waits.
        delay: Duration,
    },
    /// For ever, after a while that grows.
    ExponentialDelay {
        /// How long it waits the first time.
        initial: Duration,
        /// How long it waits at most.
        max: Duration,
        /// After how long without a failure the wait is the first one again.
        reset_after: Duration,
    },
    /// Unless it fails too often within a span.
    FailureRate {
        /// How many times it may fail.
        failures: u32,
        /// The span.
        interval: Duration,
        /// How long it waits.
        delay: Duration,
    },
}

/// The `checkpoint` table of a job with its defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointSpec {
    /// From one trigger to the next.
    pub interval: Duration,
    /// Where they go; relative paths start at the job file.
    pub dir: Option<String>,
    /// What a subtask does with channels that have passed a barrier: `mode`, `unaligned` and `aligned-timeout` of the
    /// table.
    pub alignment: Alignment,
    /// From the end of one to the next trigger, at least.
    pub min_pause: Duration,
    /// How long a checkpoint may take.
    pub timeout: Duration,
    /// How many may be under way at a time.
    pub max_concurrent: u32,
    /// How many may fail in a row before the job does.
    pub tolerable_failures: u32,
    /// How many complete ones are kept.
    pub retain: usize,
}

impl Default for CheckpointSpec {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            dir: None,
            alignment: Alignment::Aligned,
            min_pause: Duration::ZERO,
            timeout: Duration::from_secs(600),
            max_concurrent: 1,
            tolerable_failures: 3,
            retain: 3,
        }
    }
}

impl JobSettings {
    /// [`JobSettings::buffer_timeout`] of a job that does not say.
    pub const BUFFER_TIMEOUT: Duration = Duration::from_millis(1);
    /// [`JobSettings::watermark_interval`] of a job that does not say.
    pub const WATERMARK_INTERVAL: Duration = Duration::from_millis(200);

    /// What to do where more subtasks are wanted than there may be.
    pub(crate) const RAISE_MAX_PARALLELISM: &str =
        "raise `max-parallelism` in [job]; it then stays so for the life of the job";

    /// The most subtasks that a node can have, why, and what to do about it.
    pub(crate) fn most_subtasks(&self) -> (u32, &'static str, Option<&'static str>) {
        match u32::from(self.max_parallelism.groups()) {
            groups if groups <= Limits::SUBTASKS => {
                (groups, "the job's max-parallelism", Some(Self::RAISE_MAX_PARALLELISM))
            }
            _ => {
                (Limits::SUBTASKS, "for each subtask is a thread of the one process that runs the job", None)
            }
        }
    }
}

//! What holds for a whole job.

use std::time::Duration;

use millstream_types::{JobName, Limits, MaxParallelism};

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
}

impl JobSettings {
    /// [`JobSettings::buffer_timeout`] of a job that does not say.
    pub const BUFFER_TIMEOUT: Duration = Duration::from_millis(1);
    /// [`JobSettings::watermark_interval`] of a job that does not say.
    pub const WATERMARK_INTERVAL: Duration = Duration::from_millis(200);

    /// The most subtasks that a node can have, and why.
    pub(crate) fn most_subtasks(&self) -> (u32, &'static str) {
        match u32::from(self.max_parallelism.groups()) {
            groups if groups <= Limits::SUBTASKS => (groups, "the job's max-parallelism"),
            _ => (Limits::SUBTASKS, "for each subtask is a thread of the one process that runs the job"),
        }
    }
}

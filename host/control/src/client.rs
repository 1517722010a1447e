//! Between a client and a coordinator.

use serde::{Deserialize, Serialize};

use crate::{JobId, JobText};

/// What a client wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Run a job. The same number again is the same job.
    Submit {
        /// The job.
        id: JobId,
        /// Its job file.
        job: JobText,
        /// Its modules by the names that the job file gives them.
        modules: Vec<(String, Vec<u8>)>,
        /// Where it goes on from, in the place of its beginning.
        from: Option<String>,
        /// Whether state that the job does not have any more may be dropped.
        allow_dropped_state: bool,
        /// Where its checkpoints go, in the place of what its job file says.
        checkpoint_dir: Option<String>,
    },
    /// All jobs, also those that have ended.
    Jobs,
    /// One job with all that is known of it.
    Job(String),
    /// Give a job up.
    Cancel(String),
    /// Take a savepoint, or stop at a snapshot.
    Snapshot {
        /// The job.
        job: String,
        /// What is wanted.
        of: SnapshotOf,
        /// Where a savepoint goes, in the place of one beside the job's checkpoints.
        to: Option<String>,
    },
    /// All workers.
    Workers,
}

/// What snapshot is wanted, and what a job does behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotOf {
    /// A savepoint, and the job goes on.
    Savepoint,
    /// A savepoint at which the job stops.
    StopSavepoint,
    /// A savepoint at the end: the input ends here, so that all windows fire.
    DrainSavepoint,
    /// A last checkpoint at which the job stops.
    StopCheckpoint,
    /// None: the input ends here, and what has been read is processed.
    Drain,
}

/// What a client is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The job runs, or will once there are slots.
    Submitted(JobId),
    /// The jobs.
    Jobs(Vec<JobInfo>),
    /// A job: what is known of it, and its figures as a JSON document.
    Job(Box<JobInfo>, String),
    /// It will be done.
    Done,
    /// The snapshot is complete.
    Snapshot(SnapshotInfo),
    /// The workers.
    Workers(Vec<WorkerInfo>),
    /// It will not be done, and why.
    Refused {
        /// Why, and what to do.
        reason: String,
        /// Whether what was asked for is at fault, and not what is around it.
        invalid: bool,
    },
}

/// A job in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JobInfo {
    /// Its number.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: JobState,
    /// When it was submitted, milliseconds since the epoch.
    pub submitted: i64,
    /// When it ended, if it has.
    pub ended: Option<i64>,
    /// How often it has been started.
    pub attempts: u32,
    /// How many slots it takes.
    pub slots: u32,
    /// What last went wrong, if anything has.
    pub problem: Option<String>,
    /// Where its checkpoints are, if it takes any.
    pub checkpoints: Option<String>,
}

/// How a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// It waits for slots, or is being started.
    Starting,
    /// It runs.
    Running,
    /// It has failed and is started again.
    Restarting,
    /// All its input has been processed.
    Finished,
    /// It was stopped at a snapshot.
    Stopped,
    /// It was cancelled.
    Cancelled,
    /// It failed for good.
    Failed,
}

/// A snapshot that is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SnapshotInfo {
    /// Its folder.
    pub path: String,
    /// Its number.
    pub id: u64,
    /// Whether it is a savepoint.
    pub savepoint: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// How many bytes of state it has.
    pub bytes: u64,
}

/// A worker in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkerInfo {
    /// Its number.
    pub id: String,
    /// Where other workers reach it.
    pub address: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process there.
    pub process: u32,
    /// How many slots it has.
    pub slots: u32,
    /// How many of them are free.
    pub free: u32,
}

//! Builds the tasks of a job out of its graphs and runs them: all of them in one process, or those that a coordinator deploys
//! to a worker.
//!
//! [`Modules`] compiles modules and answers what planning asks of them, [`Catalog`] answers for the connectors.
//! [`Job::start`] makes the channels, builds each subtask on the thread of its slot, and hands out a [`Job`] that can
//! be watched, stopped and cancelled.

mod agent;
mod catalog;
mod modules;

mod build;
mod checkpoint;
mod control;
mod edges;
mod execution;
mod job;
mod program;
mod remote;
mod restore;
mod settings;
mod status;
mod stepped;
mod tasks;

pub use agent::{Worker, WorkerOptions, connect_coordinator};
pub use build::BuildError;
pub use catalog::Catalog;
pub use checkpoint::{CheckpointOptions, JobFileText, Notice, Participation, Stored};
pub use control::{JobControl, SnapshotError, SnapshotTaken};
pub use job::{Job, JobEnd, JobMonitor, JobOptions, StartError};
pub use millstream_protocol::{CheckpointSettings, RestartStrategy};
pub use modules::Modules;
pub use program::{PlannedJob, fingerprint, module_digest};
pub use remote::{end_of_subtask, notice_message, participation, split_answer};
pub use restore::{RestoreError, restore_report, stored_pieces};
pub use settings::{restart_strategy, usual_on_cluster};

pub use status::{
    CheckpointStatus, CompletedCheckpoint, FailedAttempt, FailedCheckpoint, JobStatus, OperatorStatus,
    in_full,
};
pub use stepped::{Arrival, RowRefused, StepError, SteppedJob};
pub use tasks::{DeployedTasks, Deployment, TaskRunner, Wires};

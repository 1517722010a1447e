//! Builds the tasks of a job out of its graphs and runs them: in this version all of them in one process.
//!
//! [`Modules`] compiles modules and answers what planning asks of them, [`Catalog`] answers for the connectors.
//! [`Job::start`] makes the channels, builds each subtask on the thread of its slot, and hands out a [`Job`] that can
//! be watched, stopped and cancelled.

mod catalog;
mod modules;

mod build;
mod checkpoint;
mod control;
mod edges;
mod execution;
mod job;
mod restore;
mod status;
mod stepped;
mod tasks;

pub use build::BuildError;
pub use catalog::Catalog;
pub use checkpoint::{CheckpointOptions, JobFileText, Notice, Participation, Stored};
pub use control::{JobControl, SnapshotError, SnapshotTaken};
pub use job::{Job, JobEnd, JobOptions, StartError};
pub use millstream_protocol::{CheckpointSettings, RestartStrategy};
pub use modules::Modules;
pub use restore::{RestoreError, restore_report, stored_pieces};

pub use status::{
    CheckpointStatus, CompletedCheckpoint, FailedAttempt, FailedCheckpoint, JobStatus, OperatorStatus,
};
pub use stepped::{Arrival, RowRefused, StepError, SteppedJob};
pub use tasks::{DeployedTasks, Deployment, TaskRunner, Wires};

//! The coordinator of a cluster: which workers there are and what their slots do, which jobs there are, and their modules.
//!
//! A job's own coordination (its executions, checkpoints and restarts) is that of a job in one process
//! ([`millstream_worker::Job`]); here it is given subtasks that run elsewhere, by [`runner::ClusterRunner`].

mod coordinator;
mod jobs;
mod record;
mod runner;
mod slots;
mod start;
mod workers;

pub use coordinator::{Coordinator, CoordinatorError, CoordinatorOptions};

//! Where snapshots are stored: the one crate that names `object_store`.
//!
//! [`Storage`] is a place, such as a folder, with reads and durable atomic writes. [`JobStore`] lays the snapshots of one
//! job out in it:
//!
//! ```text
//! <dir>/<job>/run-00001/run.origin        where the run was restored from, empty if it began at the beginning
//!                      /chk-3/_metadata   written last, with one atomic put: without it there is no checkpoint
//!                      /chk-3/subtask-0   state of a subtask; later checkpoints may refer to it
//!                      /run.control       how the process that has the run is spoken to, while there is one
//!                      /run.lock          held by that process: by the system, or as a lease where that is not possible
//!                      /run.stopped       the savepoint at which it was stopped, if at one
//!           /savepoint-00001/_metadata    what the user asked for, unless a place was named
//! ```
//!
//! A run is one life of a job, through all its restarts: what is restored without naming a snapshot goes on in the run
//! that it finds. A run that begins anew leaves earlier ones as they are, and their checkpoints count no more for it.

mod cluster_store;
mod error;
mod folder;
mod job_store;
mod lease;
mod lock;
mod paths;
mod place;
mod read;
mod retain;
mod s3;
mod storage;
#[cfg(test)]
mod tests;
mod upload;

pub use cluster_store::ClusterStore;
pub use error::StorageError;
pub use folder::SnapshotFolder;
pub use job_store::{CheckpointInfo, JobStore, Latest, RunStore, StoredSnapshot};
pub use lock::RunLock;
pub use storage::Storage;
pub use upload::{Upload, Uploaded};

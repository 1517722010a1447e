//! What the coordinators of a cluster keep, so that the next one goes on where the last one stopped.
//!
//! ```text
//! <dir>/jobs/<job>          what is known of a job
//!      /modules/<digest>    the bytes of a module
//!      /leader.lock         held by the coordinator that leads
//! ```

use bytes::Bytes;

use crate::{RunLock, Storage, StorageError};

/// The records of a cluster. Clones are of the same one.
#[derive(Clone, Debug)]
pub struct ClusterStore(Storage);

impl ClusterStore {
    /// The records in a place.
    pub fn new(storage: Storage) -> Self {
        Self(storage)
    }

    /// How messages name the place.
    pub fn name(&self) -> String {
        self.0.name_of("").trim_end_matches('/').to_owned()
    }

    /// Takes the lead for as long as the lock lives; none if somebody else has it.
    pub async fn lead(&self) -> Result<Option<RunLock>, StorageError> {
        RunLock::take(&self.0, LEADER).await
    }

    /// Writes down what is known of a job, in the place of what was known before.
    pub async fn put_job(&self, job: &str, record: Vec<u8>) -> Result<(), StorageError> {
        self.0.put(&format!("{JOBS}/{job}"), record).await
    }

    /// All that is known of jobs, by their names here.
    pub async fn jobs(&self) -> Result<Vec<(String, Bytes)>, StorageError> {
        let (_, names) = self.0.list(JOBS).await?;
        let mut jobs = Vec::with_capacity(names.len());
        for name in names {
            if let Some(record) = self.0.get(&format!("{JOBS}/{name}")).await? {
                jobs.push((name, record));
            }
        }
        Ok(jobs)
    }

    /// Keeps a module under its digest. One that is there already is the same.
    pub async fn put_module(&self, digest: &str, bytes: Vec<u8>) -> Result<(), StorageError> {
        let path = format!("{MODULES}/{digest}");
        if self.0.size(&path).await? == Some(bytes.len() as u64) {
            return Ok(());
        }
        self.0.put(&path, bytes).await
    }

    /// A module; none if there is no such.
    pub async fn module(&self, digest: &str) -> Result<Option<Bytes>, StorageError> {
        self.0.get(&format!("{MODULES}/{digest}")).await
    }
}

const JOBS: &str = "jobs";
const MODULES: &str = "modules";
const LEADER: &str = "leader.lock";

//! The folder of one snapshot, before and while it is written.

use std::{
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::LazyLock,
};

use millstream_snapshot::{Location, SnapshotMetadata};
use millstream_types::crash_point;

use crate::{
    Storage, StorageError, StoredSnapshot, Upload, Uploaded,
    job_store::{ORIGIN, RUN, load, numbered},
};

/// A folder for one snapshot. It is one once its metadata is there, which is written last.
#[derive(Clone, Debug)]
pub struct SnapshotFolder {
    storage: Storage,
    folder: String,
}

impl SnapshotFolder {
    pub(crate) fn new(storage: Storage, folder: String) -> Self {
        Self { storage, folder }
    }

    /// A folder that the user names, made if it is not there. It has to be empty: what is left of a snapshot that fails is
    /// deleted, and nothing else.
    pub async fn named(location: &str) -> Result<Self, StorageError> {
        let storage = Storage::open(location, Path::new(""))?;
        if let Some(run) = run_around(&Storage::absolute(location)?).await? {
            let problem =
                format!("it is in {run}, where checkpoints are and what is old is deleted; name another one");
            return Err(StorageError::Location { location: location.to_owned(), problem });
        }
        let (folders, objects) = storage.list("").await?;
        if let Some(found) = folders.first().or(objects.first()) {
            let problem = format!("it has `{found}` in it; name an empty folder, or one that is not there");
            return Err(StorageError::Location { location: location.to_owned(), problem });
        }
        Ok(Self::new(storage, String::new()))
    }

    /// A folder that another process has chosen, as [`SnapshotFolder::name`] names it.
    pub fn at(location: &str) -> Result<Self, StorageError> {
        Ok(Self::new(Storage::open(location, Path::new(""))?, String::new()))
    }

    /// How messages and commands name it.
    pub fn name(&self) -> String {
        self.storage.name_of(&self.folder).trim_end_matches('/').to_owned()
    }

    /// Whether its metadata is there.
    pub async fn is_complete(&self) -> Result<bool, StorageError> {
        Ok(self.storage.size(&self.path(METADATA)).await?.is_some())
    }

    /// Reads and checks the snapshot in it.
    pub async fn load(&self) -> Result<StoredSnapshot, StorageError> {
        load(&self.storage, &self.folder).await
    }

    /// The name of a file for a part of the state, which no other process gives to any: of two that both believe to have the
    /// run, neither writes over what the other's metadata refers to.
    pub fn file_name(&self, part: &str) -> String {
        static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        format!("{part}-{:08x}", *PROCESS as u32)
    }

    /// Stores state under a name that is unique in the snapshot, and says where it is.
    pub async fn put_state(&self, name: &str, bytes: Vec<u8>) -> Result<Location, StorageError> {
        crash_point("before-state-is-stored");
        self.storage.put(&self.path(name), bytes).await?;
        crash_point("state-is-stored");
        Ok(Location::File(name.to_owned()))
    }

    /// Begins to store state piece by piece under a name that is unique in the snapshot.
    pub fn upload(&self, name: &str) -> Upload {
        crash_point("before-state-is-stored");
        Upload::new(self.storage.clone(), self.path(name))
    }

    /// Completes what [`SnapshotFolder::upload`] has begun.
    pub async fn finish(&self, upload: Upload) -> Result<Uploaded, StorageError> {
        let uploaded = upload.finish().await?;
        crash_point("state-is-stored");
        Ok(uploaded)
    }

    /// Makes the snapshot complete. Everything that it refers to has been stored before.
    pub async fn put_metadata(&self, metadata: &SnapshotMetadata) -> Result<(), StorageError> {
        crash_point("before-snapshot-is-complete");
        self.storage.create(&self.path(METADATA), metadata.encode()).await?;
        crash_point("snapshot-is-complete");
        Ok(())
    }

    /// Deletes what there is of it, the metadata first, so that a rest is no snapshot.
    pub async fn delete(&self) -> Result<(), StorageError> {
        self.storage.delete_all(&self.folder, METADATA).await
    }

    fn path(&self, name: &str) -> String {
        if self.folder.is_empty() { name.to_owned() } else { format!("{}/{name}", self.folder) }
    }
}

/// The folder of a run in which a place is, if it is in one.
async fn run_around(location: &str) -> Result<Option<String>, StorageError> {
    let ends = location.match_indices('/').map(|(at, _)| at).chain([location.len()]);
    for run in ends.map(|end| &location[..end]) {
        let name = run.rsplit('/').next().unwrap_or_default();
        // Whoever has neither folder nor bucket there has no run there.
        if numbered(name, RUN).is_some()
            && let Ok(storage) = Storage::open_existing(run)
            && storage.size(ORIGIN).await?.is_some()
        {
            return Ok(Some(run.to_owned()));
        }
    }
    Ok(None)
}

pub(crate) const METADATA: &str = "_metadata";

//! The snapshots of one job: its runs, their checkpoints, and which of them to keep.

use millstream_snapshot::{Location, SnapshotMetadata};

use crate::{Storage, StorageError};

/// The snapshots of one job.
#[derive(Clone, Debug)]
pub struct JobStore {
    storage: Storage,
    job: String,
}

/// A snapshot that has been found and is whole.
#[derive(Clone, Debug)]
pub struct StoredSnapshot {
    /// What it has.
    pub metadata: SnapshotMetadata,
    pub(crate) storage: Storage,
    /// Its folder.
    pub(crate) folder: String,
}

impl StoredSnapshot {
    /// How messages and commands name it: its folder.
    pub fn name(&self) -> String {
        self.storage.name_of(&self.folder).trim_end_matches('/').to_owned()
    }
}

/// A checkpoint in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointInfo {
    /// Its number.
    pub id: u64,
    /// Whether its metadata is there.
    pub complete: bool,
}

/// One run of a job, to which checkpoints are added.
#[derive(Clone, Debug)]
pub struct RunStore {
    storage: Storage,
    folder: String,
}

impl JobStore {
    /// The snapshots of a job in a place.
    pub fn new(storage: Storage, job: &str) -> Self {
        Self { storage, job: job.to_owned() }
    }

    /// Reads and checks the snapshot in a folder that the user names.
    pub async fn open(folder: &std::path::Path) -> Result<StoredSnapshot, StorageError> {
        let found = folder.join(METADATA);
        if !found.is_file() {
            let problem = format!("there is no snapshot: expected a file `{METADATA}` in the folder");
            return Err(StorageError::Damaged { path: folder.display().to_string(), problem });
        }
        load(&Storage::folder(folder)?, "").await
    }

    /// Begins a run that was restored from the snapshot named `origin`, if from any.
    pub async fn begin_run(&self, origin: Option<&str>) -> Result<RunStore, StorageError> {
        let next = self.runs().await?.last().map_or(1, |last| last + 1);
        let folder = self.run_folder(next);
        let path = format!("{folder}/{ORIGIN}");
        self.storage.create(&path, origin.unwrap_or_default().to_owned()).await?;
        Ok(RunStore { storage: self.storage.clone(), folder })
    }

    /// The newest run, and what it goes on from: its newest checkpoint, or what it was restored from itself. None if
    /// there has been no run.
    pub async fn latest(&self) -> Result<Option<(RunStore, Option<StoredSnapshot>)>, StorageError> {
        let Some(&newest) = self.runs().await?.last() else { return Ok(None) };
        let run = RunStore { storage: self.storage.clone(), folder: self.run_folder(newest) };
        if let Some(found) = run.newest().await? {
            return Ok(Some((run, Some(found))));
        }
        let origin = self.storage.get(&format!("{}/{ORIGIN}", run.folder)).await?.unwrap_or_default();
        let origin = String::from_utf8_lossy(&origin).into_owned();
        let found = if origin.is_empty() { None } else { Some(Self::open(origin.as_ref()).await?) };
        Ok(Some((run, found)))
    }

    /// The numbers of the runs that there are, ascending.
    async fn runs(&self) -> Result<Vec<u64>, StorageError> {
        let (folders, _) = self.storage.list(&self.job).await?;
        let mut runs: Vec<u64> = folders.iter().filter_map(|name| numbered(name, RUN)).collect();
        runs.sort_unstable();
        Ok(runs)
    }

    fn run_folder(&self, run: u64) -> String {
        format!("{}/{RUN}{run:05}", self.job)
    }
}

impl RunStore {
    /// How messages name it.
    pub fn name(&self) -> String {
        self.storage.name_of(&self.folder)
    }

    /// The number above all that checkpoints of this run have had, also those that were never complete.
    pub async fn next_id(&self) -> Result<u64, StorageError> {
        Ok(self.checkpoints().await?.last().map_or(1, |last| last.id + 1))
    }

    /// Stores state of a checkpoint under a name that is unique in it, and says where it is.
    pub async fn put_state(&self, id: u64, name: &str, bytes: Vec<u8>) -> Result<Location, StorageError> {
        self.storage.put(&format!("{}/{name}", self.checkpoint_folder(id)), bytes).await?;
        Ok(Location::File(name.to_owned()))
    }

    /// Makes a checkpoint complete. Everything that it refers to has been stored before.
    pub async fn put_metadata(&self, metadata: &SnapshotMetadata) -> Result<(), StorageError> {
        let path = format!("{}/{METADATA}", self.checkpoint_folder(metadata.checkpoint));
        self.storage.create(&path, metadata.encode()).await
    }

    /// Reads and checks a checkpoint.
    pub async fn load(&self, id: u64) -> Result<StoredSnapshot, StorageError> {
        load(&self.storage, &self.checkpoint_folder(id)).await
    }

    /// Deletes what there is of a checkpoint, its metadata first, so that a rest is no checkpoint.
    pub async fn delete(&self, id: u64) -> Result<(), StorageError> {
        self.storage.delete_all(&self.checkpoint_folder(id), METADATA).await
    }

    /// Deletes all complete checkpoints but the newest `keep`, and what is left of others before those.
    pub async fn retain(&self, keep: usize) -> Result<(), StorageError> {
        let all = self.checkpoints().await?;
        let complete = all.iter().filter(|c| c.complete);
        let Some(oldest) = complete.rev().nth(keep.max(1) - 1) else { return Ok(()) };
        for old in all.iter().take_while(|c| c.id < oldest.id) {
            self.delete(old.id).await?;
        }
        Ok(())
    }

    /// The checkpoints of this run, ascending.
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointInfo>, StorageError> {
        let (folders, _) = self.storage.list(&self.folder).await?;
        let mut ids: Vec<u64> = folders.iter().filter_map(|name| numbered(name, CHECKPOINT)).collect();
        ids.sort_unstable();
        let mut all = Vec::with_capacity(ids.len());
        for id in ids {
            let (_, objects) = self.storage.list(&self.checkpoint_folder(id)).await?;
            all.push(CheckpointInfo { id, complete: objects.iter().any(|name| name == METADATA) });
        }
        Ok(all)
    }

    /// The newest complete checkpoint. If that is not good, the error names the one before it if that is.
    pub async fn newest(&self) -> Result<Option<StoredSnapshot>, StorageError> {
        let all = self.checkpoints().await?;
        let mut complete = all.iter().rev().filter(|c| c.complete);
        let Some(newest) = complete.next() else { return Ok(None) };
        let problem = match self.load(newest.id).await {
            Ok(found) => return Ok(Some(found)),
            Err(problem) => problem,
        };
        match complete.next() {
            Some(older) if self.load(older.id).await.is_ok() => Err(StorageError::OlderIsGood {
                newest: Box::new(problem),
                older: self.storage.name_of(&self.checkpoint_folder(older.id)),
            }),
            _ => Err(problem),
        }
    }

    fn checkpoint_folder(&self, id: u64) -> String {
        format!("{}/{CHECKPOINT}{id}", self.folder)
    }
}

/// Reads the metadata in a folder, and checks that the files that it refers to are there and long enough.
async fn load(storage: &Storage, folder: &str) -> Result<StoredSnapshot, StorageError> {
    let path = if folder.is_empty() { METADATA.to_owned() } else { format!("{folder}/{METADATA}") };
    let Some(bytes) = storage.get(&path).await? else {
        let problem = "the file is gone".to_owned();
        return Err(StorageError::Damaged { path: storage.name_of(&path), problem });
    };
    let metadata = SnapshotMetadata::decode(&bytes)
        .map_err(|source| StorageError::Metadata { path: storage.name_of(&path), source })?;
    let found = StoredSnapshot { metadata, storage: storage.clone(), folder: folder.to_owned() };
    found.check_files().await?;
    Ok(found)
}

fn numbered(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix)?.parse().ok()
}

const METADATA: &str = "_metadata";
const ORIGIN: &str = "run.origin";
const RUN: &str = "run-";
const CHECKPOINT: &str = "chk-";

//! The snapshots of one job: its runs, their checkpoints, which of them to keep, and its savepoints.

use millstream_snapshot::SnapshotMetadata;

use crate::{RunLock, SnapshotFolder, Storage, StorageError, folder::METADATA, paths};

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
    job: JobStore,
    pub(crate) folder: String,
}

/// Where a job goes on without being told where.
#[derive(Clone, Debug)]
pub struct Latest {
    /// The newest run.
    pub run: RunStore,
    /// What to go on from: its newest checkpoint, or what it was restored from itself; nothing before its first one.
    pub snapshot: Option<StoredSnapshot>,
    /// Whether the run was stopped at a savepoint, so that it is another one that goes on.
    pub ended: bool,
}

impl JobStore {
    /// The snapshots of a job in a place.
    pub fn new(storage: Storage, job: &str) -> Self {
        Self { storage, job: job.to_owned() }
    }

    /// Reads and checks the snapshot in a folder that the user names, as a path or as [`Storage::open`] takes it.
    pub async fn open(location: &str) -> Result<StoredSnapshot, StorageError> {
        let location = Storage::absolute(location)?;
        let folder = location.trim_end_matches('/');
        // Its files may lie in the folders of checkpoints beside it.
        let (above, name) = match folder.rsplit_once('/') {
            Some((above, name)) if Storage::open_existing(above).is_ok() => (above, name),
            _ => (folder, ""),
        };
        let found = SnapshotFolder::new(Storage::open_existing(above)?, name.to_owned());
        if !found.is_complete().await? {
            let problem = format!("there is no snapshot: expected a file `{METADATA}` in the folder");
            return Err(StorageError::Damaged { path: folder.to_owned(), problem });
        }
        found.load().await
    }

    /// The jobs that have snapshots in a place.
    pub async fn jobs(storage: &Storage) -> Result<Vec<String>, StorageError> {
        Ok(storage.list("").await?.0)
    }

    /// Begins a run that was restored from the snapshot named `origin`, if from any.
    pub async fn begin_run(&self, origin: Option<&str>) -> Result<RunStore, StorageError> {
        let next = self.runs().await?.last().map_or(1, |last| last + 1);
        let folder = self.run_folder(next);
        let path = format!("{folder}/{ORIGIN}");
        self.storage.create(&path, origin.unwrap_or_default().to_owned()).await?;
        Ok(RunStore { job: self.clone(), folder })
    }

    /// The newest run, and what a job goes on from. None if there has been no run.
    pub async fn latest(&self) -> Result<Option<Latest>, StorageError> {
        let Some(run) = self.newest_run().await? else { return Ok(None) };
        if let Some(stopped) = run.note(STOPPED).await? {
            let snapshot = Some(Self::open(&self.storage.location(&stopped)).await?);
            return Ok(Some(Latest { run, snapshot, ended: true }));
        }
        let snapshot = match run.newest().await? {
            Some(found) => Some(found),
            None => match run.note(ORIGIN).await? {
                Some(origin) => Some(Self::open(&origin).await?),
                None => None,
            },
        };
        Ok(Some(Latest { run, snapshot, ended: false }))
    }

    /// The newest run; none if there has been none.
    pub async fn newest_run(&self) -> Result<Option<RunStore>, StorageError> {
        let newest = self.runs().await?.last().copied();
        Ok(newest.map(|run| RunStore { job: self.clone(), folder: self.run_folder(run) }))
    }

    /// The runs that there are, ascending.
    pub async fn all_runs(&self) -> Result<Vec<RunStore>, StorageError> {
        let run = |run| RunStore { job: self.clone(), folder: self.run_folder(run) };
        Ok(self.runs().await?.into_iter().map(run).collect())
    }

    /// The savepoints in the place that they have if nobody says otherwise, ascending; also ones that were never
    /// complete.
    pub async fn savepoints(&self) -> Result<Vec<SnapshotFolder>, StorageError> {
        let numbers = self.numbers(SAVEPOINT).await?;
        Ok(numbers.into_iter().map(|number| self.savepoint(number)).collect())
    }

    /// The numbers of the runs that there are, ascending.
    async fn runs(&self) -> Result<Vec<u64>, StorageError> {
        self.numbers(RUN).await
    }

    /// The numbers of the folders whose names begin so, ascending.
    async fn numbers(&self, prefix: &str) -> Result<Vec<u64>, StorageError> {
        let (folders, _) = self.storage.list(&self.job).await?;
        let mut numbers: Vec<u64> = folders.iter().filter_map(|name| numbered(name, prefix)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn run_folder(&self, run: u64) -> String {
        format!("{}/{RUN}{run:05}", self.job)
    }

    fn savepoint(&self, number: u64) -> SnapshotFolder {
        SnapshotFolder::new(self.storage.clone(), format!("{}/{SAVEPOINT}{number:05}", self.job))
    }
}

impl RunStore {
    /// How messages name it.
    pub fn name(&self) -> String {
        self.storage().name_of(&self.folder)
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.job.storage
    }

    /// A place for a savepoint of its job, unless the user names one.
    pub async fn begin_savepoint(&self) -> Result<SnapshotFolder, StorageError> {
        let last = self.job.numbers(SAVEPOINT).await?.last().copied().unwrap_or(0);
        Ok(self.job.savepoint(last + 1))
    }

    /// Notes that the run was stopped at a savepoint: what goes on from there is another run.
    pub async fn end_at(&self, savepoint: &str) -> Result<(), StorageError> {
        // Relative if it lies beside the run, so that all of it can be moved.
        let savepoint = self.storage().relative(savepoint).to_owned();
        self.storage().put(&format!("{}/{STOPPED}", self.folder), savepoint).await
    }

    /// Takes hold of the run for as long as the lock lives; none if somebody else has it.
    pub async fn lock(&self) -> Result<Option<RunLock>, StorageError> {
        RunLock::take(self.storage(), &format!("{}/{LOCK}", self.folder)).await
    }

    /// Notes how the process that has the run is spoken to; none if there is none any more.
    pub async fn set_control(&self, address: Option<&str>) -> Result<(), StorageError> {
        let path = format!("{}/{CONTROL}", self.folder);
        match address {
            Some(address) => self.storage().put(&path, address.to_owned()).await,
            None => self.storage().delete(&path).await,
        }
    }

    /// How the process that has the run is spoken to, if it has said so. It may have gone without a word.
    pub async fn control(&self) -> Result<Option<String>, StorageError> {
        self.note(CONTROL).await
    }

    /// A text beside the checkpoints; none if it is not there or empty.
    async fn note(&self, name: &str) -> Result<Option<String>, StorageError> {
        let found = self.storage().get(&format!("{}/{name}", self.folder)).await?;
        let text = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// The number above all that checkpoints of this run have had, also those that were never complete.
    pub async fn next_id(&self) -> Result<u64, StorageError> {
        Ok(self.checkpoints().await?.last().map_or(1, |last| last.id + 1))
    }

    /// The place of a checkpoint.
    pub fn checkpoint(&self, id: u64) -> SnapshotFolder {
        SnapshotFolder::new(self.storage().clone(), self.checkpoint_folder(id))
    }

    /// Reads and checks a checkpoint.
    pub async fn load(&self, id: u64) -> Result<StoredSnapshot, StorageError> {
        load(self.storage(), &self.checkpoint_folder(id)).await
    }

    /// What a later checkpoint of this run calls a file to which checkpoint `id` refers.
    pub fn from_later(id: u64, file: &str) -> String {
        if file.starts_with("../") { file.to_owned() } else { format!("../{CHECKPOINT}{id}/{file}") }
    }

    /// The earlier checkpoint whose file this is, if a checkpoint calls it so.
    pub fn of_earlier(file: &str) -> Option<u64> {
        numbered(file.strip_prefix("../")?.split_once('/')?.0, CHECKPOINT)
    }

    /// Whether a snapshot is a checkpoint of this run, so that others may build on it.
    pub fn has(&self, snapshot: &StoredSnapshot) -> bool {
        let id = snapshot.metadata.checkpoint;
        snapshot.name() == self.storage().name_of(&self.checkpoint_folder(id))
    }

    /// Reads the metadata of a checkpoint.
    pub(crate) async fn metadata(&self, id: u64) -> Result<SnapshotMetadata, StorageError> {
        metadata(self.storage(), &self.checkpoint_folder(id)).await
    }

    /// The checkpoints of this run, ascending.
    pub async fn checkpoints(&self) -> Result<Vec<CheckpointInfo>, StorageError> {
        let (folders, _) = self.storage().list(&self.folder).await?;
        let mut ids: Vec<u64> = folders.iter().filter_map(|name| numbered(name, CHECKPOINT)).collect();
        ids.sort_unstable();
        let mut all = Vec::with_capacity(ids.len());
        for id in ids {
            let (_, objects) = self.storage().list(&self.checkpoint_folder(id)).await?;
            all.push(CheckpointInfo { id, complete: objects.iter().any(|name| name == METADATA) });
        }
        Ok(all)
    }

    /// The newest complete checkpoint. If that is not good, the error names the one before it if that is.
    pub async fn newest(&self) -> Result<Option<StoredSnapshot>, StorageError> {
        let all = self.checkpoints().await?;
        let Some(newest) = all.iter().rev().find(|c| c.complete) else { return Ok(None) };
        let problem = match self.load(newest.id).await {
            Ok(found) => return Ok(Some(found)),
            Err(problem) => problem,
        };
        match self.good_before_newest().await? {
            Some(older) => Err(StorageError::OlderIsGood { newest: Box::new(problem), older }),
            None => Err(problem),
        }
    }

    /// The newest checkpoint before the newest one whose metadata and files are there and whole, as commands name it.
    pub async fn good_before_newest(&self) -> Result<Option<String>, StorageError> {
        let all = self.checkpoints().await?;
        for older in all.iter().rev().filter(|c| c.complete).skip(1) {
            if let Ok(found) = self.load(older.id).await
                && found.verify().await.is_ok()
            {
                return Ok(Some(self.checkpoint(older.id).name()));
            }
        }
        Ok(None)
    }

    pub(crate) fn checkpoint_folder(&self, id: u64) -> String {
        format!("{}/{CHECKPOINT}{id}", self.folder)
    }
}

/// Reads the metadata in a folder, and checks that the files that it refers to are there and long enough.
pub(crate) async fn load(storage: &Storage, folder: &str) -> Result<StoredSnapshot, StorageError> {
    let metadata = metadata(storage, folder).await?;
    let found = StoredSnapshot { metadata, storage: storage.clone(), folder: folder.to_owned() };
    found.check_files().await?;
    Ok(found)
}

async fn metadata(storage: &Storage, folder: &str) -> Result<SnapshotMetadata, StorageError> {
    let path = paths::join(folder, METADATA);
    let Some(bytes) = storage.get(&path).await? else {
        let problem = "the file is gone".to_owned();
        return Err(StorageError::Damaged { path: storage.name_of(&path), problem });
    };
    SnapshotMetadata::decode(&bytes)
        .map_err(|source| StorageError::Metadata { path: storage.name_of(&path), source })
}

pub(crate) fn numbered(name: &str, prefix: &str) -> Option<u64> {
    // There have to be numbers for all that come.
    name.strip_prefix(prefix)?.parse().ok().filter(|&number| number < u64::MAX / 2)
}

pub(crate) const ORIGIN: &str = "run.origin";
const STOPPED: &str = "run.stopped";
const CONTROL: &str = "run.control";
const LOCK: &str = "run.lock";
pub(crate) const RUN: &str = "run-";
pub(crate) const CHECKPOINT: &str = "chk-";
const SAVEPOINT: &str = "savepoint-";

//! Which files of a run are kept: those that a checkpoint which is kept refers to, wherever they lie.
//!
//! Nothing is counted while checkpoints are taken. What is needed is read off the metadata of the checkpoints that are
//! kept, of which there are a few, so that a crash between any two steps leaves nothing that the next time does not find.

use std::collections::BTreeSet;

use millstream_snapshot::SnapshotMetadata;
use millstream_types::crash_point;

use crate::{
    RunStore, StorageError,
    folder::METADATA,
    job_store::{CHECKPOINT, numbered},
    paths,
};

impl RunStore {
    /// Deletes all complete checkpoints but the newest `keep`, what is left of others before the newest, and files to
    /// which none of those that are kept refers. `bases` are those on which checkpoints under way build: what they refer
    /// to is kept as well, whether they are or not.
    pub async fn retain(&self, keep: usize, bases: &[&SnapshotMetadata]) -> Result<(), StorageError> {
        let files = self.files().await?;
        let complete: BTreeSet<u64> =
            files.iter().filter(|f| f.name == METADATA).map(|f| f.checkpoint).collect();
        let Some(&newest) = complete.last() else { return Ok(()) };
        let kept: BTreeSet<u64> = complete.iter().rev().take(keep.max(1)).copied().collect();
        let mut needed = BTreeSet::new();
        for &id in &kept {
            let metadata = self.metadata(id).await?;
            needed.extend(self.paths_of(&metadata));
        }
        needed.extend(bases.iter().flat_map(|metadata| self.paths_of(metadata)));
        let is_needed = |file: &StoredFile| match file.name.as_str() {
            METADATA => kept.contains(&file.checkpoint),
            _ => needed.contains(&file.path),
        };
        let (metadata, others): (Vec<_>, Vec<_>) = files
            .into_iter()
            .filter(|file| file.checkpoint <= newest && !is_needed(file))
            .partition(|file| file.name == METADATA);
        // What has no metadata is no checkpoint, so that goes first.
        for file in metadata.into_iter().chain(others) {
            self.storage().delete(&file.path).await?;
            crash_point("snapshot-deleted-in-part");
        }
        Ok(())
    }

    /// The files of all checkpoints.
    async fn files(&self) -> Result<Vec<StoredFile>, StorageError> {
        let paths = self.storage().list_all(&self.folder).await?;
        Ok(paths.into_iter().filter_map(|path| StoredFile::of(&self.folder, path)).collect())
    }

    /// The files that a checkpoint of this run refers to.
    fn paths_of(&self, metadata: &SnapshotMetadata) -> Vec<String> {
        let folder = self.checkpoint_folder(metadata.checkpoint);
        metadata.files().into_iter().map(|file| paths::join(&folder, file)).collect()
    }
}

/// A file of a checkpoint.
struct StoredFile {
    checkpoint: u64,
    path: String,
    /// Its name in the checkpoint's folder.
    name: String,
}

impl StoredFile {
    fn of(run: &str, path: String) -> Option<Self> {
        let (folder, name) = path.strip_prefix(run)?.strip_prefix('/')?.split_once('/')?;
        let (checkpoint, name) = (numbered(folder, CHECKPOINT)?, name.to_owned());
        Some(Self { checkpoint, path, name })
    }
}

//! What can go wrong with stored snapshots.

use millstream_snapshot::SnapshotError;

/// A snapshot that could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The place is none that this version can use.
    #[error("`{location}` is no place for checkpoints: {problem}")]
    Location {
        /// What was asked for.
        location: String,
        /// What was expected.
        problem: String,
    },
    /// The place does not do what it should.
    #[error("{path}: cannot {action}")]
    Access {
        /// Which object, or folder.
        path: String,
        /// What was tried.
        action: &'static str,
        /// What the place says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is there is not what was stored.
    #[error("{path}: {problem}")]
    Damaged {
        /// Which object.
        path: String,
        /// What was found, what was expected.
        problem: String,
    },
    /// The metadata of a snapshot is not good.
    #[error("{path}: is no snapshot that can be used")]
    Metadata {
        /// Which object.
        path: String,
        /// What is wrong with it.
        source: SnapshotError,
    },
    /// The newest snapshot is not good, but there is one before it.
    #[error(
        "the newest checkpoint cannot be used; the one before it is good: restore it with `--from {older}`"
    )]
    OlderIsGood {
        /// What is wrong with the newest one.
        #[source]
        newest: Box<StorageError>,
        /// The one before it.
        older: String,
    },
}

impl StorageError {
    /// The error with all that is behind it, on a line.
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    }

    pub(crate) fn access(path: impl ToString, action: &'static str, source: object_store::Error) -> Self {
        Self::Access { path: path.to_string(), action, source: Box::new(source) }
    }
}

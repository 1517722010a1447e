//! What can be wrong with stored metadata.

/// Bytes that are not the metadata of a snapshot that this version can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It is something else.
    #[error("no snapshot metadata: it starts with {found:02x?}, expected {expected:02x?}")]
    NoSnapshot {
        /// What stands there.
        found: Vec<u8>,
        /// What every snapshot starts with.
        expected: Vec<u8>,
    },
    /// It was written by a later version.
    #[error("snapshot metadata of version {found}: this version reads up to {known}")]
    Version {
        /// The version found.
        found: u32,
        /// The latest version known.
        known: u32,
    },
    /// A part is missing, or there is more than there should be.
    #[error("snapshot metadata has {found} bytes, {expected} expected: the file is cut short or has grown")]
    Length {
        /// Bytes found.
        found: u64,
        /// Bytes expected.
        expected: u64,
    },
    /// Bytes have been altered.
    #[error("snapshot metadata is damaged: checksum {found:016x}, {expected:016x} expected")]
    Checksum {
        /// What the bytes hash to.
        found: u64,
        /// What they should hash to.
        expected: u64,
    },
    /// The bytes are whole but do not say what they should.
    #[error("snapshot metadata is malformed at byte {at}: {problem}")]
    Malformed {
        /// Where in the body.
        at: usize,
        /// What was found, what was expected.
        problem: String,
    },
}

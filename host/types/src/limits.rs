//! Bounds that hold everywhere, in one place.

/// Bounds on single things, whatever their number.
#[derive(Clone, Copy, Debug)]
pub struct Limits;

impl Limits {
    /// Longest encoded key, in bytes.
    pub const KEY_BYTES: usize = 64 * 1024;
    /// Rows of a batch that a source or operator makes at most.
    pub const BATCH_ROWS: usize = 8192;
    /// Bytes of a batch that a source makes at will: a batch is copied a few times on its way, and that many of it
    /// lie in a core's own cache.
    pub const BATCH_BYTES: usize = 200 * 1024;
    /// Longest manifest that a module may have, in bytes.
    pub const MANIFEST_BYTES: usize = 4 * 1024 * 1024;
    /// Subtasks of a node in one process, each in a thread of its own.
    pub const SUBTASKS: u32 = 256;
    /// Channels between subtasks in one process: an exchange from m subtasks to n has m times n.
    pub const CHANNELS: u64 = 1 << 17;
    /// Instances of functions in one process, each with address space of its own.
    pub const INSTANCES: u32 = 1000;
    /// Windows that one row may be in.
    pub const WINDOWS_OF_A_ROW: u64 = 100_000;
    /// The same where each window keeps the row for itself.
    pub const COPIES_OF_A_ROW: u64 = 1000;
    /// Longest line or record that a text format accepts, in bytes.
    pub const RECORD_BYTES: usize = 64 * 1024 * 1024;

    /// Rows of a batch at will when a row has so many bytes: within [`Limits::BATCH_BYTES`] and [`Limits::BATCH_ROWS`].
    pub const fn rows_of(row_bytes: usize) -> usize {
        let rows = Self::BATCH_BYTES / row_bytes;
        if rows > Self::BATCH_ROWS { Self::BATCH_ROWS } else { rows }
    }
}

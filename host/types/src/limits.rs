//! Bounds that hold everywhere, in one place.

/// Bounds on single things, whatever their number.
#[derive(Clone, Copy, Debug)]
pub struct Limits;

impl Limits {
    /// Longest encoded key, in bytes.
    pub const KEY_BYTES: usize = 64 * 1024;
    /// Rows of a batch that a source or operator makes at most.
    pub const BATCH_ROWS: usize = 8192;
    /// Longest manifest that a module may have, in bytes.
    pub const MANIFEST_BYTES: usize = 4 * 1024 * 1024;
    /// Longest line or record that a text format accepts, in bytes.
    pub const RECORD_BYTES: usize = 64 * 1024 * 1024;
}

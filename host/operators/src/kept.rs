//! The names under which operators keep what is theirs in a snapshot, for whoever compares a job with one.

/// The windows of a window operator.
pub const WINDOWS: &str = "windows";
/// The clock of a window operator.
pub const CLOCK: &str = "clock";
/// The rows that a count trigger has counted.
pub const COUNTS: &str = "counts";
/// How many calls a function has had.
pub const CALLS: &str = "calls";
/// The watermark that an operator has reached.
pub const WATERMARK: &str = "watermark";
/// What the writer of a sink has closed.
pub const PREPARED: &str = "prepared";

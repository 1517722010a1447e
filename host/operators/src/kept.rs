//! The names under which operators keep what is theirs in a snapshot, for whoever compares a job with one.

use millstream_types::{Column, DataType};

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

/// The columns of the rows that a window operator keeps: what the function reads, and behind it the event time if it reads
/// that.
pub fn content_columns(columns: &[Column], times: bool) -> Vec<Column> {
    let time = Column { name: "event-time".to_owned(), data_type: DataType::Int64, nullable: false };
    columns.iter().cloned().chain(times.then_some(time)).collect()
}

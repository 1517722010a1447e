//! Sources and sinks: files, generated records, the terminal; and the formats of files.
//!
//! [`Connectors`] makes them out of a job file's tables; everything else is behind the traits of
//! `millstream-operator`.

mod catalog;
mod clock;
mod file;
mod generator;
mod histogram;
mod json_rows;
mod mix;
mod options;
mod results;
mod sinks;
mod text;

pub use catalog::Connectors;
pub use histogram::Histogram;
pub use json_rows::{JsonRowError, read_json_rows, read_timestamp, write_json_rows};
pub use options::{ByteSize, OptionsError, TextDuration};
pub use results::{Checksum, Latencies, SinkResults};

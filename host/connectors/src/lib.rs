//! Sources and sinks: files, generated records, the terminal; and the formats of files.
//!
//! [`Connectors`] makes them out of a job file's tables; everything else is behind the traits of
//! `millstream-operator`.

mod catalog;
mod file;
mod options;
mod text;

pub use catalog::Connectors;
pub use options::{ByteSize, OptionsError, TextDuration};

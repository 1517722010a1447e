//! Files as sources and sinks.

mod compression;
mod csv;
mod enumerator;
mod input;
mod json;
mod json_text;
mod layout;
mod lineage;
mod listing;
mod options;
mod parquet;
mod part;
mod reader;
mod record;
mod rows;
mod sink;
mod source;
mod split;
mod text_reader;
mod value;
mod writer;

pub(crate) use json::JsonDecoder;
pub(crate) use rows::RecordDecoder;
pub(crate) use sink::FileSink;
pub(crate) use source::FileSource;
pub(crate) use value::{TIMESTAMPS, parse_timestamp};

//! The `file` sink: a folder of part files, `part-<uid>-<subtask>-<counter>.<format>`.
//!
//! A reader of the folder sees complete parts only. A run leaves the rows of one run behind: parts of an earlier one
//! go when it starts, unless `mode` says `"append"` (they stay) or `"fail-if-exists"` (the run does not start).
//! Other files in the folder are never touched.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use millstream_operator::{ConnectorError, OperatorContext, Sink, SinkWriter};
use millstream_types::{Batch, Schema};
use serde_json::Value;

use super::{
    options::{Compression, FileSinkOptions, Format, SinkMode},
    part::Part,
};
use crate::options::{OptionsError, parse};

/// Writes rows into files: CSV, JSON lines or Parquet.
pub(crate) struct FileSink {
    folder: PathBuf,
    format: Format,
    compression: Compression,
    roll_size: u64,
    mode: SinkMode,
    /// Whether the folder is ready for this run; the first writer sees to that for all.
    prepared: Mutex<bool>,
}

impl FileSink {
    pub(crate) fn new(options: &Value, base: &Path) -> Result<Self, OptionsError> {
        let options: FileSinkOptions = parse("file", options)?;
        let folder = base.join(&options.path);
        if options.path.is_empty() {
            return Err(OptionsError::at("path", "`path` is empty: expected a folder"));
        }
        if folder.exists() && !folder.is_dir() {
            let message = format!(
                "{}: is a file; expected a folder, in which each subtask writes parts",
                folder.display()
            );
            return Err(OptionsError::at("path", message));
        }
        if options.format == Format::Parquet && options.compression.is_some() {
            return Err(OptionsError::at(
                "compression",
                "Parquet compresses its columns itself: leave `compression` out",
            ));
        }
        Ok(Self {
            folder,
            format: options.format,
            compression: options.compression.unwrap_or(Compression::None),
            roll_size: options.roll_size.0,
            mode: options.mode,
            prepared: Mutex::new(false),
        })
    }

    fn prepare(&self, restarted: bool) -> Result<(), ConnectorError> {
        let mut prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if !*prepared {
            // After a restart the parts that are there are this run's own.
            let mode = if restarted { SinkMode::Append } else { self.mode };
            prepare_folder(&self.folder, mode)?;
            *prepared = true;
        }
        Ok(())
    }
}

impl Sink for FileSink {
    fn accepts(&self, schema: &Schema) -> Result<(), String> {
        if schema.is_empty() { Err("there is no column to write".to_owned()) } else { Ok(()) }
    }

    fn folder(&self) -> Option<PathBuf> {
        Some(self.folder.clone())
    }

    fn writer(&self, schema: &Schema, ctx: &OperatorContext) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        self.prepare(ctx.attempt.0 > 0)?;
        Ok(Box::new(FileWriter {
            folder: self.folder.clone(),
            stem: format!("part-{:08x}-{}", random(), ctx.subtask),
            extension: format!("{}{}", self.format.extension(), self.compression.suffix()),
            format: self.format.clone(),
            compression: self.compression,
            roll_size: self.roll_size,
            schema: schema.clone(),
            counter: 0,
            part: None,
        }))
    }
}

/// Makes the folder and does what the mode says about earlier parts.
fn prepare_folder(folder: &Path, mode: SinkMode) -> Result<(), ConnectorError> {
    let failed = |e: io::Error| {
        ConnectorError::external(format!("{}: the folder cannot be used: {e}", folder.display()), e)
    };
    fs::create_dir_all(folder).map_err(failed)?;
    if mode == SinkMode::Append {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if !is_part(&name.to_string_lossy()) {
            continue;
        }
        if mode == SinkMode::FailIfExists {
            let name = name.to_string_lossy();
            return Err(ConnectorError::user(format!(
                "{}: holds `{name}` of an earlier run, and the sink's mode is \"fail-if-exists\"",
                folder.display()
            )));
        }
        fs::remove_file(entry.path()).map_err(failed)?;
    }
    Ok(())
}

/// Whether a name is one that this sink gives, hidden or not.
fn is_part(name: &str) -> bool {
    let name = name.strip_prefix('.').unwrap_or(name);
    let Some((stem, extension)) = name.strip_prefix("part-").and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let known = ["csv", "jsonl", "parquet"].contains(&extension.split('.').next().unwrap_or_default());
    let fields: Vec<_> = stem.split('-').collect();
    let [uid, subtask, counter] = fields[..] else {
        return false;
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    known
        && uid.len() == 8
        && uid.bytes().all(|b| b.is_ascii_hexdigit())
        && number(subtask)
        && number(counter)
}

/// Tells this writer's parts from those of any other.
fn random() -> u32 {
    // The standard library seeds each of these from the system.
    RandomState::new().build_hasher().finish() as u32
}

/// Writes the parts of one subtask.
struct FileWriter {
    folder: PathBuf,
    stem: String,
    extension: String,
    format: Format,
    compression: Compression,
    roll_size: u64,
    schema: Schema,
    counter: u64,
    part: Option<Part>,
}

impl FileWriter {
    fn begin(&mut self) -> Result<Part, ConnectorError> {
        let name = format!("{}-{}.{}", self.stem, self.counter, self.extension);
        self.counter += 1;
        Part::create(&self.folder, &name, &self.format, self.compression, Arc::clone(self.schema.arrow()))
    }
}

#[async_trait(?Send)]
impl SinkWriter for FileWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut part = match self.part.take() {
            Some(part) => part,
            None => self.begin()?,
        };
        part.write(batch.records())?;
        if part.length() >= self.roll_size {
            return part.finish();
        }
        self.part = Some(part);
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), ConnectorError> {
        self.part.take().map_or(Ok(()), Part::finish)
    }
}

#[cfg(test)]
mod tests {
    use super::is_part;

    #[test]
    fn only_parts_are_parts() {
        for part in ["part-0123abcd-0-0.jsonl", "part-0123abcd-12-345.csv.gz", ".part-0123abcd-0-0.parquet"] {
            assert!(is_part(part), "{part}");
        }
        for other in [
            "part-1.csv",
            "part-0123abcd-0.csv",
            "part-0123abcd-0-0.txt",
            "part-0123abcz-0-0.csv",
            "x",
            "part-.csv",
        ] {
            assert!(!is_part(other), "{other}");
        }
    }
}

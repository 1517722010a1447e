//! The `file` sink: a folder of part files, `part-<uid>-<subtask>-<counter>.<format>`.
//!
//! A reader of the folder sees complete parts only. Where a job takes checkpoints, a part becomes visible when the
//! checkpoint is complete that has its rows, so that each row is seen once, whatever is restarted. A run leaves the rows
//! of one run behind: parts of an earlier one go when it starts, unless `mode` says `"append"` (they stay) or
//! `"fail-if-exists"` (the run does not start). Other files in the folder are never touched.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use millstream_operator::{Beginning, ConnectorError, OperatorContext, Sink, SinkWriter};
use millstream_types::{RunId, Schema};
use serde_json::Value;

use super::{
    lineage::{Lineage, Writer, cannot_use, parts, remove_parts},
    options::{Compression, FileSinkOptions, Format, SinkMode},
    writer::{FileWriter, PartForm},
};
use crate::options::{OptionsError, parse};

/// Writes rows into files: CSV, JSON lines or Parquet.
pub(crate) struct FileSink {
    folder: PathBuf,
    format: Format,
    compression: Compression,
    roll_size: u64,
    mode: SinkMode,
    /// The hold on the folder, from the beginning on.
    hold: Mutex<Option<File>>,
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
            hold: Mutex::new(None),
        })
    }
}

impl FileSink {
    /// Sees to it that no other job writes into the folder at the same time: each would take the other's parts away. The
    /// system lets go of it with the process, however that ends.
    fn hold_folder(&self) -> Result<(), ConnectorError> {
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        if hold.is_some() {
            return Ok(());
        }
        let folder = File::open(&self.folder).map_err(|e| cannot_use(&self.folder, e))?;
        match folder.try_lock() {
            Ok(()) => *hold = Some(folder),
            Err(TryLockError::WouldBlock) => {
                return Err(ConnectorError::user(format!(
                    "{}: another job that runs writes into this folder: stop it, or give this one a folder of its own",
                    self.folder.display()
                )));
            }
            // Not every file system has locks.
            Err(TryLockError::Error(error)) => {
                tracing::debug!(folder = %self.folder.display(), %error, "the folder cannot be held");
            }
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

    fn begin(&self, execution: &Beginning) -> Result<(), ConnectorError> {
        let uid = uid(execution.run);
        let earlier = match execution.attempt.0 {
            // What is there is told apart by those who wrote it.
            _ if execution.restored => Earlier::Stays,
            0 => Earlier::Mode(self.mode),
            _ => Earlier::OfRun(&uid),
        };
        fs::create_dir_all(&self.folder).map_err(|e| cannot_use(&self.folder, e))?;
        self.hold_folder()?;
        prepare_folder(&self.folder, earlier)
    }

    fn writer(&self, schema: &Schema, ctx: &OperatorContext) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let form = PartForm {
            folder: self.folder.clone(),
            format: self.format.clone(),
            compression: self.compression,
            roll_size: self.roll_size,
            schema: schema.clone(),
        };
        let lineage = Lineage::new(uid(ctx.run), ctx.subtask.0, &self.folder);
        let writer = Writer { run: ctx.run, attempt: ctx.attempt };
        Ok(Box::new(FileWriter::new(form, writer, lineage, ctx.checkpoints)))
    }
}

/// What becomes of parts that are there.
enum Earlier<'a> {
    /// They are part of the state that the job goes on from.
    Stays,
    /// They are of an earlier run.
    Mode(SinkMode),
    /// Those of this run are of an earlier attempt, of which nothing counts.
    OfRun(&'a str),
}

/// Does what is to be done about earlier parts.
fn prepare_folder(folder: &Path, earlier: Earlier<'_>) -> Result<(), ConnectorError> {
    match earlier {
        Earlier::Stays | Earlier::Mode(SinkMode::Append) => Ok(()),
        Earlier::Mode(SinkMode::Replace) => remove_parts(folder, |_| true),
        Earlier::OfRun(uid) => remove_parts(folder, |part| part.uid == uid),
        Earlier::Mode(SinkMode::FailIfExists) => match parts(folder)?.into_iter().next() {
            None => Ok(()),
            Some(name) => Err(ConnectorError::user(format!(
                "{}: holds `{name}` of an earlier run, and the sink's mode is \"fail-if-exists\"",
                folder.display()
            ))),
        },
    }
}

/// Tells the parts of a run from those of any other.
fn uid(run: RunId) -> String {
    format!("{:08x}", (run.0 ^ (run.0 >> 32)) as u32)
}

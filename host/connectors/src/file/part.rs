//! One part file: written under a hidden name, closed when it is complete, visible under its own name once it is
//! published.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use arrow_array::RecordBatch;
use arrow_json::writer::{LineDelimited, Writer as JsonWriter};
use arrow_schema::SchemaRef;
use flate2::write::GzEncoder;
use millstream_operator::ConnectorError;
use millstream_types::crash_point;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression as ParquetCompression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{
    lineage::visible_name,
    options::{Compression, Format},
};
use crate::text::printable;

/// A part file that is being written. Dropped before it is closed, it leaves nothing behind.
pub(crate) struct Part {
    name: String,
    path: PathBuf,
    hidden: PathBuf,
    encoder: Option<Encoder>,
    written: Arc<AtomicU64>,
}

enum Encoder {
    Json(Box<JsonWriter<Output, LineDelimited>>),
    Csv(Box<arrow_csv::Writer<Output>>),
    Parquet(Box<ArrowWriter<Output>>),
}

impl Part {
    /// Begins the file `name` in `folder`: the hidden name without its dot.
    pub(crate) fn create(
        folder: &Path,
        name: &str,
        format: &Format,
        compression: Compression,
        schema: SchemaRef,
    ) -> Result<Self, ConnectorError> {
        let (path, hidden) = (folder.join(visible_name(name)), hidden(folder, name));
        let written = Arc::new(AtomicU64::new(0));
        let mut part = Self { name: name.to_owned(), path, hidden, encoder: None, written: written.clone() };
        let file = File::create_new(&part.hidden).map_err(|e| part.failed("cannot create the file", e))?;
        let output = Output::new(Counted { file, written }, compression)
            .map_err(|e| part.failed("cannot create the file", e))?;
        part.encoder = Some(match format {
            Format::Jsonl => Encoder::Json(Box::new(JsonWriter::new(output))),
            Format::Csv(options) => {
                let mut builder = arrow_csv::WriterBuilder::new()
                    .with_header(options.header)
                    .with_delimiter(options.delimiter)
                    .with_quote(options.quote);
                if let Some(null) = &options.null {
                    builder = builder.with_null(null.clone());
                }
                Encoder::Csv(Box::new(builder.build(output)))
            }
            Format::Parquet => {
                let compression = ParquetCompression::ZSTD(ZstdLevel::default());
                let properties = WriterProperties::builder().set_compression(compression).build();
                let writer = ArrowWriter::try_new(output, schema, Some(properties));
                Encoder::Parquet(Box::new(writer.map_err(|e| part.failed("cannot write", e))?))
            }
        });
        Ok(part)
    }

    /// Appends rows.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<(), ConnectorError> {
        let written = match &mut self.encoder {
            Some(Encoder::Json(writer)) => {
                printable(rows).and_then(|rows| writer.write(&rows)).map_err(boxed)
            }
            Some(Encoder::Csv(writer)) => printable(rows).and_then(|rows| writer.write(&rows)).map_err(boxed),
            Some(Encoder::Parquet(writer)) => writer.write(rows).map_err(boxed),
            None => Ok(()),
        };
        written.map_err(|e| self.failed("cannot write", e))
    }

    /// About how long the file is by now.
    pub(crate) fn length(&self) -> u64 {
        let buffered = match &self.encoder {
            Some(Encoder::Parquet(writer)) => writer.in_progress_size() as u64,
            _ => 0,
        };
        self.written.load(Relaxed) + buffered
    }

    /// Completes the file. It stays hidden, whatever comes, until it is published or removed; returns its name.
    pub(crate) fn close(mut self) -> Result<String, ConnectorError> {
        let Some(encoder) = self.encoder.take() else {
            return Ok(std::mem::take(&mut self.name));
        };
        let output = match encoder {
            Encoder::Json(mut writer) => writer.finish().map_err(boxed).map(|()| writer.into_inner()),
            Encoder::Csv(writer) => Ok(writer.into_inner()),
            Encoder::Parquet(writer) => writer.into_inner().map_err(boxed),
        };
        let output = output.map_err(|e| self.failed("cannot write", e))?;
        let closed = output.finish().and_then(|file| file.sync_all());
        closed.map_err(|e| self.failed("cannot complete the file", e))?;
        crash_point("part-closed");
        self.hidden = PathBuf::new();
        Ok(std::mem::take(&mut self.name))
    }

    fn failed(
        &self,
        what: &str,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ConnectorError {
        let error = error.into();
        ConnectorError::external(format!("{}: {what}: {error}", self.path.display()), error)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Once it is closed it has no hidden name any more; if it cannot be removed, the next run in this folder does.
        if !self.hidden.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.hidden);
        }
    }
}

/// Makes a closed part visible. One that is visible already stays as it is.
pub(crate) fn publish(folder: &Path, name: &str) -> Result<(), ConnectorError> {
    let path = folder.join(visible_name(name));
    let failed = |e: io::Error| {
        ConnectorError::external(format!("{}: the part cannot be made visible: {e}", path.display()), e)
    };
    crash_point("before-part-is-visible");
    match fs::rename(hidden(folder, name), &path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && path.is_file() => Ok(()),
        renamed => renamed.map_err(failed),
    }?;
    crash_point("part-is-visible");
    Ok(())
}

/// The path of a part that is not visible.
fn hidden(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}"))
}

fn boxed<E: std::error::Error + Send + Sync + 'static>(error: E) -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(error)
}

/// Where encoders write.
enum Output {
    Plain(BufWriter<Counted>),
    Gzip(GzEncoder<BufWriter<Counted>>),
    Zstd(zstd::stream::write::Encoder<'static, Counted>),
}

impl Output {
    fn new(file: Counted, compression: Compression) -> io::Result<Self> {
        let buffered = |file| BufWriter::with_capacity(BUFFER, file);
        Ok(match compression {
            Compression::None => Output::Plain(buffered(file)),
            Compression::Gzip => Output::Gzip(GzEncoder::new(buffered(file), flate2::Compression::default())),
            Compression::Zstd => {
                Output::Zstd(zstd::stream::write::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?)
            }
        })
    }

    fn finish(self) -> io::Result<File> {
        let flushed = |buffered: BufWriter<Counted>| buffered.into_inner().map_err(|e| e.into_error());
        let counted = match self {
            Output::Plain(buffered) => flushed(buffered)?,
            Output::Gzip(encoder) => flushed(encoder.finish()?)?,
            Output::Zstd(encoder) => encoder.finish()?,
        };
        Ok(counted.file)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Plain(output) => output.write(bytes),
            Output::Gzip(output) => output.write(bytes),
            Output::Zstd(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // Nobody sees the file before it is complete: what is flushed on the way would only be smaller writes.
        Ok(())
    }
}

/// A file with the number of bytes written to it.
struct Counted {
    file: File,
    written: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written.fetch_add(count as u64, Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Bytes that are written at once.
const BUFFER: usize = 256 << 10;

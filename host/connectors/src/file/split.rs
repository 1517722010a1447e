//! The pieces in which files are read.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_operator::{ConnectorError, Split};
use millstream_types::MIN_WATERMARK;
use serde::{Deserialize, Serialize};

use super::{
    compression,
    input::count_lines,
    layout::Layout,
    options::{Compression, Format},
    parquet,
    record::RecordScanner,
};

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSplit {
    pub(crate) path: PathBuf,
    /// First byte of a text file, decompressed; first row group of a Parquet file.
    pub(crate) start: u64,
    /// The byte or row group behind the last one; none that there is for a file of unknown length.
    pub(crate) end: u64,
    /// Number of the first line of a text file or first row of the first row group, from 1.
    pub(crate) line: u64,
    /// Rows of the first row group that have been read already.
    pub(crate) skip: u64,
}

impl FileSplit {
    /// All of a file, header included.
    pub(crate) fn whole(path: &Path) -> Self {
        Self { path: path.to_owned(), start: 0, end: u64::MAX, line: 1, skip: 0 }
    }

    /// Whether it starts with the file, so that a header is still to be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.start == 0 && self.end == u64::MAX
    }

    /// The split as it travels to a reader.
    pub(crate) fn encode(&self) -> Split {
        let (path, start) = (self.path.display(), self.start);
        let id = match self.end {
            _ if self.is_whole() => path.to_string(),
            u64::MAX => format!("{path}[{start}..]"),
            end => format!("{path}[{start}..{end}]"),
        };
        let payload = serde_json::to_vec(self).expect("listed paths are text and numbers always encode");
        Split { id: Arc::from(id), payload, watermark: MIN_WATERMARK }
    }

    /// Reads what [`FileSplit::encode`] wrote.
    pub(crate) fn decode(split: &Split) -> Result<Self, ConnectorError> {
        serde_json::from_slice(&split.payload).map_err(|e| {
            ConnectorError::external(format!("split `{}` was not made by a file source", split.id), e)
        })
    }
}

/// Cuts one file into splits, one at a time.
pub(crate) enum Splitter {
    /// These splits, last one first.
    Known(Vec<FileSplit>),
    /// Cut as it is read.
    Text(TextSplitter),
}

/// What a splitter has not cut yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Uncut {
    /// These splits, last one first.
    Known(Vec<FileSplit>),
    /// The rest of a text file.
    Text(TextRest),
}

impl Splitter {
    /// Opens a file and checks its header.
    pub(crate) fn open(
        layout: &Layout,
        path: &Path,
        split_size: Option<u64>,
        parallelism: u32,
    ) -> Result<Self, ConnectorError> {
        if layout.format == Format::Parquet {
            let mut splits = parquet::row_groups(path, &layout.schema)?;
            splits.reverse();
            return Ok(Splitter::Known(splits));
        }
        if layout.compression(path) != Compression::None {
            return Ok(Splitter::Known(vec![FileSplit::whole(path)]));
        }
        let (position, line) = layout.open_at_start(path)?.input.position();
        let file = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, _) = file.map_err(|e| cannot_read(path, e))?;
        let split_size = split_size.unwrap_or_else(|| default_split_size(length, parallelism));
        let rest = TextRest { path: path.to_owned(), position, line, length, split_size };
        Ok(Splitter::resume(layout, Uncut::Text(rest)))
    }

    /// Goes on with what [`Splitter::uncut`] gave.
    pub(crate) fn resume(layout: &Layout, uncut: Uncut) -> Self {
        match uncut {
            Uncut::Known(splits) => Splitter::Known(splits),
            Uncut::Text(rest) => Splitter::Text(TextSplitter { rest, scanner: layout.scanner() }),
        }
    }

    /// What is still to be cut.
    pub(crate) fn uncut(&self) -> Uncut {
        match self {
            Splitter::Known(splits) => Uncut::Known(splits.clone()),
            Splitter::Text(text) => Uncut::Text(text.rest.clone()),
        }
    }

    /// The file's next split.
    pub(crate) fn next_split(&mut self) -> Result<Option<FileSplit>, ConnectorError> {
        match self {
            Splitter::Known(splits) => Ok(splits.pop()),
            Splitter::Text(text) => text.next_split(),
        }
    }
}

/// Cuts a text file at the first end of a record behind every `split_size` bytes. To know where quotes are open it
/// looks at the whole file, just ahead of those who read it.
pub(crate) struct TextSplitter {
    rest: TextRest,
    /// At the start of a record between two splits.
    scanner: RecordScanner,
}

/// The part of a text file of which no splits have been made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TextRest {
    path: PathBuf,
    /// The start of a record.
    position: u64,
    line: u64,
    /// Of the file when it was opened.
    length: u64,
    split_size: u64,
}

impl TextSplitter {
    fn next_split(&mut self) -> Result<Option<FileSplit>, ConnectorError> {
        let TextRest { position: start, line, length, split_size, .. } = self.rest;
        if start >= length {
            return Ok(None);
        }
        let skipped = self.skip_records(start.saturating_add(split_size));
        skipped.map_err(|e| cannot_read(&self.rest.path, e))?;
        let (path, end) = (self.rest.path.clone(), self.rest.position);
        Ok(Some(FileSplit { path, start, end, line, skip: 0 }))
    }

    /// Goes on to the first end of a record at or behind `target`, at most to the end of the file.
    fn skip_records(&mut self, target: u64) -> std::io::Result<()> {
        let Self { rest, scanner } = self;
        let mut source = compression::open(&rest.path, Compression::None, rest.position, rest.length)?;
        let mut buffer = vec![0; SCAN];
        loop {
            let read = source.read(&mut buffer)?;
            if read == 0 {
                rest.position = rest.length;
                return Ok(());
            }
            let end = scan(scanner, &buffer[..read], target.saturating_sub(rest.position));
            rest.line += count_lines(&buffer[..end.unwrap_or(read)]);
            rest.position += end.unwrap_or(read) as u64;
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// The first end of a record at or behind `target`.
fn scan(scanner: &mut RecordScanner, bytes: &[u8], target: u64) -> Option<usize> {
    let mut at = 0;
    while let Some(length) = scanner.next_end(&bytes[at..]) {
        at += length;
        if at as u64 >= target {
            return Some(at);
        }
    }
    None
}

fn cannot_read(path: &Path, error: std::io::Error) -> ConnectorError {
    ConnectorError::external(format!("{}: cannot read the file: {error}", path.display()), error)
}

/// Some splits for each reader, so that they end at about the same time, but small enough for readers of one file to
/// stay near each other in time.
fn default_split_size(length: u64, parallelism: u32) -> u64 {
    (length / (4 * u64::from(parallelism.max(1)))).clamp(256 << 10, 8 << 20)
}

/// Bytes that are read at once to look for ends of records.
const SCAN: usize = 256 << 10;

//! The pieces in which files are read.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_operator::{ConnectorError, Split};
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
    /// First byte of a text file, first row group of a Parquet file.
    pub(crate) start: u64,
    /// The byte or row group behind the last one.
    pub(crate) end: u64,
    /// Number of the first line of a text file or first row of a Parquet file, from 1.
    pub(crate) line: u64,
}

impl FileSplit {
    /// All of a file, header included.
    pub(crate) fn whole(path: &Path) -> Self {
        Self { path: path.to_owned(), start: 0, end: u64::MAX, line: 1 }
    }

    /// Whether it starts with the file, so that a header is still to be read.
    pub(crate) fn is_whole(&self) -> bool {
        self.end == u64::MAX
    }

    /// The split as it travels to a reader.
    pub(crate) fn encode(&self) -> Split {
        let path = self.path.display();
        let id =
            if self.is_whole() { path.to_string() } else { format!("{path}[{}..{}]", self.start, self.end) };
        let payload = serde_json::to_vec(self).expect("paths come from text and numbers always encode");
        Split { id: Arc::from(id), payload }
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
        let scanner = layout.scanner();
        Ok(Splitter::Text(TextSplitter {
            path: path.to_owned(),
            position,
            line,
            length,
            split_size,
            scanner,
        }))
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
    path: PathBuf,
    position: u64,
    line: u64,
    length: u64,
    split_size: u64,
    scanner: RecordScanner,
}

impl TextSplitter {
    fn next_split(&mut self) -> Result<Option<FileSplit>, ConnectorError> {
        if self.position >= self.length {
            return Ok(None);
        }
        let (start, line) = (self.position, self.line);
        self.skip_records(start.saturating_add(self.split_size)).map_err(|e| cannot_read(&self.path, e))?;
        Ok(Some(FileSplit { path: self.path.clone(), start, end: self.position, line }))
    }

    /// Goes on to the first end of a record at or behind `target`, at most to the end of the file.
    fn skip_records(&mut self, target: u64) -> std::io::Result<()> {
        let mut source = compression::open(&self.path, Compression::None, self.position, self.length)?;
        let mut buffer = vec![0; SCAN];
        loop {
            let read = source.read(&mut buffer)?;
            if read == 0 {
                self.position = self.length;
                return Ok(());
            }
            let end = self.scan(&buffer[..read], target);
            self.line += count_lines(&buffer[..end.unwrap_or(read)]);
            self.position += end.unwrap_or(read) as u64;
            if end.is_some() {
                return Ok(());
            }
        }
    }

    fn scan(&mut self, bytes: &[u8], target: u64) -> Option<usize> {
        let mut at = 0;
        while let Some(length) = self.scanner.next_end(&bytes[at..]) {
            at += length;
            if self.position + at as u64 >= target {
                return Some(at);
            }
        }
        None
    }
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

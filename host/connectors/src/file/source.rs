//! The `file` source.

use std::{
    collections::{BTreeSet, VecDeque},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use millstream_operator::{
    Assignment, Boundedness, ConnectorError, OperatorContext, Read, Source, Split, SplitEnumerator,
    SplitReader,
};
use millstream_types::Schema;
use serde_json::Value;

use super::{
    input::RecordInput,
    layout::Layout,
    listing::Listing,
    options::{FileSourceOptions, Format},
    parquet::{self, ParquetReader},
    rows::RecordDecoder,
    split::{FileSplit, Splitter},
    text_reader::{Rows, TextReader},
};
use crate::options::{OptionsError, parse};

/// Rows out of files: CSV, JSON lines or Parquet.
pub(crate) struct FileSource {
    listing: Listing,
    layout: Layout,
    split_size: Option<u64>,
    watch: Option<Duration>,
}

impl FileSource {
    pub(crate) fn new(options: &Value, schema: Option<Schema>, base: &Path) -> Result<Self, OptionsError> {
        let options: FileSourceOptions = parse("file", options)?;
        let listing = Listing::new(base, &options.path)?;
        let schema = match schema.filter(|schema| !schema.is_empty()) {
            Some(schema) => schema,
            None if options.format == Format::Parquet => parquet::schema_of_first(&listing)?,
            None => {
                let message = "text files do not tell the types of their columns: give `schema = { column = \"type\" }`";
                return Err(OptionsError::at("schema", message));
            }
        };
        if options.format == Format::Parquet && options.compression.is_some() {
            return Err(OptionsError::at(
                "compression",
                "Parquet files say themselves how they are compressed: leave `compression` out",
            ));
        }
        let layout = Layout { format: options.format, compression: options.compression, schema };
        let split_size = options.split_size.map(|size| size.0);
        Ok(Self { listing, layout, split_size, watch: options.watch.map(|time| time.0) })
    }
}

impl Source for FileSource {
    fn outputs(&self) -> Vec<(String, Schema)> {
        vec![("out".to_owned(), self.layout.schema.clone())]
    }

    fn reads(&self) -> Option<PathBuf> {
        Some(self.listing.fixed_part())
    }

    fn boundedness(&self) -> Boundedness {
        if self.watch.is_some() { Boundedness::Unbounded } else { Boundedness::Bounded }
    }

    fn enumerator(&self, parallelism: u32) -> Result<Box<dyn SplitEnumerator>, ConnectorError> {
        let mut enumerator = FileEnumerator {
            listing: self.listing.clone(),
            layout: self.layout.clone(),
            split_size: self.split_size,
            parallelism,
            watch: self.watch,
            looked: Instant::now(),
            known: BTreeSet::new(),
            files: VecDeque::new(),
            current: None,
        };
        enumerator.look()?;
        if enumerator.files.is_empty() && self.watch.is_none() {
            let path = self.listing.path().display();
            return Err(ConnectorError::user(format!(
                "{path}: there is no such file, and no file matches it as a pattern"
            )));
        }
        Ok(Box::new(enumerator))
    }

    fn reader(&self, _ctx: &OperatorContext) -> Result<Box<dyn SplitReader>, ConnectorError> {
        Ok(Box::new(FileReader { layout: self.layout.clone(), current: None, decoder: None }))
    }
}

/// Hands out splits in natural order of path, then by offset.
struct FileEnumerator {
    listing: Listing,
    layout: Layout,
    split_size: Option<u64>,
    parallelism: u32,
    watch: Option<Duration>,
    looked: Instant,
    known: BTreeSet<PathBuf>,
    files: VecDeque<PathBuf>,
    current: Option<Splitter>,
}

impl FileEnumerator {
    /// Puts new files into the queue.
    fn look(&mut self) -> Result<(), ConnectorError> {
        self.looked = Instant::now();
        for file in self.listing.files()? {
            if self.known.insert(file.clone()) {
                self.files.push_back(file);
            }
        }
        Ok(())
    }
}

impl SplitEnumerator for FileEnumerator {
    fn next_split(&mut self, _subtask: u32) -> Result<Assignment, ConnectorError> {
        loop {
            if let Some(splitter) = &mut self.current {
                if let Some(split) = splitter.next_split()? {
                    return Ok(Assignment::Split(split.encode()));
                }
                self.current = None;
            }
            if let Some(file) = self.files.pop_front() {
                self.current = Some(Splitter::open(&self.layout, &file, self.split_size, self.parallelism)?);
                continue;
            }
            let Some(interval) = self.watch else {
                return Ok(Assignment::Finished);
            };
            let left = interval.saturating_sub(self.looked.elapsed());
            if !left.is_zero() {
                return Ok(Assignment::Later(left));
            }
            self.look()?;
        }
    }
}

/// Reads one split after the other.
struct FileReader {
    layout: Layout,
    current: Option<Current>,
    /// The decoder of the last text file: its next split has the same header.
    decoder: Option<(PathBuf, Box<dyn RecordDecoder>)>,
}

enum Current {
    Text(PathBuf, TextReader),
    Parquet(ParquetReader),
}

impl Current {
    fn next(&mut self) -> Result<Option<Rows>, ConnectorError> {
        match self {
            Current::Text(_, reader) => reader.next(),
            Current::Parquet(reader) => reader.next(),
        }
    }
}

impl FileReader {
    fn open_text(&mut self, split: &FileSplit) -> Result<TextReader, ConnectorError> {
        let file = Arc::from(split.path.display().to_string());
        let known = self.decoder.take().filter(|(path, _)| *path == split.path && !split.is_whole());
        let (input, decoder) = match known {
            Some((_, decoder)) => (RecordInput::open(&self.layout, split)?, decoder),
            None => {
                let opening = self.layout.open_at_start(&split.path)?;
                let whole = split.is_whole();
                let input = if whole { opening.input } else { RecordInput::open(&self.layout, split)? };
                (input, opening.decoder)
            }
        };
        Ok(TextReader::new(file, self.layout.schema.clone(), input, decoder))
    }
}

#[async_trait(?Send)]
impl SplitReader for FileReader {
    fn start(&mut self, split: Split) -> Result<(), ConnectorError> {
        let split = FileSplit::decode(&split)?;
        self.current = Some(match self.layout.format {
            Format::Parquet => Current::Parquet(ParquetReader::open(&split, &self.layout.schema)?),
            Format::Csv(_) | Format::Jsonl => Current::Text(split.path.clone(), self.open_text(&split)?),
        });
        Ok(())
    }

    /// Cancel-safe: it never waits but for the disk.
    async fn read(&mut self) -> Result<Read, ConnectorError> {
        if let Some(current) = &mut self.current
            && let Some((batch, bad)) = current.next()?
        {
            return Ok(Read::Rows { port: 0, batch, bad });
        }
        if let Some(Current::Text(path, reader)) = self.current.take() {
            self.decoder = Some((path, reader.into_decoder()));
        }
        Ok(Read::SplitFinished)
    }
}

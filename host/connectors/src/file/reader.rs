//! Reads splits of files, one after the other.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use millstream_operator::{ConnectorError, Read, Split, SplitReader};

use super::{
    input::RecordInput,
    layout::Layout,
    options::Format,
    parquet::ParquetReader,
    rows::RecordDecoder,
    split::FileSplit,
    text_reader::{Rows, TextReader},
};

/// Reads one split after the other.
pub(crate) struct FileReader {
    layout: Layout,
    current: Option<(FileSplit, Current)>,
    /// The decoder of the last text file: its next split has the same header.
    decoder: Option<(PathBuf, Box<dyn RecordDecoder>)>,
}

enum Current {
    Text(TextReader),
    Parquet(ParquetReader),
}

impl Current {
    fn next(&mut self) -> Result<Option<Rows>, ConnectorError> {
        match self {
            Current::Text(reader) => reader.next(),
            Current::Parquet(reader) => reader.next(),
        }
    }
}

impl FileReader {
    /// A reader of files of this layout.
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, current: None, decoder: None }
    }

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
        let current = match self.layout.format {
            Format::Parquet => Current::Parquet(ParquetReader::open(&split, &self.layout.schema)?),
            Format::Csv(_) | Format::Jsonl => Current::Text(self.open_text(&split)?),
        };
        self.current = Some((split, current));
        Ok(())
    }

    /// Cancel-safe: it never waits but for the disk.
    async fn read(&mut self) -> Result<Read, ConnectorError> {
        if let Some((_, current)) = &mut self.current
            && let Some((batch, bad)) = current.next()?
        {
            return Ok(Read::Rows { batches: vec![(0, batch)], bad });
        }
        if let Some((split, Current::Text(reader))) = self.current.take() {
            self.decoder = Some((split.path, reader.into_decoder()));
        }
        Ok(Read::SplitFinished)
    }

    fn snapshot(&self) -> Result<Option<Split>, ConnectorError> {
        let Some((split, current)) = &self.current else { return Ok(None) };
        let left = match current {
            Current::Text(reader) => {
                let (start, line) = reader.position();
                FileSplit { start, line, ..split.clone() }
            }
            Current::Parquet(reader) => FileSplit { skip: reader.row() - split.line, ..split.clone() },
        };
        Ok(Some(left.encode()))
    }
}

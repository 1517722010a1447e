//! How the files of a source are written and which columns are wanted of them.

use std::path::Path;

use millstream_operator::ConnectorError;
use millstream_types::Schema;

use super::{
    csv::{self, CsvDecoder},
    input::{Next, RecordInput},
    json::JsonDecoder,
    options::{Compression, Format},
    record::RecordScanner,
    rows::RecordDecoder,
    split::FileSplit,
};

/// Format, compression and columns of a source's files.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    /// Of all files; by their names if it is none.
    pub(crate) compression: Option<Compression>,
    pub(crate) schema: Schema,
}

/// The start of a text file: where its rows begin, and what decodes them.
pub(crate) struct Opening {
    /// Behind byte order mark and header; nothing has been read of the rows but into the buffer.
    pub(crate) input: RecordInput,
    pub(crate) decoder: Box<dyn RecordDecoder>,
}

impl Layout {
    pub(crate) fn compression(&self, path: &Path) -> Compression {
        self.compression.unwrap_or_else(|| Compression::of(path))
    }

    pub(crate) fn scanner(&self) -> RecordScanner {
        match &self.format {
            Format::Csv(options) => csv::scanner(options),
            Format::Jsonl | Format::Parquet => RecordScanner::Lines,
        }
    }

    /// Opens a text file at its start and reads its header, if it has one.
    pub(crate) fn open_at_start(&self, path: &Path) -> Result<Opening, ConnectorError> {
        let mut input = RecordInput::open(self, &FileSplit::whole(path))?;
        input.skip_byte_order_mark();
        let decoder: Box<dyn RecordDecoder> = match &self.format {
            Format::Csv(options) if options.header => {
                let header = read_header(&mut input, path)?;
                let Some(header) = header else {
                    tracing::warn!(file = %path.display(), "the file is empty, without the header that the format has");
                    return Ok(Opening {
                        input,
                        decoder: Box::new(CsvDecoder::new(options, &self.schema, 0, Vec::new())),
                    });
                };
                let header = csv::header(path, &header, options)?;
                let projection = csv::projection(path, &header, &self.schema)?;
                Box::new(CsvDecoder::new(options, &self.schema, header.len(), projection))
            }
            Format::Csv(options) => {
                let all = (0..self.schema.len()).collect();
                Box::new(CsvDecoder::new(options, &self.schema, self.schema.len(), all))
            }
            Format::Jsonl | Format::Parquet => Box::new(JsonDecoder::new(&self.schema)),
        };
        Ok(Opening { input, decoder })
    }
}

/// The first record of a file; none if there is nothing but blank lines.
fn read_header(input: &mut RecordInput, path: &Path) -> Result<Option<Vec<u8>>, ConnectorError> {
    match input.next(1)? {
        Next::Records => {
            let header = input.bytes(input.records()).to_vec();
            input.consume();
            Ok(Some(header))
        }
        Next::Broken(broken) => {
            let message =
                format!("{}:{}: the header cannot be read: {}", path.display(), broken.line, broken.reason);
            Err(ConnectorError::user(message))
        }
        Next::End => Ok(None),
    }
}

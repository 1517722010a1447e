//! CSV: the columns of a file and the decoding of its records.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, StringViewArray, cast::AsArray};
use arrow_csv::{ReaderBuilder, reader::Decoder};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema};
use millstream_operator::ConnectorError;
use millstream_types::{Limits, Schema};

use super::{
    options::CsvOptions,
    record::{CsvScanner, RecordScanner, count_fields, quoted_empty_fields},
    rows::{Decoded, RecordDecoder, cut},
    value::{BadRows, ColumnParser},
};

/// Finds the records of a CSV file.
pub(crate) fn scanner(options: &CsvOptions) -> RecordScanner {
    RecordScanner::Csv(CsvScanner::new(options.delimiter, options.quote))
}

/// The names in a file's header record.
pub(crate) fn header(
    path: &Path,
    record: &[u8],
    options: &CsvOptions,
) -> Result<Vec<String>, ConnectorError> {
    let fields = count_fields(record, options.delimiter, options.quote);
    let all: Vec<_> = (0..fields).collect();
    let names = std::str::from_utf8(record).map_err(|e| e.to_string()).and_then(|_| {
        let batch = decode_text(&mut text_decoder(fields, &all, 1, options), record, 1)?;
        Ok(batch.columns().iter().map(|c| c.as_string_view().value(0).trim().to_owned()).collect())
    });
    names.map_err(|reason| {
        ConnectorError::user(format!("{}:1: the header cannot be read: {reason}", path.display()))
    })
}

/// Where the columns of a schema stand among a file's.
pub(crate) fn projection(
    path: &Path,
    header: &[String],
    schema: &Schema,
) -> Result<Vec<usize>, ConnectorError> {
    let position = |name: &str| {
        let mut found = header.iter().enumerate().filter(|(_, column)| *column == name).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(at),
            (Some(_), Some(_)) => Err("more than one column"),
            (None, _) => Err("no column"),
        }
    };
    let find = |name: &str| {
        position(name).map_err(|problem| {
            let (path, found) = (path.display(), cut(&header.join(", ")));
            ConnectorError::user(format!(
                "{path}:1: {problem} `{name}`: the header has {found}; the schema expects {}",
                schema.names()
            ))
        })
    };
    schema.fields().iter().map(|field| find(&field.name)).collect()
}

/// Decodes the records of one CSV file.
pub(crate) struct CsvDecoder {
    options: CsvOptions,
    fields: usize,
    projection: Vec<usize>,
    parsers: Vec<ColumnParser>,
    /// Kept for batches of usual size, as it holds buffers for as many rows.
    decoder: Option<Decoder>,
}

impl CsvDecoder {
    /// A decoder for records of `fields` fields, of which those at `projection` make the columns of `schema`.
    pub(crate) fn new(options: &CsvOptions, schema: &Schema, fields: usize, projection: Vec<usize>) -> Self {
        let parser = |field: &millstream_types::Field| ColumnParser::new(field.clone(), options.null.clone());
        let parsers = schema.fields().iter().map(parser).collect();
        Self { options: options.clone(), fields, projection, parsers, decoder: None }
    }

    fn decode_text(&mut self, bytes: &[u8], records: usize) -> Result<RecordBatch, String> {
        if records <= Limits::BATCH_ROWS / 2 {
            let mut decoder = text_decoder(self.fields, &self.projection, records, &self.options);
            return decode_text(&mut decoder, bytes, records);
        }
        let build = || text_decoder(self.fields, &self.projection, Limits::BATCH_ROWS, &self.options);
        let mut decoder = self.decoder.take().unwrap_or_else(build);
        let batch = decode_text(&mut decoder, bytes, records)?;
        // After an error it is not to be used again.
        self.decoder = Some(decoder);
        Ok(batch)
    }
}

impl CsvDecoder {
    /// The fields that are empty and not missing, by record and position. The decoder makes null of them, so they are
    /// looked for where there is a null that they could be.
    fn quoted_empty_fields(&self, text: &RecordBatch, bytes: &[u8]) -> BTreeSet<(usize, usize)> {
        let mut columns = text.columns().iter().zip(&self.parsers);
        if columns.any(|(column, parser)| parser.tells_quoted_empty() && column.null_count() > 0) {
            quoted_empty_fields(bytes, self.options.delimiter, self.options.quote).into_iter().collect()
        } else {
            BTreeSet::new()
        }
    }
}

impl RecordDecoder for CsvDecoder {
    fn decode(&mut self, bytes: &[u8], records: usize) -> Result<Decoded, String> {
        let text = self.decode_text(bytes, records).map_err(|reason| {
            let found = count_fields(bytes, self.options.delimiter, self.options.quote);
            if records == 1 && found != self.fields {
                return format!(
                    "found {found} field{}, expected {}",
                    if found == 1 { "" } else { "s" },
                    self.fields
                );
            }
            reason
        })?;
        let mut bad = BadRows::new();
        let empty = self.quoted_empty_fields(&text, bytes);
        let columns = text.columns().iter().zip(&self.parsers).zip(&self.projection);
        let parse = |((column, parser), field): ((&ArrayRef, &ColumnParser), &usize)| {
            let text = column.as_string_view();
            if empty.is_empty() || !parser.tells_quoted_empty() {
                return parser.parse(text, &mut bad);
            }
            let value =
                |(row, value): (usize, Option<_>)| value.or(empty.contains(&(row, *field)).then_some(""));
            parser.parse(&text.iter().enumerate().map(value).collect::<StringViewArray>(), &mut bad)
        };
        let columns: Vec<ArrayRef> = columns.map(parse).collect();
        Ok(Decoded::without_bad(records, columns, bad))
    }
}

/// A decoder that leaves every field text: null texts, wrong values and empty fields are seen row by row later.
fn text_decoder(fields: usize, projection: &[usize], records: usize, options: &CsvOptions) -> Decoder {
    let field = |at: usize| ArrowField::new(at.to_string(), ArrowType::Utf8View, true);
    let schema = ArrowSchema::new((0..fields).map(field).collect::<Vec<_>>());
    ReaderBuilder::new(Arc::new(schema))
        .with_header(false)
        .with_delimiter(options.delimiter)
        .with_quote(options.quote)
        .with_projection(projection.to_vec())
        // One more than there are, so that it also takes what follows the last one's line break.
        .with_batch_size(records + 1)
        .build_decoder()
}

fn decode_text(decoder: &mut Decoder, bytes: &[u8], records: usize) -> Result<RecordBatch, String> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match decoder.decode(rest).map_err(|e| e.to_string())? {
            0 => break,
            read => rest = &rest[read..],
        }
    }
    let batch = decoder.flush().map_err(|e| e.to_string())?;
    match batch {
        Some(batch) if batch.num_rows() == records => Ok(batch),
        other => Err(format!("found {} rows, expected {records}", other.map_or(0, |b| b.num_rows()))),
    }
}

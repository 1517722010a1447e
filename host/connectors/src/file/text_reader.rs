//! Reads the rows of one split of a text file.

use std::sync::Arc;

use millstream_operator::{BadRow, ConnectorError};
use millstream_types::{Batch, Limits, Positions, RecordNumbers, RecordUnit, Schema};

use super::{
    input::{BrokenRecord, Next, Record, RecordInput},
    rows::{self, Decoded, RecordDecoder},
};

/// Rows and what could not be read as rows.
pub(crate) type Rows = (Batch, Vec<BadRow>);

/// Reads records and has them decoded, a batch at a time.
pub(crate) struct TextReader {
    file: Arc<str>,
    schema: Schema,
    input: RecordInput,
    decoder: Box<dyn RecordDecoder>,
}

impl TextReader {
    pub(crate) fn new(
        file: Arc<str>,
        schema: Schema,
        input: RecordInput,
        decoder: Box<dyn RecordDecoder>,
    ) -> Self {
        Self { file, schema, input, decoder }
    }

    /// What decodes the file's records, for its next split.
    pub(crate) fn into_decoder(self) -> Box<dyn RecordDecoder> {
        self.decoder
    }

    /// Where the next record begins in the (decompressed) file, and on which line.
    pub(crate) fn position(&self) -> (u64, u64) {
        self.input.position()
    }

    /// The next rows; none at the end of the split.
    pub(crate) fn next(&mut self) -> Result<Option<Rows>, ConnectorError> {
        match self.input.next(Limits::BATCH_ROWS)? {
            Next::End => Ok(None),
            Next::Broken(BrokenRecord { line, reason, text }) => {
                let bad = rows::bad_row(&self.file, line, reason.to_owned(), &text);
                Ok(Some((self.batch(Vec::new())?, vec![bad])))
            }
            Next::Records => {
                let mut isolation = Isolation {
                    input: &self.input,
                    decoder: &mut *self.decoder,
                    pieces: Vec::new(),
                    bad: Vec::new(),
                };
                isolation.decode(0, self.input.records());
                let Isolation { pieces, bad, .. } = isolation;
                let positions = self.positions(&bad);
                let bad = self.bad_rows(bad);
                self.input.consume();
                Ok(Some((self.batch(pieces)?.with_positions(Some(positions)), bad)))
            }
        }
    }

    fn batch(&self, pieces: Vec<Decoded>) -> Result<Batch, ConnectorError> {
        rows::batch(&self.schema, pieces).map_err(|e| {
            ConnectorError::external(format!("{}: decoded columns do not fit the schema", self.file), e)
        })
    }

    /// Where the rows stand that are not bad. Only where records are more or less than a line, or some are left out,
    /// has each row a number of its own.
    fn positions(&mut self, bad: &[(usize, String)]) -> Positions {
        let rows = self.input.records().len();
        let numbers = match self.input.line_by_line() {
            Some(first) if bad.is_empty() => RecordNumbers::Even { first, stride: 1, rows },
            _ => {
                let mut bad = bad.iter().map(|(index, _)| *index).peekable();
                let good = (0..rows).filter(|index| bad.next_if_eq(index).is_none());
                RecordNumbers::Each(self.input.lines_of(good))
            }
        };
        Positions::read(self.file.clone(), RecordUnit::Line, numbers)
    }

    fn bad_rows(&self, bad: Vec<(usize, String)>) -> Vec<BadRow> {
        let lines = self.input.lines_of(bad.iter().map(|(index, _)| *index));
        let records = self.input.records();
        let text = |index: usize| self.input.bytes(&records[index..=index]);
        bad.into_iter()
            .zip(lines)
            .map(|((i, reason), line)| rows::bad_row(&self.file, line, reason, text(i)))
            .collect()
    }
}

/// Decoders fail for a whole batch when the format is broken somewhere in it. So a failed batch is decoded again by
/// halves until the broken records stand alone: no more than twice the work of a batch for one of them.
struct Isolation<'a> {
    input: &'a RecordInput,
    decoder: &'a mut dyn RecordDecoder,
    pieces: Vec<Decoded>,
    /// By position in the batch, ascending.
    bad: Vec<(usize, String)>,
}

impl Isolation<'_> {
    fn decode(&mut self, first: usize, records: &[Record]) {
        match self.try_decode(records) {
            Ok(mut piece) => {
                self.bad.extend(
                    std::mem::take(&mut piece.bad).into_iter().map(|(row, reason)| (first + row, reason)),
                );
                self.pieces.push(piece);
            }
            Err(reason) if records.len() == 1 => self.bad.push((first, reason)),
            Err(_) => {
                let (front, back) = records.split_at(records.len() / 2);
                self.decode(first, front);
                self.decode(first + front.len(), back);
            }
        }
    }

    fn try_decode(&mut self, records: &[Record]) -> Result<Decoded, String> {
        let bytes = self.input.bytes(records);
        // The decoders look at text without its delimiters, where two invalid pieces can make a valid one.
        if let Err(error) = std::str::from_utf8(bytes) {
            return Err(format!("invalid UTF-8 at byte {} of the row", error.valid_up_to() + 1));
        }
        if records.iter().any(|record| record.text_behind_quote) {
            return Err("text behind a closing quote: expected a delimiter or the end of the row".to_owned());
        }
        self.decoder.decode(bytes, records.len())
    }
}

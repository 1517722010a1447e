//! Records out of a file, many at a time: a buffer that is refilled in large pieces and cut at record ends.

use std::{io::Read, ops::Range};

use memchr::{memchr, memchr_iter};
use millstream_operator::{ConnectorError, Whose};
use millstream_types::Limits;

use super::{compression, layout::Layout, options::Compression, record::RecordScanner, split::FileSplit};

/// Bytes that are read at once and from which a batch forms.
const CHUNK: usize = 1 << 20;
/// Bytes of a broken record that are kept for its message.
const SHOWN: usize = 1024;

/// The records of one split.
pub(crate) struct RecordInput {
    name: String,
    compression: Compression,
    source: Box<dyn Read>,
    scanner: RecordScanner,
    buffer: Vec<u8>,
    /// Where the buffer's first byte stands in the (decompressed) file.
    offset: u64,
    /// Where the split ends, for a file of known length.
    end: Option<u64>,
    /// First byte of the buffer that has not been handed out.
    start: usize,
    /// Line of that byte in its file.
    line: u64,
    /// Line breaks from there to the end of the found records, once they have been counted.
    line_breaks: Option<u64>,
    /// Bytes at the end of the buffer that are not in the file: a line break that its last line lacks.
    added: usize,
    /// Nothing more can be read, perhaps for this reason.
    ended: bool,
    failure: Option<std::io::Error>,
    records: Vec<Record>,
}

/// A record within the buffer, its line break included.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) bytes: Range<usize>,
    pub(crate) text_behind_quote: bool,
}

/// What comes next.
pub(crate) enum Next {
    /// [`RecordInput::records`] has complete records.
    Records,
    /// A piece that is no record.
    Broken(BrokenRecord),
    /// Nothing.
    End,
}

/// A piece of input in which no end of a record was found.
pub(crate) struct BrokenRecord {
    pub(crate) line: u64,
    pub(crate) reason: &'static str,
    pub(crate) text: Vec<u8>,
}

impl RecordInput {
    /// Reads the split of a file.
    pub(crate) fn open(layout: &Layout, split: &FileSplit) -> Result<Self, ConnectorError> {
        let name = split.path.display().to_string();
        let compression = layout.compression(&split.path);
        let source = compression::open(&split.path, compression, split.start, split.end)
            .map_err(|e| ConnectorError::external(format!("{name}: cannot open the file: {e}"), e))?;
        Ok(Self {
            name,
            compression,
            source,
            scanner: layout.scanner(),
            buffer: Vec::new(),
            offset: split.start,
            end: (split.end != u64::MAX).then_some(split.end),
            start: 0,
            line: split.line,
            line_breaks: None,
            added: 0,
            ended: false,
            failure: None,
            records: Vec::new(),
        })
    }

    /// Finds up to `limit` records; they stay in the buffer until [`RecordInput::consume`].
    pub(crate) fn next(&mut self, limit: usize) -> Result<Next, ConnectorError> {
        self.records.clear();
        if !self.ended && self.buffer.len() - self.start < CHUNK / 2 {
            self.fill();
        }
        loop {
            let rest = self.find(limit);
            if !self.records.is_empty() {
                // A record that is not complete is looked at again by the next call.
                return Ok(Next::Records);
            }
            self.skip(rest);
            if self.too_long() {
                return Ok(Next::Broken(self.skip_too_long()));
            }
            if let Some(error) = self.failure.take() {
                return Err(self.failed(error));
            }
            if self.ended {
                return Ok(self.last_record());
            }
            self.fill();
        }
    }

    /// Puts down the complete records at the start of the buffer, up to one that is too long; says where they end.
    fn find(&mut self, limit: usize) -> usize {
        self.scanner.reset();
        let mut start = self.start;
        while self.records.len() < limit
            && let Some(length) = self.scanner.next_end(&self.buffer[start..])
            && length <= Limits::RECORD_BYTES
        {
            self.push(start..start + length);
            start += length;
        }
        start
    }

    /// The records that [`RecordInput::next`] found, in order.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
    }

    /// The bytes of neighbouring records.
    pub(crate) fn bytes(&self, records: &[Record]) -> &[u8] {
        match (records.first(), records.last()) {
            (Some(first), Some(last)) => &self.buffer[first.bytes.start..last.bytes.end],
            _ => &[],
        }
    }

    /// The lines on which found records start, which are given by position and in order.
    pub(crate) fn lines_of(&self, found: impl Iterator<Item = usize>) -> Vec<u64> {
        let (mut line, mut at) = (self.line, self.start);
        let next_line = |index: usize| {
            let start = self.records[index].bytes.start;
            line += count_lines(&self.buffer[at..start]);
            at = start;
            line
        };
        found.map(next_line).collect()
    }

    /// The line on which the first found record starts, if every line from there on is one.
    pub(crate) fn line_by_line(&mut self) -> Option<u64> {
        let last = self.records.last()?.bytes.end;
        let breaks = count_lines(&self.buffer[self.start..last]);
        self.line_breaks = Some(breaks);
        (breaks == self.records.len() as u64).then_some(self.line)
    }

    /// Where what comes next begins in the (decompressed) file, and on which line.
    pub(crate) fn position(&self) -> (u64, u64) {
        let added = if self.start == self.buffer.len() { self.added } else { 0 };
        (self.offset + (self.start - added) as u64, self.line)
    }

    /// Lets go of the records that [`RecordInput::next`] found.
    pub(crate) fn consume(&mut self) {
        if let Some(last) = self.records.last() {
            let end = last.bytes.end;
            self.line +=
                self.line_breaks.take().unwrap_or_else(|| count_lines(&self.buffer[self.start..end]));
            self.start = end;
            self.records.clear();
        }
    }

    /// Drops a byte order mark at the start of a file.
    pub(crate) fn skip_byte_order_mark(&mut self) {
        self.fill();
        if self.buffer.starts_with(b"\xEF\xBB\xBF") {
            self.start = 3;
        }
    }

    fn push(&mut self, bytes: Range<usize>) {
        let text_behind_quote = self.scanner.take_text_behind_quote();
        if !self.scanner.is_blank(&self.buffer[bytes.clone()]) {
            self.records.push(Record { bytes, text_behind_quote });
        }
    }

    fn skip(&mut self, to: usize) {
        self.line += count_lines(&self.buffer[self.start..to]);
        self.start = to;
    }

    /// The file has ended, and the buffer holds no complete record: perhaps one without a line break.
    fn last_record(&mut self) -> Next {
        let rest = self.start..self.buffer.len();
        if rest.is_empty() {
            return Next::End;
        }
        if self.scanner.in_quotes() {
            return Next::Broken(
                self.break_at_line("a quote is opened here and not closed before the end of the file"),
            );
        }
        self.buffer.push(b'\n');
        self.added = 1;
        self.push(rest.start..rest.end + 1);
        if self.records.is_empty() {
            self.start = self.buffer.len();
            return Next::End;
        }
        Next::Records
    }

    /// Whether the record at the start of the buffer is longer than a record may be.
    fn too_long(&self) -> bool {
        self.buffer.len() - self.start > Limits::RECORD_BYTES
    }

    /// Gives up the first line of such a record, however long it is.
    fn skip_too_long(&mut self) -> BrokenRecord {
        let broken = self.break_at_line("the row is longer than the 64 MiB that it may have");
        while self.start == self.buffer.len() && !self.buffer.ends_with(b"\n") && !self.ended {
            self.fill();
            let line_end = memchr(b'\n', &self.buffer).map_or(self.buffer.len(), |at| at + 1);
            self.skip(line_end);
        }
        broken
    }

    /// Gives up the line at which the current record starts: what follows may well be rows.
    fn break_at_line(&mut self, reason: &'static str) -> BrokenRecord {
        let rest = &self.buffer[self.start..];
        let line_end = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let text = rest[..line_end.min(SHOWN)].to_vec();
        let broken = BrokenRecord { line: self.line, reason, text };
        self.skip(self.start + line_end);
        broken
    }

    /// Reads on, as much again as there is: at least a chunk, at most what shows that a record is too long.
    fn fill(&mut self) {
        self.buffer.drain(..self.start);
        self.offset += self.start as u64;
        self.start = 0;
        let length = self.buffer.len();
        if self.buffer.capacity() > 8 * CHUNK && length < CHUNK {
            self.buffer.shrink_to(CHUNK);
        }
        let wanted = length.clamp(CHUNK, Limits::RECORD_BYTES + CHUNK - length);
        match self.source.by_ref().take(wanted as u64).read_to_end(&mut self.buffer) {
            Ok(read) if read < wanted => (self.failure, self.ended) = (self.too_short(), true),
            Ok(_) => {}
            // What was read before is still good.
            Err(error) => (self.failure, self.ended) = (Some(error), true),
        }
    }

    /// Says so if the file has ended before the split.
    fn too_short(&self) -> Option<std::io::Error> {
        let read = self.offset + self.buffer.len() as u64;
        let end = self.end.filter(|end| read < *end)?;
        // A split may start behind where the file ends by now.
        let found = std::fs::metadata(&self.name).map_or(read, |file| file.len());
        let message = format!(
            "the file has {found} bytes and had {end} or more when it was found: it has been replaced or cut off"
        );
        Some(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, message))
    }

    fn failed(&self, error: std::io::Error) -> ConnectorError {
        use std::io::ErrorKind;
        let Self { name, line, .. } = self;
        let damaged = matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::InvalidInput | ErrorKind::InvalidData
        ) || self.compression == Compression::Zstd;
        if self.compression == Compression::None || !damaged {
            return ConnectorError::external(
                format!("{name}: cannot read on behind line {}: {error}", line.saturating_sub(1)),
                error,
            );
        }
        let problem = if error.kind() == ErrorKind::UnexpectedEof { "ends too early" } else { "is damaged" };
        let message = format!(
            "{name}: the compressed file {problem}: read up to line {line}, then {error}; expected a complete {} file",
            if self.compression == Compression::Gzip { "gzip" } else { "zstd" },
        );
        ConnectorError { message, whose: Whose::User, source: Some(error.into()) }
    }
}

/// Line breaks in some bytes.
pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

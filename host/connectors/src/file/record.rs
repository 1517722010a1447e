//! Where records of a text format end. Both scanners keep their state between pieces of a file, so that a record
//! may be cut anywhere.

use memchr::{memchr, memchr3, memmem};

/// Finds the ends of records.
#[derive(Clone, Debug)]
pub(crate) enum RecordScanner {
    /// A record ends at a line break.
    Lines,
    /// A record ends at a line break that is not within quotes.
    Csv(CsvScanner),
}

impl RecordScanner {
    /// Goes on in `bytes`: how many of them belong to the current record, its line break included, or none if
    /// all do and it is not yet complete.
    pub(crate) fn next_end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            RecordScanner::Lines => memchr(b'\n', bytes).map(|at| at + 1),
            RecordScanner::Csv(csv) => csv.next_end(bytes),
        }
    }

    /// Forgets the current record.
    pub(crate) fn reset(&mut self) {
        if let RecordScanner::Csv(csv) = self {
            csv.state = State::FieldStart;
            csv.text_behind_quote = false;
        }
    }

    /// Whether a quoted field of the record that has just ended went on behind its closing quote. Readers of CSV
    /// let that pass and differ in what they make of it.
    pub(crate) fn take_text_behind_quote(&mut self) -> bool {
        match self {
            RecordScanner::Lines => false,
            RecordScanner::Csv(csv) => std::mem::take(&mut csv.text_behind_quote),
        }
    }

    /// Whether a record has nothing in it. Spaces are a field of CSV.
    pub(crate) fn is_blank(&self, record: &[u8]) -> bool {
        match self {
            RecordScanner::Lines => record.iter().all(u8::is_ascii_whitespace),
            RecordScanner::Csv(_) => record.iter().all(|b| matches!(b, b'\n' | b'\r')),
        }
    }

    /// Whether the current record is within quotes.
    pub(crate) fn in_quotes(&self) -> bool {
        matches!(self, RecordScanner::Csv(csv) if csv.state == State::Quoted)
    }
}

/// The states of a CSV record that matter for its end: a quote means something at the start of a field and within
/// a quoted one only.
#[derive(Clone, Debug)]
pub(crate) struct CsvScanner {
    delimiter: u8,
    quote: u8,
    state: State,
    text_behind_quote: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    FieldStart,
    Unquoted,
    Quoted,
    /// Behind a quote within a quoted field: its end, or the first half of an escaped quote.
    QuoteInQuoted,
}

impl CsvScanner {
    pub(crate) fn new(delimiter: u8, quote: u8) -> Self {
        Self { delimiter, quote, state: State::FieldStart, text_behind_quote: false }
    }

    fn next_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                State::Quoted => {
                    let quote = memchr(self.quote, &bytes[at..])?;
                    at += quote + 1;
                    self.state = State::QuoteInQuoted;
                }
                State::QuoteInQuoted if bytes[at] == self.quote => {
                    at += 1;
                    self.state = State::Quoted;
                }
                State::QuoteInQuoted => {
                    self.text_behind_quote |= ![self.delimiter, b'\n', b'\r'].contains(&bytes[at]);
                    self.state = State::Unquoted;
                }
                State::FieldStart if bytes[at] == self.quote => {
                    at += 1;
                    self.state = State::Quoted;
                }
                State::FieldStart | State::Unquoted => match self.skip_unquoted(bytes, at) {
                    Skipped::ToQuoted(next) => at = next,
                    Skipped::RecordEnd(end) => return Some(end),
                    Skipped::All => return None,
                },
            }
        }
        None
    }

    /// Goes on outside of quotes to the next opening quote or the end of the record.
    fn skip_unquoted(&mut self, bytes: &[u8], from: usize) -> Skipped {
        let mut at = from;
        while let Some(found) = memchr3(self.quote, b'\n', b'\r', &bytes[at..]) {
            at += found + 1;
            let byte = bytes[at - 1];
            if byte != self.quote {
                self.state = State::FieldStart;
                let crlf = byte == b'\r' && bytes.get(at) == Some(&b'\n');
                return Skipped::RecordEnd(at + usize::from(crlf));
            }
            // A quote within an unquoted field is text.
            if at >= from + 2 && bytes[at - 2] == self.delimiter {
                self.state = State::Quoted;
                return Skipped::ToQuoted(at);
            }
        }
        let ends_with_delimiter = bytes.last() == Some(&self.delimiter);
        self.state = if ends_with_delimiter { State::FieldStart } else { State::Unquoted };
        Skipped::All
    }
}

/// How many fields a record has.
pub(crate) fn count_fields(record: &[u8], delimiter: u8, quote: u8) -> usize {
    fields(record, delimiter, quote).count()
}

/// The fields of a record as they are written, with their quotes.
pub(crate) fn fields(record: &[u8], delimiter: u8, quote: u8) -> impl Iterator<Item = &[u8]> {
    let mut scanner = CsvScanner::new(delimiter, quote);
    let end = record.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    record[..end].split(move |byte| {
        let quoted = scanner.state == State::Quoted;
        scanner.next_end(std::slice::from_ref(byte));
        *byte == delimiter && !quoted
    })
}

/// Which fields of which records are written as two quotes, with nothing between: empty and not missing.
pub(crate) fn quoted_empty_fields(bytes: &[u8], delimiter: u8, quote: u8) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let pair = memmem::Finder::new(&[quote, quote]).into_owned();
    let mut scanner = RecordScanner::Csv(CsvScanner::new(delimiter, quote));
    let (mut rest, mut row) = (bytes, 0);
    while !rest.is_empty() && pair.find(rest).is_some() {
        let (record, behind) = rest.split_at(scanner.next_end(rest).unwrap_or(rest.len()));
        rest = behind;
        if scanner.is_blank(record) {
            continue;
        }
        if pair.find(record).is_some() {
            let empty = fields(record, delimiter, quote).enumerate().filter(|(_, f)| *f == [quote, quote]);
            found.extend(empty.map(|(field, _)| (row, field)));
        }
        row += 1;
    }
    found
}

enum Skipped {
    /// The next byte to look at is within quotes.
    ToQuoted(usize),
    /// The record has this many bytes.
    RecordEnd(usize),
    /// The record goes on in the next piece.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, piece: usize) -> Vec<String> {
        let mut scanner = RecordScanner::Csv(CsvScanner::new(b',', b'"'));
        let (mut records, mut current) = (Vec::new(), Vec::new());
        for mut bytes in text.as_bytes().chunks(piece) {
            while let Some(end) = scanner.next_end(bytes) {
                current.extend_from_slice(&bytes[..end]);
                records.push(String::from_utf8(std::mem::take(&mut current)).expect("was text"));
                bytes = &bytes[end..];
            }
            current.extend_from_slice(bytes);
        }
        if !current.is_empty() {
            records.push(String::from_utf8(current).expect("was text"));
        }
        records
    }

    #[test]
    fn quotes_count_where_they_quote() {
        let text = "a,\"b\nc\",\"d\"\"\n\"\"\"\ne,5\" pipe\n\"x\ny\"z,\n,\"\"\n\"open\n";
        let expected =
            ["a,\"b\nc\",\"d\"\"\n\"\"\"\n", "e,5\" pipe\n", "\"x\ny\"z,\n", ",\"\"\n", "\"open\n"];
        for piece in 1..text.len() {
            assert_eq!(records(text, piece), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn fields_that_are_quoted_and_empty() {
        let text = "a,,\"\"\r\n\n\"\",\"b\"\"\",c\n\"x,\"\",y\",,\"\"\n,,\n\"\"";
        assert_eq!(quoted_empty_fields(text.as_bytes(), b',', b'"'), [(0, 2), (1, 0), (2, 2), (4, 0)]);
        assert_eq!(count_fields(b"a,\"b,c\",\n", b',', b'"'), 3);
    }

    #[test]
    fn every_kind_of_line_break_ends_a_record() {
        assert_eq!(records("a\r\nb\rc\n", 100), ["a\r\n", "b\r", "c\n"]);
    }
}

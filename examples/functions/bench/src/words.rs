//! Workload `wordcount`: lines become (word, 1), and each word's numbers are added up.

use millstream::column::VarValues;
use millstream::{Collector, Columns, Function, Input, Output, Picked, Text, ValueState};

use crate::bytes::positions;

/// Lines of words, one space between two.
#[derive(Columns)]
pub struct Lines {
    line: Text,
}

/// Words, each counted once.
#[derive(Columns)]
pub struct Words {
    word: Text,
    count: Vec<i64>,
}

/// Makes of each line one row a word.
#[millstream::map(columns, carry = "replace")]
pub fn split(lines: Lines) -> Picked<Words> {
    let VarValues { offsets, bytes } = &lines.line.0;
    let spaces = bytes.iter().map(|&byte| usize::from(byte == b' ')).sum::<usize>();
    let mut splitter = Splitter::new(bytes, offsets.len() + spaces);
    for (row, line) in offsets.windows(2).enumerate() {
        splitter.line(row as u32, line[0] as usize, line[1] as usize);
    }
    splitter.finish()
}

/// Copies words next to each other. Most are shorter than a vector register: so whole ones are copied, and what
/// is too much of a word is overwritten by the next.
struct Splitter<'a> {
    bytes: &'a [u8],
    words: Vec<u8>,
    end: usize,
    offsets: Vec<u32>,
    rows: Vec<u32>,
}

impl<'a> Splitter<'a> {
    fn new(bytes: &'a [u8], words: usize) -> Self {
        let mut offsets = Vec::with_capacity(words + 1);
        offsets.push(0);
        Self { bytes, words: vec![0; bytes.len() + 16], end: 0, offsets, rows: Vec::with_capacity(words) }
    }

    #[inline]
    fn line(&mut self, row: u32, start: usize, end: usize) {
        let (mut word, mut at) = (start, start);
        while at < end {
            let mut spaces = self.spaces(at, end);
            while spaces != 0 {
                let space = at + spaces.trailing_zeros() as usize;
                self.word(row, word, space);
                word = space + 1;
                spaces &= spaces - 1;
            }
            at += 64;
        }
        if word < end {
            self.word(row, word, end);
        }
    }

    /// One bit for each space among the 64 bytes from `at` on, but before `end`. So many at once, because a loop
    /// over the words of a whole line is one that the processor can predict.
    #[inline]
    fn spaces(&self, at: usize, end: usize) -> u64 {
        let mut padded = [0; 64];
        let block = match self.bytes.get(at..at + 64).and_then(<[u8]>::first_chunk) {
            Some(block) => block,
            None => {
                let rest = &self.bytes[at..];
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            }
        };
        let parts = block.as_chunks::<16>().0.iter().zip([0, 16, 32, 48]);
        let spaces = parts.fold(0, |spaces, (part, at)| spaces | u64::from(positions(part, b' ')) << at);
        if end - at < 64 { spaces & ((1 << (end - at)) - 1) } else { spaces }
    }

    #[inline]
    fn word(&mut self, row: u32, start: usize, end: usize) {
        let length = end - start;
        let target = &mut self.words[self.end..];
        match (self.bytes.get(start..start + 16), target.first_chunk_mut::<16>()) {
            (Some(source), Some(target)) if length <= 16 => target.copy_from_slice(source),
            _ => target[..length].copy_from_slice(&self.bytes[start..end]),
        }
        self.end += length;
        self.offsets.push(self.end as u32);
        self.rows.push(row);
    }

    fn finish(mut self) -> Picked<Words> {
        self.words.truncate(self.end);
        let count = vec![1; self.rows.len()];
        let word = Text(VarValues { offsets: self.offsets, bytes: self.words });
        Picked { rows: self.rows, columns: Words { word, count } }
    }
}

/// A number of times that a word was seen.
#[derive(Input)]
pub struct Seen {
    count: i64,
}

/// How often the word was seen so far.
#[derive(Output, Debug, PartialEq)]
pub struct Sum {
    count: i64,
}

/// Adds up a word's numbers; the word itself stays in the host.
#[derive(Function)]
pub struct CountWords {
    sum: ValueState<i64>,
}

/// Replaces each row's number by the sum of its key's numbers so far.
#[millstream::process(name = "count", carry = "extend")]
impl CountWords {
    fn process(&mut self, _word: (), seen: Seen, out: &mut Collector<Sum>) {
        let sum = self.sum.get_or_insert_with(|| 0);
        *sum += seen.count;
        out.emit(Sum { count: *sum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    fn words(lines: &[&str]) -> (Vec<u32>, Vec<String>) {
        let mut values = VarValues::default();
        lines.iter().for_each(|line| values.push(line.as_bytes()));
        let Picked { rows, columns } = split(Lines { line: Text(values) });
        assert_eq!(columns.count, vec![1; rows.len()]);
        let word = |row| String::from_utf8_lossy(columns.word.0.row(row)).into_owned();
        (rows.clone(), (0..rows.len()).map(word).collect())
    }

    #[test]
    fn lines_become_words() {
        let (rows, words) = words(&["to be", "", "or", "not"]);
        assert_eq!(rows, [0, 0, 2, 3]);
        assert_eq!(words, ["to", "be", "or", "not"]);
    }

    #[test]
    fn words_of_every_length_stay_whole() {
        let expected: Vec<String> = (1..40).map(|length| "abcdefg".repeat(6)[..length].to_owned()).collect();
        let (_, one_line) = words(&[&expected.join(" ")]);
        assert_eq!(one_line, expected);
        let (_, one_each) = words(&expected.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(one_each, expected);
    }

    #[test]
    fn every_update_is_emitted() {
        let results =
            testing::process::<CountWords>().rows(["a", "b", "a"].map(|word| (word, Seen { count: 1 })));
        assert_eq!(results.rows::<Sum>(), [1, 1, 2].map(|count| Sum { count }));
    }
}

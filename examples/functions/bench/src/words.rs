//! Workload `wordcount`: lines become (word, 1), and each word's numbers are added up.

use millstream::column::VarValues;
use millstream::{Collector, Columns, Function, Input, Output, Picked, Text, ValueState};

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
    let rows = offsets.len() - 1;
    let spaces = bytes.iter().map(|&byte| usize::from(byte == b' ')).sum::<usize>();
    let mut words = VarValues::with_capacity(rows + spaces, bytes.len());
    let mut origins = Vec::with_capacity(rows + spaces);
    for (row, line) in offsets.windows(2).enumerate() {
        let line = &bytes[line[0] as usize..line[1] as usize];
        for word in line.split(|&byte| byte == b' ') {
            words.push(word);
            origins.push(row as u32);
        }
    }
    let count = vec![1; origins.len()];
    Picked { rows: origins, columns: Words { word: Text(words), count } }
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

    #[test]
    fn lines_become_words() {
        let mut lines = VarValues::default();
        lines.push(b"to be");
        lines.push(b"or");
        let words = split(Lines { line: Text(lines) });
        assert_eq!(words.rows, [0, 0, 1]);
        assert_eq!(words.columns.word.0, VarValues { offsets: vec![0, 2, 4, 6], bytes: b"tobeor".to_vec() });
        assert_eq!(words.columns.count, [1, 1, 1]);
    }

    #[test]
    fn every_update_is_emitted() {
        let results =
            testing::process::<CountWords>().rows(["a", "b", "a"].map(|word| (word, Seen { count: 1 })));
        assert_eq!(results.rows::<Sum>(), [1, 1, 2].map(|count| Sum { count }));
    }
}

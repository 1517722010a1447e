//! The words of lines, and how often each was seen so far.

use millstream::{Collector, Function, Input, Output, ValueState};

/// A line of text.
#[derive(Input)]
pub struct Line<'a> {
    /// The line.
    pub line: &'a str,
}

/// A word of it.
#[derive(Output, Debug, PartialEq)]
pub struct Word<'a> {
    /// The word.
    pub word: &'a str,
}

/// Makes of each line one row a word.
#[millstream::map(carry = "replace")]
pub fn split<'a>(line: Line<'a>) -> impl Iterator<Item = Word<'a>> {
    line.line.split_whitespace().map(|word| Word { word })
}

/// How often a word was seen so far.
#[derive(Output, Debug, PartialEq)]
pub struct Seen {
    /// Times.
    pub count: i64,
}

/// Counts words: keyed by the word, which it needs not see.
#[derive(Function)]
pub struct Count {
    count: ValueState<i64>,
}

/// Adds to each row how often its key was seen so far.
#[millstream::process(carry = "extend")]
impl Count {
    fn process(&mut self, _word: (), _row: (), out: &mut Collector<Seen>) {
        let count = self.count.get_or_insert_with(|| 0);
        *count += 1;
        out.emit(Seen { count: *count });
    }
}

millstream::module! {
    name: "wordcount",
    functions: [split, Count],
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::testing;

    #[test]
    fn lines_become_words() {
        let results = testing::map::<split>().run([
            Line { line: " to be  or" },
            Line { line: "" },
            Line { line: "not" },
        ]);
        let words: Vec<_> = results.rows::<Word<'_>>().into_iter().map(|word| word.word).collect();
        assert_eq!(words, ["to", "be", "or", "not"]);
        assert_eq!(results.origins(), [Some(0), Some(0), Some(0), Some(2)]);
    }

    #[test]
    fn every_update_is_emitted_whatever_the_batches() {
        for batch in [1, 2, 100] {
            let mut test = testing::process::<Count>().batches_of(batch);
            let results = test.rows(["to", "be", "or", "not", "to", "be"].map(|word| (word, ())));
            let counts: Vec<_> = results.rows::<Seen>().into_iter().map(|seen| seen.count).collect();
            assert_eq!(counts, [1, 1, 1, 1, 2, 2]);
        }
    }
}

//! `bench-map` and `bench-wordcount`: lines out of a pool of 4,096 that is made once; a batch refers to it.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryViewArray, StringViewArray, UInt32Array};
use arrow_select::take::take;
use millstream_types::{Batch, DataType, Field, Limits, NO_TIME, Schema};

use super::{BASE, Generate, Kind, Numbers};
use crate::mix::{below, mix};

/// One column `line`: record i is line i mod 4,096.
pub(crate) struct Pooled {
    schema: Schema,
    pool: ArrayRef,
}

/// Bytes of a line, more or less.
const LENGTH: usize = 100;

/// Lines in a pool.
const POOL: u64 = 4096;

impl Pooled {
    /// Bytes of four numbers with commas, filled up to 100.
    pub(crate) fn map() -> Self {
        let pool: BinaryViewArray = (0..POOL).map(|k| Some(map_line(k))).collect();
        Self { schema: Schema::new([Field::new("line", DataType::Binary)]), pool: Arc::new(pool) }
    }

    /// Text of ten words out of a vocabulary, small numbers of which are frequent.
    pub(crate) fn wordcount(vocabulary: u64) -> Self {
        let words: Vec<_> = (0..vocabulary).map(word).collect();
        let pool: StringViewArray = (0..POOL).map(|k| Some(words_line(k, &words))).collect();
        Self { schema: Schema::new([Field::new("line", DataType::Utf8)]), pool: Arc::new(pool) }
    }
}

impl Kind for Pooled {
    fn outputs(&self) -> Vec<(String, Schema)> {
        vec![("out".to_owned(), self.schema.clone())]
    }

    fn generator(&self) -> Box<dyn Generate> {
        Box::new(PooledLines { schema: self.schema.clone(), pool: self.pool.clone(), cycle: None })
    }

    fn batch_rows(&self) -> usize {
        Limits::rows_of(LENGTH)
    }
}

struct PooledLines {
    schema: Schema,
    pool: ArrayRef,
    cycle: Option<Cycle>,
}

/// The lines of a subtask's records from its first one on: once around the pool, and as many more as a batch has.
struct Cycle {
    first: u64,
    stride: u64,
    lines: ArrayRef,
}

impl Cycle {
    fn new(pool: &ArrayRef, numbers: &Numbers) -> Self {
        let (first, stride) = (numbers.first, numbers.stride);
        let lines = (0..POOL + Limits::BATCH_ROWS as u64).map(|k| ((first + k * stride) % POOL) as u32);
        let lines =
            take(pool, &UInt32Array::from_iter_values(lines), None).expect("every line is in the pool");
        Self { first, stride, lines }
    }

    /// The lines of these records, if they are of this subtask.
    fn slice(&self, numbers: &Numbers) -> Option<ArrayRef> {
        let behind = numbers.first.checked_sub(self.first)?;
        let same = self.stride == numbers.stride && behind.is_multiple_of(self.stride);
        let offset = (behind / self.stride % POOL) as usize;
        same.then(|| self.lines.slice(offset, numbers.count))
    }
}

impl Generate for PooledLines {
    fn generate(&mut self, numbers: &Numbers) -> Vec<(usize, Batch)> {
        let known = self.cycle.as_ref().and_then(|cycle| cycle.slice(numbers));
        let lines = known.unwrap_or_else(|| {
            let cycle = Cycle::new(&self.pool, numbers);
            let lines = cycle.lines.slice(0, numbers.count);
            self.cycle = Some(cycle);
            lines
        });
        let times = vec![NO_TIME; numbers.count].into();
        vec![(0, Batch::new(&self.schema, vec![lines], times).expect("one column of lines"))]
    }
}

/// Line k: four numbers with zeros before them, and `x` to the end.
fn map_line(k: u64) -> Vec<u8> {
    let r = mix(k);
    let (user, time, amount) = (below(r, 1_000_000), BASE as u64 + k, below(mix(r), 1_000_000));
    let mut line = format!("{k:010},{user:06},{time:013},{amount:06},").into_bytes();
    line.resize(LENGTH, b'x');
    line
}

/// Line k: ten words with a space between. The product of two uniform numbers makes small ones frequent.
fn words_line(k: u64, words: &[String]) -> String {
    let number = |q: u64| {
        let r = mix(10 * k + q);
        let u = ((r >> 48) * ((r >> 32) & 0xffff)) & 0xffff_ffff;
        ((u * words.len() as u64) >> 32) as usize
    };
    (0..10).map(|q| words[number(q)].as_str()).collect::<Vec<_>>().join(" ")
}

/// Word w: some letters, and three digits to base 36 that no other word has.
fn word(w: u64) -> String {
    let mut r = mix(1_000_000 + w);
    let letters = 1 + (r & 7);
    let mut word = String::new();
    for _ in 0..letters {
        r = mix(r);
        word.push(char::from(b'a' + below(r, 26) as u8));
    }
    let number = 36 * 36 + w;
    for digit in [number / (36 * 36), number / 36 % 36, number % 36] {
        word.extend(char::from_digit(digit as u32, 36));
    }
    word
}

/// Words for which three digits suffice.
pub(crate) const VOCABULARY: std::ops::RangeInclusive<u64> = 1..=35 * 36 * 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_goes_on_where_the_last_one_ended_and_copies_nothing() {
        for stride in [1, 2, 3] {
            let kind = Pooled::map();
            let mut generator = kind.generator();
            let mut next = 1;
            for count in [5, 8192, 8192, 1, 100] {
                let mut batches = generator.generate(&Numbers { first: next, stride, count, pace: None });
                let (_, batch) = batches.remove(0);
                let lines: &BinaryViewArray = batch.column(0).as_any().downcast_ref().expect("bytes");
                for (k, line) in lines.iter().enumerate() {
                    assert_eq!(line, Some(&*map_line((next + k as u64 * stride) % POOL)));
                }
                assert_eq!(lines.data_buffers().len(), kind.pool.to_data().buffers().len() - 1);
                next += count as u64 * stride;
            }
        }
    }

    #[test]
    fn lines_are_as_defined() {
        assert_eq!(
            String::from_utf8(map_line(1)).expect("text"),
            "0000000001,566561,1700000000001,368189,".to_owned() + &"x".repeat(61)
        );
        let words: Vec<_> = (0..10_000).map(word).collect();
        let line = words_line(0, &words);
        assert_eq!(
            line,
            "zkxux5h8 pbgneo1s8 gtcdcwg1yj isqim12k cbevjz3yh imzoqv1os qthfpvf4p4 vln3nj b2it qrp2pg"
        );
    }
}

//! Workload `map`: the number between the third and the fourth comma of a line.

use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::{Array, BinaryViewArray, builder::make_view, cast::AsArray};
use arrow_buffer::Buffer;
use millstream_types::Batch;

use super::work::{Out, Work};

pub(super) fn map() -> Box<dyn Work> {
    Box::new(Lines)
}

struct Lines;

impl Work for Lines {
    fn process(&mut self, batch: Batch, out: &mut Out) -> Result<()> {
        out.write(vec![Arc::new(scaled(batch.column(0).as_binary_view())?)])
    }
}

/// Each line copied, with its fourth field scaled.
fn scaled(lines: &BinaryViewArray) -> Result<BinaryViewArray> {
    let total = lines.lengths().map(|length| length as usize).sum();
    let mut bytes = Vec::with_capacity(total);
    let mut views = Vec::with_capacity(lines.len());
    for line in lines {
        let start = bytes.len();
        bytes.extend_from_slice(line.context("lines are not null")?);
        scale(&mut bytes[start..]);
        views.push(make_view(&bytes[start..], 0, start as u32));
    }
    Ok(BinaryViewArray::try_new(views.into(), vec![Buffer::from_vec(bytes)], None)?)
}

fn scale(line: &mut [u8]) {
    let Some(field) = third_comma(line).and_then(|comma| line.get_mut(comma + 1..)) else { return };
    let digits = field.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = field[..digits].iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
    let mut rest = value * 908 / 1000;
    for byte in field[..digits].iter_mut().rev() {
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// The position of the third comma, looked for eight bytes at a time.
fn third_comma(line: &[u8]) -> Option<usize> {
    let (words, rest) = line.as_chunks::<8>();
    let mut missing = 3;
    for (at, word) in words.iter().enumerate() {
        let mut commas = zero_bytes(u64::from_le_bytes(*word) ^ COMMAS);
        let found = commas.count_ones();
        if found >= missing {
            (1..missing).for_each(|_| commas &= commas - 1);
            return Some(at * 8 + commas.trailing_zeros() as usize / 8);
        }
        missing -= found;
    }
    let commas = rest.iter().enumerate().filter(|(_, byte)| **byte == b',');
    commas.map(|(at, _)| words.len() * 8 + at).nth(missing as usize - 1)
}

/// The highest bit of each byte that is zero, and no other: without a carry from one byte into the next.
fn zero_bytes(word: u64) -> u64 {
    !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS)
}

const COMMAS: u64 = u64::from_le_bytes([b','; 8]);
const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_field_is_scaled_wherever_it_stands() {
        for (before, after) in [
            (
                "0000000007,012345,1700000000007,001000,xxxxxxxx",
                "0000000007,012345,1700000000007,000908,xxxxxxxx",
            ),
            (",,,10,", ",,,09,"),
            ("a,b,c,999999", "a,b,c,907999"),
            ("a,b", "a,b"),
        ] {
            let mut line = before.as_bytes().to_vec();
            scale(&mut line);
            assert_eq!(String::from_utf8_lossy(&line), after);
        }
    }
}

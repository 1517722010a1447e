//! Workload `map`: the number between the third and the fourth comma of a line becomes itself times 908/1000.

use millstream::column::VarValues;
use millstream::{Bytes, Columns};

use crate::bytes::positions;

/// Lines of text, as bytes.
#[derive(Columns)]
pub struct Lines {
    line: Bytes,
}

/// Scales the number in the fourth field of each line; a line without one stays as it is.
#[millstream::map(columns, name = "map")]
pub fn parse(mut lines: Lines) -> Lines {
    let VarValues { offsets, bytes } = &mut lines.line.0;
    for line in offsets.windows(2) {
        scale_fourth_field(&mut bytes[line[0] as usize..line[1] as usize]);
    }
    lines
}

#[inline]
fn scale_fourth_field(line: &mut [u8]) {
    let field = match fourth_field_near(line) {
        Some(field) => field,
        None => fourth_field_far(line),
    };
    match line.get_mut(field).map(|field| (<&mut [u8; 6]>::try_from(&mut *field).is_ok(), field)) {
        Some((true, six)) => scale_six(six),
        Some((false, other)) => scale_any(other),
        None => {}
    }
}

/// The fourth field where its commas are among the first 64 bytes.
#[inline]
fn fourth_field_near(line: &[u8]) -> Option<std::ops::Range<usize>> {
    let (chunks, _) = line.get(..64)?.as_chunks::<16>();
    let parts = chunks.iter().zip([0, 16, 32, 48]);
    let mut commas = parts.fold(0, |commas, (chunk, at)| commas | u64::from(positions(chunk, b',')) << at);
    commas &= commas.wrapping_sub(1);
    commas &= commas.wrapping_sub(1);
    let third = commas.trailing_zeros() as usize;
    commas &= commas.wrapping_sub(1);
    (commas != 0).then(|| third + 1..commas.trailing_zeros() as usize)
}

/// The fourth field of any line; empty if there is none, and to the end of the line if it is the last.
#[cold]
fn fourth_field_far(line: &[u8]) -> std::ops::Range<usize> {
    let mut commas = line.iter().enumerate().filter(|(_, byte)| **byte == b',').map(|(at, _)| at);
    match commas.nth(2) {
        Some(third) => third + 1..commas.next().unwrap_or(line.len()),
        None => 0..0,
    }
}

/// Six digits, as the workload has them: no step waits for the one before it.
#[inline]
fn scale_six(field: &mut [u8]) {
    let digit = |at: usize| u32::from(field[at].wrapping_sub(b'0'));
    let pair = |at: usize| digit(at) * 10 + digit(at + 1);
    let value = pair(0) * 10_000 + pair(2) * 100 + pair(4);
    let scaled = (u64::from(value) * 908 / 1000) as u32;
    let (high, low) = (scaled / 1000, scaled % 1000);
    for (part, value) in field.as_chunks_mut::<3>().0.iter_mut().zip([high, low]) {
        *part = [value / 100, value / 10 % 10, value % 10].map(|digit| b'0' + digit as u8);
    }
}

/// Any number of digits.
#[cold]
fn scale_any(field: &mut [u8]) {
    let digit = |&byte: &u8| u64::from(byte.wrapping_sub(b'0'));
    let value = field.iter().fold(0u64, |value, byte| value.wrapping_mul(10).wrapping_add(digit(byte)));
    let mut scaled = value.wrapping_mul(908) / 1000;
    for byte in field.iter_mut().rev() {
        *byte = b'0' + (scaled % 10) as u8;
        scaled /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(line: &str) -> String {
        let mut bytes = line.as_bytes().to_vec();
        scale_fourth_field(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn the_fourth_field_is_scaled() {
        let padding = "x".repeat(61);
        for (before, after) in [("001000", "000908"), ("999999", "907999"), ("000000", "000000"), ("654321", "594123")]
        {
            let line = |amount| format!("0000000007,012345,1700000000007,{amount},{padding}");
            assert_eq!(scaled(&line(before)), line(after));
        }
    }

    #[test]
    fn commas_may_stand_anywhere() {
        assert_eq!(scaled(",,,10,"), ",,,09,");
        assert_eq!(scaled("a,b,c,100"), "a,b,c,090");
        assert_eq!(scaled("0123456789abcde,b,c,1000,x"), "0123456789abcde,b,c,0908,x");
        assert_eq!(scaled("a,b,c,"), "a,b,c,");
        assert_eq!(scaled("a,b"), "a,b");
        assert_eq!(scaled(""), "");
        let far = format!("{},b,c,001000,x", "x".repeat(80));
        assert_eq!(scaled(&far), far.replace("001000", "000908"));
    }
}

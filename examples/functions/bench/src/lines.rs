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
    let Some(field) = third_comma(line).and_then(|comma| line.get_mut(comma + 1..)) else { return };
    match field.first_chunk_mut::<8>() {
        Some(start) if is_six_digits(*start) => *start = scale_six(*start),
        _ => scale_any(field),
    }
}

/// Position of the third comma.
#[inline]
fn third_comma(line: &[u8]) -> Option<usize> {
    let (chunks, rest) = line.as_chunks::<16>();
    let mut missing = 3;
    for (at, chunk) in chunks.iter().enumerate() {
        let mut commas = positions(chunk, b',');
        let found = commas.count_ones();
        if found >= missing {
            (1..missing).for_each(|_| commas &= commas - 1);
            return Some(at * 16 + commas.trailing_zeros() as usize);
        }
        missing -= found;
    }
    let commas = rest.iter().enumerate().filter(|(_, byte)| **byte == b',');
    commas.map(|(at, _)| chunks.len() * 16 + at).nth(missing as usize - 1)
}

/// Whether a field is six digits, as the workload has them: six bytes like `0` to `?`, then a comma.
#[inline]
fn is_six_digits(field: [u8; 8]) -> bool {
    u64::from_le_bytes(field) & 0x00ff_f0f0_f0f0_f0f0 == 0x002c_3030_3030_3030
}

/// Six digits at once: the steps work on all digits, then on pairs, then on fours, within one number.
#[inline]
fn scale_six(field: [u8; 8]) -> [u8; 8] {
    let text = u64::from_le_bytes(field);
    let value = number(text << 16);
    let scaled = (u64::from(value) * 908 / 1000) as u32;
    // Two zeros in front are shifted out, and the two bytes behind the field stay.
    (digits(scaled) >> 16 | text & 0xffff << 48).to_le_bytes()
}

/// Eight digits, the first in the lowest byte, as a number.
#[inline]
fn number(text: u64) -> u32 {
    let digits = text & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    (fours * 10_000 + (fours >> 32)) as u32
}

/// A number below 10^8 as eight digits, the first in the lowest byte.
#[inline]
fn digits(number: u32) -> u64 {
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    // Multiplications for divisions: n * 10,486 >> 20 is n / 100 below 10,000, n * 103 >> 10 is n / 10 below 100.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    (tens | (pairs - tens * 10) << 8) | 0x3030_3030_3030_3030
}

/// Any number of digits up to a comma or the end of the line.
#[cold]
fn scale_any(field: &mut [u8]) {
    let end = field.iter().position(|&byte| byte == b',').unwrap_or(field.len());
    let digit = |&byte: &u8| u64::from(byte.wrapping_sub(b'0'));
    let value =
        field[..end].iter().fold(0u64, |value, byte| value.wrapping_mul(10).wrapping_add(digit(byte)));
    let mut scaled = value.wrapping_mul(908) / 1000;
    for byte in field[..end].iter_mut().rev() {
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
        for (before, after) in
            [("001000", "000908"), ("999999", "907999"), ("000000", "000000"), ("654321", "594123")]
        {
            let line = |amount| format!("0000000007,012345,1700000000007,{amount},{padding}");
            assert_eq!(scaled(&line(before)), line(after));
        }
    }

    #[test]
    fn all_numbers_of_six_digits_are_scaled_alike() {
        for number in (0..1_000_000u32).step_by(7) {
            let mut slow = format!("{number:06}").into_bytes();
            scale_any(&mut slow);
            let fast = scale_six(format!("{number:06},x").into_bytes().try_into().expect("eight bytes"));
            assert_eq!((&fast[..6], &fast[6..]), (slow.as_slice(), b",x".as_slice()), "of {number}");
        }
    }

    #[test]
    fn commas_may_stand_anywhere() {
        assert_eq!(scaled(",,,10,"), ",,,09,");
        assert_eq!(scaled("a,b,c,100"), "a,b,c,090");
        assert_eq!(scaled("a,b,c,12,456,7"), "a,b,c,10,456,7");
        assert_eq!(scaled("0123456789abcde,b,c,1000,x"), "0123456789abcde,b,c,0908,x");
        assert_eq!(scaled("a,b,c,"), "a,b,c,");
        assert_eq!(scaled("a,b"), "a,b");
        assert_eq!(scaled(""), "");
        let far = format!("{},b,c,001000,x", "x".repeat(80));
        assert_eq!(scaled(&far), far.replace("001000", "000908"));
    }
}

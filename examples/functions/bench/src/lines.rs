//! Workload `map`: the number between the third and the fourth comma of a line becomes itself times 908/1000.

use millstream::column::VarValues;
use millstream::{Bytes, Columns};

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

fn scale_fourth_field(line: &mut [u8]) {
    let Some(start) = third_comma(line).map(|comma| comma + 1) else { return };
    let field = &mut line[start..];
    let mut value: u64 = 0;
    let mut digits = 0;
    while let Some(&byte) = field.get(digits).filter(|&&byte| byte != b',') {
        value = value.wrapping_mul(10).wrapping_add(u64::from(byte.wrapping_sub(b'0')));
        digits += 1;
    }
    let mut scaled = value.wrapping_mul(908) / 1000;
    for digit in field[..digits].iter_mut().rev() {
        *digit = b'0' + (scaled % 10) as u8;
        scaled /= 10;
    }
}

/// Position of the third comma, found 16 bytes at a time.
fn third_comma(line: &[u8]) -> Option<usize> {
    let mut missing = 3;
    let (chunks, rest) = line.as_chunks::<16>();
    for (at, chunk) in chunks.iter().enumerate() {
        let mut commas = commas(chunk);
        let found = commas.count_ones();
        if found >= missing {
            for _ in 1..missing {
                commas &= commas - 1;
            }
            return Some(at * 16 + commas.trailing_zeros() as usize);
        }
        missing -= found;
    }
    let commas = rest.iter().enumerate().filter(|(_, byte)| **byte == b',');
    commas.map(|(at, _)| chunks.len() * 16 + at).nth(missing as usize - 1)
}

/// One bit for each comma among 16 bytes.
#[cfg(target_arch = "wasm32")]
fn commas(chunk: &[u8; 16]) -> u32 {
    use core::arch::wasm32::{u8x16_bitmask, u8x16_eq, u8x16_splat, u64x2};
    let [low, high] = [0, 8].map(|at| {
        let mut half = [0; 8];
        half.copy_from_slice(&chunk[at..at + 8]);
        u64::from_le_bytes(half)
    });
    u32::from(u8x16_bitmask(u8x16_eq(u64x2(low, high), u8x16_splat(b','))))
}

/// One bit for each comma among 16 bytes.
#[cfg(not(target_arch = "wasm32"))]
fn commas(chunk: &[u8; 16]) -> u32 {
    chunk.iter().enumerate().fold(0, |mask, (at, &byte)| mask | u32::from(byte == b',') << at)
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
        let line = "0000000007,012345,1700000000007,001000,xxxxxxxx";
        assert_eq!(scaled(line), "0000000007,012345,1700000000007,000908,xxxxxxxx");
    }

    #[test]
    fn commas_may_stand_anywhere() {
        assert_eq!(scaled(",,,10,"), ",,,09,");
        assert_eq!(scaled("a,b,c,100"), "a,b,c,090");
        assert_eq!(scaled("0123456789abcde,b,c,1000,x"), "0123456789abcde,b,c,0908,x");
        assert_eq!(scaled("a,b,c,"), "a,b,c,");
        assert_eq!(scaled("a,b"), "a,b");
        assert_eq!(scaled(""), "");
    }
}

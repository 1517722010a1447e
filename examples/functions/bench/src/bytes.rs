//! Finding a byte, 16 bytes at a time.

/// One bit for each of 16 bytes that is `wanted`, the first byte's the lowest.
#[cfg(target_arch = "wasm32")]
#[inline(always)]
pub(crate) fn positions(chunk: &[u8; 16], wanted: u8) -> u32 {
    use core::arch::wasm32::{u8x16_bitmask, u8x16_eq, u8x16_splat, u64x2};
    let [low, high] = [0, 8].map(|at| {
        let mut half = [0; 8];
        half.copy_from_slice(&chunk[at..at + 8]);
        u64::from_le_bytes(half)
    });
    u32::from(u8x16_bitmask(u8x16_eq(u64x2(low, high), u8x16_splat(wanted))))
}

/// One bit for each of 16 bytes that is `wanted`, the first byte's the lowest.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn positions(chunk: &[u8; 16], wanted: u8) -> u32 {
    chunk.iter().enumerate().fold(0, |mask, (at, &byte)| mask | u32::from(byte == wanted) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_has_its_bit() {
        assert_eq!(positions(b",ab,cdefghijklm,", b','), 0b1000_0000_0000_1001);
        assert_eq!(positions(&[b' '; 16], b' '), 0xffff);
    }
}

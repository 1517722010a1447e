//! The arithmetic that generated records and checksums are defined in, wrapping at 64 bits; see the definitions in
//! `tests/bench/flink/README.md`.

/// The finaliser of splitmix64, of `x` and the golden gamma: a random number for each `x`.
#[inline]
pub(crate) fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number below `k` out of the upper half of a random one. `k` is at most 2^32.
#[inline]
pub(crate) fn below(random: u64, k: u64) -> u64 {
    ((random >> 32) * k) >> 32
}

/// The 64-bit FNV-1a hash.
#[inline]
pub(crate) fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(1), 0x910A_2DEC_8902_5CC1);
        assert_eq!(below(u64::MAX, 26), 25);
        assert_eq!(below(u64::from(u32::MAX), 26), 0);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}

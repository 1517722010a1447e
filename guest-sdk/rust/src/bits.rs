//! Bitmaps: one bit a row, least significant bit first.

/// Whether bit `row` is set; a bit behind the end counts as clear.
#[inline]
pub fn is_set(bitmap: &[u8], row: usize) -> bool {
    bitmap.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
}

/// Grows a bitmap bit by bit.
#[derive(Debug, Default)]
pub struct BitBuilder {
    bytes: Vec<u8>,
    len: usize,
    clear: usize,
}

impl BitBuilder {
    /// Room for so many bits.
    pub fn with_capacity(bits: usize) -> Self {
        Self { bytes: Vec::with_capacity(bits.div_ceil(8)), len: 0, clear: 0 }
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, set: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(set) << (self.len % 8);
        }
        self.len += 1;
        self.clear += usize::from(!set);
    }

    /// The bitmap.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The bitmap as a validity: none where every bit is set.
    pub fn into_validity(self) -> Option<Vec<u8>> {
        (self.clear > 0).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back() {
        let mut bits = BitBuilder::default();
        (0..19).for_each(|row| bits.push(row % 3 == 0));
        let bitmap = bits.finish();
        assert_eq!(bitmap.len(), 3);
        assert!((0..19).all(|row| is_set(&bitmap, row) == (row % 3 == 0)));
        assert!(!is_set(&bitmap, 500));
    }

    #[test]
    fn a_full_validity_is_left_out() {
        let mut bits = BitBuilder::default();
        bits.push(true);
        assert_eq!(bits.into_validity(), None);
    }
}

//! One bit a slot.

use arrow_buffer::BooleanBuffer;

/// Bits by slot; those beyond the end are clear.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: usize,
}

impl Bits {
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> bool {
        self.words.get(slot as usize / WORD).is_some_and(|w| w >> (slot as usize % WORD) & 1 == 1)
    }

    /// Sets or clears a bit and says what it was.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, bit: bool) -> bool {
        let (word, at) = (slot as usize / WORD, slot as usize % WORD);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let was = self.words[word] >> at & 1 == 1;
        self.words[word] = self.words[word] & !(1 << at) | u64::from(bit) << at;
        self.count = self.count + usize::from(bit) - usize::from(was);
        was
    }

    /// Sets bits.
    #[inline]
    pub(crate) fn set_all(&mut self, slots: &[u32]) {
        for &slot in slots {
            match self.words.get_mut(slot as usize / WORD) {
                Some(word) => {
                    let bit = 1 << (slot as usize % WORD);
                    self.count += usize::from(*word & bit == 0);
                    *word |= bit;
                }
                None => _ = self.set(slot, true),
            }
        }
    }

    /// How many bits are set.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The bits of some slots.
    pub(crate) fn gather(&self, slots: &[u32]) -> BooleanBuffer {
        if self.count == 0 {
            return BooleanBuffer::new_unset(slots.len());
        }
        BooleanBuffer::collect_bool(slots.len(), |i| self.get(slots[i]))
    }
}

const WORD: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_and_counted() {
        let mut bits = Bits::default();
        assert!(!bits.set(70, true) && bits.set(70, true) && !bits.set(3, true));
        assert!(bits.get(70) && bits.get(3) && !bits.get(69) && !bits.get(5000));
        assert_eq!(bits.count(), 2);
        assert_eq!(bits.gather(&[70, 4, 3]).iter().collect::<Vec<_>>(), [true, false, true]);
        assert!(bits.set(70, false) && !bits.get(70));
        assert_eq!(bits.count(), 1);
        bits.set_all(&[3, 4, 4, 900]);
        assert_eq!(bits.gather(&[3, 4, 5, 900]).iter().collect::<Vec<_>>(), [true, true, false, true]);
        assert_eq!(bits.count(), 3);
    }
}

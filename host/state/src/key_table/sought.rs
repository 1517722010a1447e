//! Keys that are looked for together.

use millstream_types::EncodedKeys;

use super::{KeyTable, record::Probe};

/// The keys of some rows.
pub(super) trait Sought {
    /// How many there are.
    fn len(&self) -> usize;

    /// The row of key `i`.
    fn row(&self, i: usize) -> u32;

    /// The tag of key `i`.
    fn tag(&self, i: usize) -> u32;

    /// The bytes of key `i`.
    fn key(&self, i: usize) -> &[u8];

    #[inline]
    fn probe(&self, i: usize) -> Probe<'_> {
        Probe::new(self.key(i), self.tag(i))
    }
}

/// The keys of all rows.
impl Sought for EncodedKeys {
    #[inline]
    fn len(&self) -> usize {
        EncodedKeys::len(self)
    }

    #[inline]
    fn row(&self, i: usize) -> u32 {
        i as u32
    }

    #[inline]
    fn tag(&self, i: usize) -> u32 {
        tag_of(self.hash(i))
    }

    #[inline]
    fn key(&self, i: usize) -> &[u8] {
        EncodedKeys::key(self, i)
    }
}

/// The keys of some rows of these.
pub(super) struct OfRows<'a>(pub(super) &'a EncodedKeys, pub(super) &'a [u32]);

impl Sought for OfRows<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.1.len()
    }

    #[inline]
    fn row(&self, i: usize) -> u32 {
        self.1[i]
    }

    #[inline]
    fn tag(&self, i: usize) -> u32 {
        tag_of(self.0.hash(self.1[i] as usize))
    }

    #[inline]
    fn key(&self, i: usize) -> &[u8] {
        self.0.key(self.1[i] as usize)
    }
}

/// The keys at some slots of a table; each is a row.
pub(super) struct OfSlots<'a>(pub(super) &'a KeyTable, pub(super) &'a [u32]);

impl Sought for OfSlots<'_> {
    #[inline]
    fn len(&self) -> usize {
        self.1.len()
    }

    #[inline]
    fn row(&self, i: usize) -> u32 {
        i as u32
    }

    #[inline]
    fn tag(&self, i: usize) -> u32 {
        self.0.records[self.1[i] as usize].tag
    }

    #[inline]
    fn key(&self, i: usize) -> &[u8] {
        self.0.key(self.1[i])
    }
}

/// By what part of its hash a table knows a key: the upper half.
#[inline]
pub(super) fn tag_of(hash: u64) -> u32 {
    (hash >> u32::BITS) as u32
}

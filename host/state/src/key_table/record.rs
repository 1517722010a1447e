//! The keys themselves, by slot.

/// A key at its slot: half a cache line.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(super) struct Record {
    /// The key padded with zeros, or in the first four bytes where a long one is.
    key: [u8; INLINE],
    length: u32,
    pub(super) tag: u32,
    /// The call that touched it last, and its group there.
    pub(super) call: u32,
    pub(super) group: u32,
}

impl Record {
    pub(super) const FREE: Record = Record { key: [0; INLINE], length: VACANT, tag: 0, call: 0, group: 0 };

    /// The record of a key, which goes to `long_keys` if it is a long one.
    pub(super) fn new(probe: &Probe<'_>, long_keys: &mut LongKeys) -> Self {
        let mut record = Self { length: probe.key.len() as u32, tag: probe.tag, ..Self::FREE };
        if probe.key.len() <= INLINE {
            record.key = probe.padded.to_le_bytes();
        } else {
            long_keys.insert(&mut record, probe.key);
        }
        record
    }

    /// Whether there is a key.
    #[inline]
    pub(super) fn is_occupied(&self) -> bool {
        self.length != VACANT
    }

    /// The key.
    #[inline]
    pub(super) fn key<'a>(&'a self, long_keys: &'a LongKeys) -> &'a [u8] {
        match self.length as usize {
            length @ 0..=INLINE => &self.key[..length],
            _ => long_keys.read(self),
        }
    }

    /// Whether the key is the one that is looked for.
    #[inline]
    pub(super) fn holds(&self, probe: &Probe<'_>, long_keys: &LongKeys) -> bool {
        if self.length as usize != probe.key.len() {
            return false;
        }
        if probe.key.len() <= INLINE {
            u128::from_le_bytes(self.key) == probe.padded
        } else {
            long_keys.read(self) == probe.key
        }
    }

    /// Gives the key up.
    pub(super) fn free(&mut self, long_keys: &mut LongKeys) {
        if self.length as usize > INLINE {
            long_keys.remove(self);
        }
        *self = Self::FREE;
    }
}

/// A key that is looked for.
pub(super) struct Probe<'a> {
    key: &'a [u8],
    pub(super) tag: u32,
    /// A short key as a number, padded with zeros behind.
    padded: u128,
}

impl<'a> Probe<'a> {
    #[inline]
    pub(super) fn new(key: &'a [u8], tag: u32) -> Self {
        Self { key, tag, padded: pad(key) }
    }
}

/// A key of up to [`INLINE`] bytes as a little-endian number. Two loads that overlap cover any length from 8 to 16,
/// where a copy of unknown length would be a call.
#[inline]
fn pad(key: &[u8]) -> u128 {
    if let (Some(front), Some(back)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        let shift = 8 * (key.len() - 8).min(8);
        return u128::from(u64::from_le_bytes(*front)) | u128::from(u64::from_le_bytes(*back)) << shift;
    }
    if let (Some(front), Some(back)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        let back = u64::from(u32::from_le_bytes(*back)) << (8 * (key.len() - 4));
        return u128::from(u64::from(u32::from_le_bytes(*front)) | back);
    }
    key.iter().rev().fold(0, |number, &byte| number << 8 | u128::from(byte))
}

/// Keys that do not fit into a record.
#[derive(Clone, Debug, Default)]
pub(super) struct LongKeys {
    keys: Vec<Box<[u8]>>,
    free: Vec<u32>,
    bytes: usize,
}

impl LongKeys {
    /// Forgets all keys.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.free.clear();
        self.bytes = 0;
    }

    /// About what they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.keys.len() * size_of::<Box<[u8]>>()
    }

    /// How many there is room for.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.keys.len()
    }

    fn insert(&mut self, record: &mut Record, key: &[u8]) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.keys.push(Box::default());
            self.keys.len() as u32 - 1
        });
        self.bytes += key.len();
        self.keys[index as usize] = key.into();
        record.key[..4].copy_from_slice(&index.to_le_bytes());
    }

    fn read(&self, record: &Record) -> &[u8] {
        &self.keys[Self::index(record) as usize]
    }

    fn remove(&mut self, record: &Record) {
        let index = Self::index(record);
        self.bytes -= std::mem::take(&mut self.keys[index as usize]).len();
        self.free.push(index);
    }

    fn index(record: &Record) -> u32 {
        let [a, b, c, d, ..] = record.key;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Longest key that lies in its record.
const INLINE: usize = 16;
/// Length of a record without a key.
const VACANT: u32 = u32::MAX;

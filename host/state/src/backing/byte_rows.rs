//! Many short strings of bytes in one piece of memory.

/// Strings of bytes, one behind the other.
#[derive(Clone, Debug)]
pub struct ByteRows {
    /// Where each ends; the first starts at 0.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Default for ByteRows {
    fn default() -> Self {
        Self::new()
    }
}

impl ByteRows {
    /// None.
    pub fn new() -> Self {
        Self { ends: Vec::new(), bytes: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// All of them in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Adds one that `write` appends.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Their positions in the order of their bytes, stable.
    pub fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by(|&a, &b| self.get(a as usize).cmp(self.get(b as usize)));
        order
    }

    /// Those at some positions.
    pub fn picked(&self, positions: &[u32]) -> Self {
        let mut picked = Self { ends: Vec::with_capacity(positions.len()), bytes: Vec::new() };
        picked.bytes.reserve(self.bytes.len());
        positions.iter().for_each(|&at| picked.push_with(|out| out.extend_from_slice(self.get(at as usize))));
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRows;

    #[test]
    fn rows_are_sorted_and_picked() {
        let mut rows = ByteRows::new();
        for row in [&b"b"[..], b"", b"ab", b"b"] {
            rows.push_with(|out| out.extend_from_slice(row));
        }
        assert_eq!(rows.order(), [1, 2, 0, 3]);
        let sorted = rows.picked(&rows.order());
        assert_eq!(sorted.iter().collect::<Vec<_>>(), [&b""[..], b"ab", b"b", b"b"]);
    }
}

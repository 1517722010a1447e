//! The entries of a bucket of the wheel, in chunks.
//!
//! A bucket may hold a million entries for a while and is then dealt out to others. Its chunks are filled again by
//! these as they become free, so that all buckets together take what their entries do, and none is copied as it grows.

use super::Entry;

/// Entries in no order.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// The earliest time of an entry; the end of time if there is none.
    pub(super) earliest: i64,
    chunks: Vec<Chunk>,
}

/// Some entries: the lower half of the time, which is all in which those of a bucket differ, and the slot.
pub(super) type Chunk = Vec<(u32, u32)>;

impl Bucket {
    pub(super) const EMPTY: Bucket = Bucket { earliest: i64::MAX, chunks: Vec::new() };

    #[inline]
    pub(super) fn push(&mut self, entry: Entry, pool: &mut Pool) {
        self.earliest = self.earliest.min(entry.time);
        debug_assert_eq!(self.earliest >> HALF, entry.time >> HALF, "times differ in their lower half only");
        let packed = (entry.time as u32, entry.slot);
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(packed),
            _ => self.chunks.push(pool.chunk_of(packed)),
        }
    }

    /// How many chunks there are.
    #[cfg(test)]
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Takes some of the entries out.
    pub(super) fn take_chunk(&mut self) -> Option<Chunk> {
        self.chunks.pop()
    }
}

/// The entries of a chunk of a bucket whose earliest time was this.
pub(super) fn entries_of(chunk: &Chunk, earliest: i64) -> impl Iterator<Item = Entry> {
    let upper = earliest >> HALF << HALF;
    chunk.iter().map(move |&(lower, slot)| Entry { time: upper | i64::from(lower), slot })
}

/// Chunks that are not in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    chunks: Vec<Chunk>,
}

impl Pool {
    #[cold]
    fn chunk_of(&mut self, first: (u32, u32)) -> Chunk {
        let mut chunk = self.chunks.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK));
        chunk.push(first);
        chunk
    }

    pub(super) fn give_back(&mut self, mut chunk: Chunk) {
        if self.chunks.len() < POOLED {
            chunk.clear();
            self.chunks.push(chunk);
        }
    }
}

/// Entries of a chunk, 2 KiB.
const CHUNK: usize = 256;
/// Chunks that are kept for later, 512 KiB.
const POOLED: usize = 256;
/// Bits of half a time.
const HALF: u32 = 32;

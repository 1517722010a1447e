//! Tags to slots: open addressing with linear probing.
//!
//! Eight bytes an entry, a tag and a slot. The tag's top bits are the entry's home, so that growing is a walk from front
//! to back. Invariants: at most half of the entries are used; between an entry and its home no entry is empty (removal
//! moves entries back, there are no tombstones).

use crate::prefetch::prefetch;

/// Slots by tag; several slots may have the same tag.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    entries: Vec<Entry>,
    /// Moves a tag's top bits down to a position.
    shift: u32,
}

impl Directory {
    pub(super) fn new() -> Self {
        Self::of_size(SMALLEST)
    }

    /// An empty directory of a size that is a power of two, at most 2^32.
    fn of_size(size: usize) -> Self {
        Self { entries: vec![Entry::EMPTY; size], shift: u32::BITS - size.trailing_zeros() }
    }

    /// How many entries it takes without growing.
    pub(super) fn capacity(&self) -> usize {
        self.entries.len() / 2
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>()
    }

    /// Forgets all entries and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.entries.fill(Entry::EMPTY);
    }

    /// Becomes a copy of another directory.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.entries.clone_from(&other.entries);
        self.shift = other.shift;
    }

    /// Makes room for `count` entries in all.
    #[inline]
    pub(super) fn reserve(&mut self, count: usize) {
        if count * 2 > self.entries.len() {
            self.grow((count * 2).next_power_of_two());
        }
    }

    #[cold]
    fn grow(&mut self, size: usize) {
        let entries = std::mem::replace(self, Self::of_size(size)).entries;
        for entry in entries.into_iter().filter(|&e| e != Entry::EMPTY) {
            let mut at = self.home(entry.tag());
            while self.entries[at] != Entry::EMPTY {
                at = self.next(at);
            }
            self.entries[at] = entry;
        }
    }

    /// Asks for the memory where a tag's search starts.
    #[inline]
    pub(super) fn prefetch(&self, tag: u32) {
        prefetch(&self.entries, self.home(tag));
    }

    /// The first slot with this tag, which all but once in thousands is the only one; [`EMPTY_SLOT`] if there is none.
    #[inline]
    pub(super) fn candidate(&self, tag: u32) -> u32 {
        let mut at = self.home(tag);
        loop {
            let entry = self.entries[at];
            if entry.tag() == tag || entry == Entry::EMPTY {
                return entry.slot();
            }
            at = self.next(at);
        }
    }

    /// The slot with this tag of which `is_it` is true, or the free position where it belongs.
    #[inline]
    pub(super) fn find(&self, tag: u32, is_it: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut at = self.home(tag);
        loop {
            let entry = self.entries[at];
            if entry == Entry::EMPTY {
                return Err(at);
            }
            if entry.tag() == tag && is_it(entry.slot()) {
                return Ok(entry.slot());
            }
            at = self.next(at);
        }
    }

    /// Puts a slot at a free position that [`Directory::find`] named.
    #[inline]
    pub(super) fn put(&mut self, at: usize, tag: u32, slot: u32) {
        self.entries[at] = Entry::new(tag, slot);
    }

    /// Removes a slot that is there, and moves the entries behind it back, so that no search ends early.
    pub(super) fn remove(&mut self, tag: u32, slot: u32) {
        let mask = self.entries.len() - 1;
        let mut hole = self.home(tag);
        while self.entries[hole].slot() != slot {
            hole = self.next(hole);
        }
        let mut at = hole;
        loop {
            at = self.next(at);
            let entry = self.entries[at];
            if entry == Entry::EMPTY {
                break;
            }
            let from_home = at.wrapping_sub(self.home(entry.tag())) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = Entry::EMPTY;
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        (tag >> self.shift) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }
}

/// A tag and a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u64);

impl Entry {
    const EMPTY: Entry = Entry(u64::MAX);

    fn new(tag: u32, slot: u32) -> Self {
        Self(u64::from(tag) << u32::BITS | u64::from(slot))
    }

    fn tag(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }

    fn slot(self) -> u32 {
        self.0 as u32
    }
}

/// The slot of an empty entry.
pub(super) const EMPTY_SLOT: u32 = u32::MAX;
/// Entries of an empty directory.
const SMALLEST: usize = 16;

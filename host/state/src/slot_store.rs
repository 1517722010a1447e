//! What is kept by slot for the keys of windows or for sessions.

use millstream_types::Column;

use crate::snapshot::Stored;

/// Something a slot, or nothing.
pub(crate) trait SlotStore: Send + Sized {
    /// An empty store of rows of these columns.
    fn new(columns: &[Column]) -> Self;

    /// Makes room for slots below `slots`.
    fn grow(&mut self, slots: usize);

    /// Forgets what a slot has.
    fn remove(&mut self, slot: u32);
}

/// What windows keep: every key of theirs has something.
pub(crate) trait WindowStore: SlotStore + Stored {
    /// Whether a key may have something in a store and more of it in memory, which came later. Otherwise what it has is
    /// read before it is written.
    const IN_PIECES: bool;

    /// The bytes of memory that a slot takes, and those that all of them take elsewhere.
    fn bytes(&self) -> (usize, usize);

    /// Forgets all slots and keeps the memory.
    fn clear(&mut self);

    /// Becomes a copy of another store.
    fn copy_from(&mut self, other: &Self);
}

/// What sessions keep: new ones have nothing until their call has ended.
pub(crate) trait SessionStore: SlotStore + Stored {
    /// The bytes of memory that a slot takes, and those that all of them take elsewhere.
    fn bytes(&self) -> (usize, usize);

    /// Whether a slot has anything.
    fn is_present(&self, slot: u32) -> bool;
}

//! What lies behind the cache of a [`crate::CachedBackend`]: ordered tables of bytes, usually on disk.
//!
//! The cache asks for many keys at once and in order, and hands over what has changed as one batch, as that is what a
//! store on disk is good at. It never asks for what it holds itself.

mod byte_rows;
#[cfg(any(test, feature = "conformance"))]
mod in_memory;

use std::ops::ControlFlow;

use millstream_types::StateFiles;

use crate::StateError;

pub use byte_rows::ByteRows;
#[cfg(any(test, feature = "conformance"))]
pub use in_memory::InMemoryStore;

/// A table of a store: keys in the order of their bytes, each with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// A row a key, with its values, lists, timers and the sizes of its maps.
    Keys,
    /// The earliest timer of each key, in order of time.
    Timers,
    /// The entries of a map state, by its position among the states.
    Map(usize),
}

/// Takes what a read has found: the position of the key, and its value.
pub type Found<'a> = dyn FnMut(usize, &[u8]) -> Result<(), StateError> + 'a;

/// Takes the keys of a scan with their values, and says whether it goes on.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StateError> + 'a;

/// Ordered tables of bytes, to be read.
pub trait ReadTables: Send {
    /// Reads keys, which ascend; those that are not there are passed over.
    fn read(&mut self, table: Table, keys: &ByteRows, found: &mut Found<'_>) -> Result<(), StateError>;

    /// Visits the keys from `from` on in order, up to before `until` if that is given.
    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        until: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StateError>;
}

/// Ordered tables of bytes that one subtask reads and writes.
///
/// Writes are staged and take effect together with [`BackingStore::apply`]; reads and scans see what has been applied.
pub trait BackingStore: ReadTables {
    /// Stages a value.
    fn put(&mut self, table: Table, key: &[u8], value: &[u8]);

    /// Stages that a key goes.
    fn delete(&mut self, table: Table, key: &[u8]);

    /// Stages that all keys from `from` up to before `until` go.
    fn delete_range(&mut self, table: Table, from: &[u8], until: &[u8]);

    /// Applies what has been staged, all of it or nothing, and forgets it.
    fn apply(&mut self) -> Result<(), StateError>;

    /// An image of all that has been applied: files that stay as they are, whatever is written afterwards. Those that an
    /// earlier image has as well have the same name there, and a name never stands for two files.
    fn image(&mut self) -> Result<StateFiles, StateError>;

    /// Takes up what an image of a store with the same tables has. This one is empty.
    fn adopt(&mut self, files: &StateFiles) -> Result<(), StateError>;

    /// Opens an image beside this store, to be read only.
    fn open(&self, files: &StateFiles) -> Result<Box<dyn ReadTables>, StateError>;
}

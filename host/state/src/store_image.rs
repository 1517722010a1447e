//! Images of stores as parts of a snapshot: what the cache hands over once it has evicted keys.
//!
//! A part of the form [`StateForm::Store`](millstream_types::StateForm::Store) has the files of a store, and a
//! [`StoreHeader`] in its one chunk. A backend that keeps the same states in the same kind of store takes the files as
//! they are, or copies the rows of some key groups; for all others an [`ImageReader`] writes the chunks that a backend in
//! memory would have written, a key group at a time.

mod header;
mod reader;
mod windows;

pub use header::{KEYED_STORE, StoreHeader, StoredState};
pub use reader::{ImageReader, WriteChunk};

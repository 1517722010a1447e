//! State of keys, windows and subtasks, and timers, which are state too.
//!
//! Every call is a batch call: a function names many keys at once by their position among the distinct keys of its
//! current call. Reads see the call's own writes; writes and timers apply together on `ok` and not at all otherwise.

mod arrays;
mod backend;
mod backing;
mod bits;
mod cached_backend;
mod cell_store;
mod changes;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod context;
mod error;
mod fold;
mod grouping;
mod join;
mod key_table;
mod list_state;
mod list_store;
mod map_state;
mod memory_accumulators;
mod memory_backend;
mod memory_contents;
mod memory_sessions;
mod namespaces;
mod operator_state;
mod overflow;
mod prefetch;
mod row_codec;
mod row_store;
mod session_state;
mod sessions;
mod shape;
mod slot_store;
mod snapshot;
mod store_image;
mod stored;
mod timer_wheel;
mod timers;
mod value_state;
mod window_state;
#[cfg(test)]
mod window_tests;

pub use backend::{KeyedBackend, MapKeys};
#[cfg(any(test, feature = "conformance"))]
pub use backing::InMemoryStore;
pub use backing::{BackingStore, ByteRows, Found, ReadTables, Table, Visit};
pub use cached_backend::{CacheOptions, CachedBackend};
pub use context::{KeyedContext, StateId};
pub use error::StateError;
pub use fold::{fold, folded};
pub use grouping::Grouping;
pub use join::columns as join_columns;
pub use key_table::KeyTable;
pub use memory_accumulators::MemoryAccumulators;
pub use memory_backend::MemoryBackend;
pub use memory_contents::MemoryContents;
pub use memory_sessions::{MemorySessionAccumulators, MemorySessionContents};
pub use operator_state::OperatorState;
pub use overflow::{Overflow, Overflows};
pub use row_codec::ROW_FORMAT;
pub use session_state::{SessionAccumulators, SessionContents, SessionSlice, SessionState};
pub use snapshot::{EVENT_TIMERS, EXPIRIES, PROCESSING_TIMERS, item_chunks, items_of};
pub use store_image::{ImageReader, KEYED_STORE, StoreHeader, StoredState, WriteChunk};
pub use stored::{
    ChannelContent, decode_channel, encode_channel, evolve_part, replace_rows, rows_of, show_part,
};
pub use window_state::{
    AccumulatorSlice, CallWindow, ContentSlice, Cursor, MergeStep, StateName, WindowAccumulators,
    WindowContents, WindowState,
};

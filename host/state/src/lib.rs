//! State of keys, windows and subtasks, and timers, which are state too.
//!
//! Every call is a batch call: a function names many keys at once by their position among the distinct keys of its
//! current call. Reads see the call's own writes; writes and timers apply together on `ok` and not at all otherwise.

mod error;
mod operator_state;
mod context;
mod grouping;
mod key_table;
mod prefetch;
mod bits;
mod column_store;
mod cell_store;
mod shape;
mod window_state;
mod namespaces;
mod memory_accumulators;

pub use context::{KeyedContext, StateId};
pub use error::StateError;
pub use grouping::Grouping;
pub use key_table::KeyTable;
pub use memory_accumulators::MemoryAccumulators;
pub use operator_state::OperatorState;
pub use window_state::{
    AccumulatorSlice, CallWindow, ContentSlice, Cursor, MergeStep, WindowAccumulators, WindowContents, WindowState,
};

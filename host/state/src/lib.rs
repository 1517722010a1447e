//! State of keys and of subtasks, and timers, which are state too.
//!
//! Every call is a batch call: a function names many keys at once by their position among the distinct keys of its
//! current call. Reads see the call's own writes; writes and timers apply together on `ok` and not at all otherwise.

mod error;
mod operator_state;
mod context;

pub use context::{KeyedContext, StateId};
pub use error::StateError;
pub use operator_state::OperatorState;

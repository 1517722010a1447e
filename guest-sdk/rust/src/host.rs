//! The host, as the rest of the SDK calls it: imports of the component on WebAssembly, a host in memory
//! natively.

#[cfg(not(target_family = "wasm"))]
pub(crate) mod native;
#[cfg(target_family = "wasm")]
pub(crate) mod wasm;

#[cfg(not(target_family = "wasm"))]
use self::native as current;
#[cfg(target_family = "wasm")]
use self::wasm as current;

pub(crate) use self::current::{
    ListHandle, MapHandle, OperatorHandle, ValueHandle, clear_timers, count, gauge, log, now, parameter,
    random, set_timers, task,
};

use crate::column::{Batch, VarValues};

/// Stored values of some keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// A set bit means that the key has a value.
    pub present: Vec<u8>,
    /// The values; those of keys without one mean nothing.
    pub values: Batch,
}

/// Stored lists of some keys: run i is `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Runs {
    pub(crate) offsets: Vec<u32>,
    pub(crate) items: Batch,
}

/// Stored map entries of some keys: those of key i are `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Entries {
    pub(crate) offsets: Vec<u32>,
    pub(crate) map_keys: VarValues,
    pub(crate) values: Batch,
}

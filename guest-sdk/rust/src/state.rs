//! Keyed state: handles that a function holds, each with a cache of the call's keys in front of the host.
//!
//! User code runs a row at a time; the host is called a batch at a time. So a handle reads all keys of a call
//! at its first use, serves every row from memory, and writes what changed back when the call ends. A call that
//! fails writes nothing.

mod list;
mod map;
mod map_key;
mod migrate;
mod operator;
mod value;

pub use self::list::ListState;
pub use self::map::MapState;
pub use self::map_key::MapKey;
pub use self::migrate::{Migrate, migration};
pub use self::operator::{OperatorState, UnionState};
pub use self::value::ValueState;

use crate::column::{Batch, Mismatch};
use crate::manifest::{StateKind, StateSpec};
use crate::row::{Input, Output, State};

/// A state that a function's struct holds; `#[derive(Function)]` calls it.
pub trait Handle: Sized {
    /// Whether each key has a value of its own.
    const KEYED: bool = true;
    /// What the manifest says of it.
    fn spec(name: &str) -> StateSpec;
    /// Opens it.
    fn open(name: &str) -> Result<Self, String>;
    /// Starts a call with so many keys; what an earlier call left is gone.
    fn begin(&mut self, keys: usize);
    /// Says which of the call's keys is the current one.
    fn select(&mut self, key: usize);
    /// Ends a call: writes back what changed.
    fn flush(&mut self);
}

/// What the manifest says of a state of values of a type.
fn spec_of<T: State>(name: &str, kind: StateKind) -> StateSpec {
    let (columns, migrations) = (<T as Input>::columns("value"), T::migrations());
    StateSpec { name: name.to_owned(), kind, columns, version: T::VERSION, migrations }
}

/// Positions of all of a call's keys.
fn all_keys(keys: usize) -> Vec<u32> {
    (0..keys as u32).collect()
}

/// Rows of a batch that the host sent for a state. That they do not fit is a fault of the host: it knows the
/// columns from the manifest, and a stored value of another version does not reach the function.
fn rows_of<T: State>(batch: &Batch, name: &str) -> Vec<T> {
    let read = || -> Result<Vec<T>, Mismatch> {
        let reader = T::reader(batch)?;
        Ok((0..batch.rows).map(|row| T::read(&reader, row)).collect())
    };
    match read() {
        Ok(rows) => rows,
        Err(mismatch) => panic!("state `{name}`: {mismatch}"),
    }
}

/// Rows as a batch.
fn batch_of<T: Output>(rows: impl ExactSizeIterator<Item = T>) -> Batch {
    let count = rows.len();
    let mut builder = T::builder(count);
    rows.for_each(|row| row.append_to(&mut builder));
    Batch { rows: count, columns: T::finish(builder) }
}

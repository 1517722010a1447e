//! Stored values of earlier versions.

use super::batch_of;
use crate::column::{Batch, Mismatch};
use crate::manifest::Migration;
use crate::row::{Input, State};

/// A state that takes stored values of version `FROM` over. `#[millstream::migrate(from = 1)]` implements it for what a
/// function from the old type to the new one returns.
pub trait Migrate<const FROM: u32>: State {
    /// The type in that version.
    type Stored: State;

    /// A value of that version as one of this.
    fn migrate(stored: Self::Stored) -> Self;
}

/// What the manifest and the component have of a [`Migrate`].
#[doc(hidden)]
pub fn migration<T: Migrate<FROM>, const FROM: u32>() -> Migration {
    Migration { from: FROM, rows: rows::<T, FROM> }
}

fn rows<T: Migrate<FROM>, const FROM: u32>(stored: &Batch) -> Result<Batch, Mismatch> {
    let reader = <T::Stored as Input>::reader(stored)?;
    let migrate = |row| T::migrate(<T::Stored as Input>::read(&reader, row));
    Ok(batch_of((0..stored.rows).map(migrate)))
}

//! Functions that misbehave in ways that the SDK allows: each does one thing that the host has to survive.

mod endless;
mod panics;

pub use endless::{Dawdler, Recursor, allocates, floods_the_log, loops};
pub use panics::{OpenPanics, TimerPanics, panics_on_open, panics_on_row, poison};

millstream::module! {
    name: "hostile",
    functions: [
        panics_on_open,
        panics_on_row,
        poison,
        OpenPanics,
        TimerPanics,
        loops,
        allocates,
        Recursor,
        floods_the_log,
        Dawdler,
    ],
}

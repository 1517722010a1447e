//! What the inner parts of the engine cost.
//!
//! A *part* ([`Part`]) is a piece of the path of a row on which nothing else happens: a call into a guest, columns in
//! and out, a hash exchange, keyed state, a window, an instance. `cargo bench -p millstream-costs` times the parts.
//! `cargo xtask costs` counts their instructions and allocations and holds them to `costs.toml`: a clock says little on
//! a machine that others use too, whereas counts are the same wherever and whenever they are taken.
//!
//! The guests are written by hand in the text form of WebAssembly (`guests/`), so that no compiler of guests has a say
//! in the counts.

mod allocations;
mod bars;
mod count;
mod guest;
mod instructions;
mod parts;
mod support;

pub use bars::{Bar, Bars, Regression};
pub use count::{Counts, allocations};
pub use instructions::{Unavailable, count_instructions, run_sections};
pub use parts::{PARTS, Part, Work};

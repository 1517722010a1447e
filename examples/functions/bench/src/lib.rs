//! The functions of the benchmark's workloads, as its README defines them.
//!
//! Those that touch every byte of a record are functions over whole columns; the others are rows.

mod bytes;
mod keyed;
mod lines;
mod shuffle;
mod words;

pub use keyed::{CountWithTimer, WindowStats};
pub use lines::parse;
pub use shuffle::bump;
pub use words::{CountWords, split};

millstream::module! {
    name: "bench",
    functions: [parse, bump, split, CountWords, WindowStats, CountWithTimer],
}

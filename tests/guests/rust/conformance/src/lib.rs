//! Functions that use all of the interface, so that tests of the host have something to call.

mod context;
mod keyed;
mod rows;
mod subtask;
mod windows;

pub use context::{chance, configured, measured};
pub use keyed::{Matcher, Registers};
pub use rows::{doubled, event_times, exploded, kept, nullable_types, plain_types, refused};
pub use subtask::Totals;
pub use windows::{Joined, contents, whole};

millstream::module! {
    name: "conformance",
    functions: [
        plain_types,
        nullable_types,
        doubled,
        event_times,
        exploded,
        kept,
        refused,
        chance,
        configured,
        measured,
        Registers,
        Matcher,
        Totals,
        Joined,
        contents,
        whole,
    ],
}

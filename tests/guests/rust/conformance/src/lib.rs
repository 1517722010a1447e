//! Functions that use all of the interface, so that tests of the host have something to call.

mod context;
mod keyed;
mod lifecycle;
mod rows;
mod subtask;
mod windows;

pub use context::{chance, configured, measured, place};
pub use keyed::{Matcher, Registers, Reminder};
pub use lifecycle::{Longest, Positions, Summed};
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
        place,
        configured,
        measured,
        Registers,
        Matcher,
        Reminder,
        Totals,
        Positions,
        Summed,
        Longest,
        Joined,
        contents,
        whole,
    ],
}

//! Functions over the flights that left New York in 2013: one of each kind.

mod departed;

pub use departed::{known_planes, only_delayed};

millstream::module! {
    name: "flights",
    functions: [known_planes, only_delayed],
}

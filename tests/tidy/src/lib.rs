//! Keeps the repository in the shape that its documents promise: which crate may use which, what a file looks like,
//! where things are. There is nothing here but tests.
//!
//! Rules are data at the top of their file. A rule that has exceptions lists each with its reason, and an exception
//! that nothing needs any more fails as well.

#[cfg(test)]
mod crates;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod repository;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod sources;

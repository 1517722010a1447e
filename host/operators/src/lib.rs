//! The built-in operators: map, keyed process, windows, watermark, sink.
//!
//! Each is made of a spec, in which everything has been resolved to positions, types and ports, of the user's
//! function where it has one, and of the context of its subtask. No operator knows what a function is written in or
//! where it runs.

mod assemble;
mod json_row;
mod project;
mod row_errors;
#[cfg(test)]
mod test_support;

pub use assemble::{OutputColumn, OutputSpec, PortLayout};
pub use project::{Projected, ProjectionSpec, ReadColumn, without};
pub use row_errors::{RowErrorSpec, RowErrors, dead_letter_schema};

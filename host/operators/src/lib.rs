//! The built-in operators: map, keyed process, windows, watermark, sink.
//!
//! Each is made of a spec, in which everything has been resolved to positions, types and ports, of the user's
//! function where it has one, and of the context of its subtask. No operator knows what a function is written in or
//! where it runs.

mod alignment;
mod assemble;
mod call;
mod json_row;
pub mod kept;
mod keyed;
mod map;
mod migrate;
mod process;
mod project;
mod row_errors;
mod sink;
mod source;
mod subtask_state;
#[cfg(test)]
mod test_support;
mod time_range;
mod union;
mod watermark;
mod window;

pub use alignment::{AlignmentGroup, AlignmentMember};
pub use assemble::{OutputColumn, OutputSpec, PortLayout};
pub use call::Calls;
pub use keyed::{DeclaredKey, KeySpec};
pub use map::{MapOperator, MapSpec, OnTrap};
pub use process::{ProcessInput, ProcessOperator, ProcessSpec, TimerSpec};
pub use project::{Projected, ProjectionSpec, ReadColumn, without};
pub use row_errors::{RowErrorSpec, RowErrors, dead_letter_schema};
pub use sink::{SinkOperator, SinkSpec};
pub use source::{ReaderOperator, SourceSpec, SourceTimes};
pub use union::UnionOperator;
pub use watermark::{BoundedOutOfOrderness, TimeAssigner, WatermarkOperator, WatermarkSpec};
pub use window::{
    FIRED_ROWS, KeyColumn, Trigger, WindowAssigner, WindowBounds, WindowFunction, WindowSpec, window_operator,
};

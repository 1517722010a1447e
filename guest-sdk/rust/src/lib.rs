//! Write Millstream functions in Rust.
#[doc(hidden)]
pub mod __private {
    pub use crate::aggregate::{accumulated, accumulators, merge};
    pub use crate::column::{check_positions, check_rows, check_runs};
    pub use crate::columns::{Taken, column_data, columns_outcome};
    pub use crate::context::log;
    pub use crate::function::Times;
    pub use crate::parameters::{read as parameter_read, spec as parameter_spec};
    pub use crate::reject::Rejections;
    pub use crate::row::column;

    #[cfg(target_family = "wasm")]
    pub use crate::component::{Component, bindings, bindings::export};
}

mod aggregate;
pub mod bits;
pub mod column;
mod columns;
#[cfg(target_family = "wasm")]
mod component;
mod context;
mod field;
pub mod function;
mod host;
pub mod manifest;
mod outcome;
mod parameters;
mod reject;
mod row;
mod state;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod time;
mod timers;

pub use millstream_macros::{
    Columns, Function, Input, Output, Parameters, State, aggregate, map, module, process, window,
};

pub use self::columns::{Bytes, ColumnData, Columns, Nullable, Picked, Text, Timestamps};
pub use self::context::{Context, Level, TaskInfo};
pub use self::field::{BytesView, Field, OptionalBuilder, OptionalView, Postcard, TextView};
pub use self::host::Cells;
pub use self::outcome::Collector;
pub use self::parameters::{ParameterValue, Parameters};
pub use self::reject::Reject;
pub use self::row::{Input, Output, State};
pub use self::state::{Handle, ListState, MapKey, MapState, OperatorState, UnionState, ValueState};
pub use self::time::{Clock, Date, EventTime, Timer, Timestamp, Window};
pub use self::timers::ProcessContext;

//! User functions as operators see them: calls over columns, whatever language and sandbox stand behind them.

use std::sync::Arc;

use arrow_array::ArrayRef;
use async_trait::async_trait;
use millstream_state::{KeyedContext, OperatorState};
use millstream_types::{Cells, Clock, Column, Columns, Manifest, State, Window};

use crate::{FunctionError, OperatorContext};

/// What a function may touch during one call. The operator lends it for the call and gets it back with the result,
/// whether that is `ok`, `err` or a trap; what is pending in it is then committed or rolled back.
#[derive(Default)]
pub struct CallContext {
    /// The state of the call's keys and its timers; none for functions without keys.
    pub keyed: Option<KeyedContext>,
    /// The state of the subtask.
    pub operator_state: OperatorState,
    /// Processing time, fixed within the call.
    pub now: i64,
    /// Seed of the call's random numbers: from the position of the batch, so that a replay draws the same.
    pub seed: u64,
    /// What the call counted, applied on `ok`.
    pub counts: Vec<(String, u64)>,
    /// The gauges that the call set, applied on `ok`.
    pub gauges: Vec<(String, f64)>,
}

/// One function in one subtask. The instance behind it may be replaced between any two calls.
///
/// Columns are in the order of the function's manifest. What comes back has been checked against it: number and
/// types of columns, lengths, offsets, text, and origins within the input. A trap or exhausted budget costs the
/// instance; the next call makes a new one and opens it.
#[async_trait(?Send)]
pub trait UserFunction {
    /// Makes an instance and opens the function, which may use the state of the subtask; a call that finds no instance
    /// does the same first, with what it has been lent.
    async fn open(&mut self, call: &mut CallContext) -> Result<(), FunctionError>;

    /// `map`: rows in, rows out.
    async fn map(
        &mut self,
        input: &Columns,
        times: Option<&[i64]>,
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError>;

    /// `process`: rows with their keys.
    async fn process(
        &mut self,
        input: &KeyedInput<'_>,
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError>;

    /// `on-timer`: at most one timer a key.
    async fn on_timer(&mut self, fired: &Fired<'_>, call: &mut CallContext)
    -> Result<Outcome, FunctionError>;

    /// `accumulate`: rows into the accumulators of their groups; an absent cell is a new group.
    async fn accumulate(
        &mut self,
        rows: &Columns,
        times: Option<&[i64]>,
        group_of_row: &[u32],
        accumulators: &Cells,
        call: &mut CallContext,
    ) -> Result<Accumulated, FunctionError>;

    /// `merge`: pairwise, row i of `other` into row i of `into`.
    async fn merge(
        &mut self,
        into: &Columns,
        other: &Columns,
        call: &mut CallContext,
    ) -> Result<Columns, FunctionError>;

    /// `finish`: the results of groups; origins name groups.
    async fn finish(
        &mut self,
        accumulators: &Columns,
        keys: &Columns,
        key_of_group: &[u32],
        windows: &[Window],
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError>;

    /// `window-function.apply`: whole windows, the rows of window i at `offsets[i]..offsets[i + 1]`; origins name
    /// windows.
    #[expect(clippy::too_many_arguments, reason = "one argument of the interface each")]
    async fn apply(
        &mut self,
        rows: &Columns,
        times: Option<&[i64]>,
        offsets: &[u32],
        keys: &Columns,
        key_of_window: &[u32],
        windows: &[Window],
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError>;

    /// `before-barrier`, for functions that ask for it.
    async fn before_barrier(&mut self, call: &mut CallContext) -> Result<Outcome, FunctionError>;

    /// `end-of-input`, for functions that ask for it.
    async fn end_of_input(&mut self, call: &mut CallContext) -> Result<Outcome, FunctionError>;

    /// `migration.migrate`: stored values of an earlier version of a state as values of the current one, as many and in
    /// the same order.
    async fn migrate(
        &mut self,
        state: &State,
        _stored: &StoredValues<'_>,
        _call: &mut CallContext,
    ) -> Result<Columns, FunctionError> {
        let message = format!("it does not take over the state `{}`", state.name);
        Err(FunctionError::Refused { function: "the function".to_owned(), message })
    }

    /// Closes the function and drops the instance.
    async fn close(&mut self) -> Result<(), FunctionError>;
}

/// Values of a state as an earlier version has stored them.
#[derive(Clone, Copy, Debug)]
pub struct StoredValues<'a> {
    /// The version.
    pub version: u32,
    /// Its columns.
    pub columns: &'a [Column],
    /// The values.
    pub values: &'a Columns,
}

/// Rows of a port with their keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyedInput<'a> {
    /// The input port.
    pub port: u32,
    /// The columns that the port reads.
    pub rows: &'a Columns,
    /// The rows' event times, if the port asks for them.
    pub times: Option<&'a [i64]>,
    /// The distinct keys of the call, in the columns that the function declares.
    pub keys: &'a Columns,
    /// Each row's position in `keys`.
    pub key_of_row: &'a [u32],
    /// The current watermark.
    pub watermark: i64,
}

/// Due timers, at most one a key.
#[derive(Clone, Copy, Debug)]
pub struct Fired<'a> {
    /// The clock on which they were set.
    pub clock: Clock,
    /// The keys, one a timer.
    pub keys: &'a Columns,
    /// The times for which they were set.
    pub times: &'a [i64],
    /// The watermark that made them due, or the current one for processing time.
    pub watermark: i64,
}

/// What a call made and what it refused.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// In the order in which they are emitted.
    pub outputs: Vec<FunctionOutput>,
    /// Rows of the input that the function refuses, ascending.
    pub rejected: Vec<Rejected>,
}

/// Rows for one output port.
#[derive(Clone, Debug)]
pub struct FunctionOutput {
    /// The output port.
    pub port: usize,
    /// How many rows.
    pub rows: usize,
    /// Where each row comes from.
    pub origin: Origin,
    /// The columns that the port declares.
    pub columns: Vec<ArrayRef>,
}

/// Where output rows come from: it gives them their event time and what they carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Row i comes from input i; there are as many.
    Each,
    /// Row i comes from this input.
    Picked(Vec<u32>),
    /// The rows come from no one input; these are their times.
    Made(Vec<i64>),
}

/// A refused row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Its position in the input.
    pub row: u32,
    /// Why.
    pub reason: String,
    /// Whether it may be tried again.
    pub retryable: bool,
}

/// What `accumulate` gives back.
#[derive(Clone, Debug)]
pub struct Accumulated {
    /// One accumulator a group of the call.
    pub accumulators: Columns,
    /// Rows that it refuses.
    pub rejected: Vec<Rejected>,
}

/// Makes a function for each subtask: what the plan hands to workers. Compiled once, shared by all.
pub trait FunctionFactory: Send + Sync {
    /// The function for one subtask.
    fn create(&self, ctx: &OperatorContext) -> Result<Box<dyn UserFunction>, FunctionError>;
}

/// Opens modules far enough to say what is in them: what planning needs.
pub trait ModuleInspector: Send + Sync {
    /// The checked manifest of the module with these bytes; `name` is for messages.
    fn inspect(&self, name: &str, bytes: &[u8]) -> Result<Arc<Manifest>, FunctionError>;
}

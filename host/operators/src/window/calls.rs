//! The calls of a window operator's function.

use std::sync::Arc;

use arrow_array::{Int64Array, cast::AsArray, types::Int64Type};
use arrow_buffer::ScalarBuffer;
use millstream_operator::{Accumulated, Collector, OperatorContext, OperatorError, UserFunction};
use millstream_types::{
    Batch, Cells, Columns, Lifecycle, NO_TIME, Redistribution, Schema, State, StateKind, StatePart,
};

use super::{
    WindowFunction, WindowSpec,
    columns::{identity, pick, weave},
    fired::{Fired, FiredOutput},
};
use crate::{Calls, ProjectionSpec, kept::WINDOWS, migrate::migrated};

/// What a function keeps in windows, as a state whose values can be taken over.
fn accumulator(function: &WindowFunction) -> Option<State> {
    let WindowFunction::Aggregate { accumulator, version, migrates_from } = function else { return None };
    Some(State {
        name: WINDOWS.to_owned(),
        kind: StateKind::Value,
        columns: accumulator.clone(),
        version: *version,
        migrates_from: migrates_from.clone(),
        redistribution: Redistribution::default(),
    })
}

/// The function of a window operator with what surrounds its calls.
pub(super) struct WindowCalls {
    function: Box<dyn UserFunction>,
    calls: Calls,
    input: ProjectionSpec,
    output: FiredOutput,
    lifecycle: Vec<Lifecycle>,
    /// The columns of contents as a stream has them, for messages.
    contents: Schema,
    /// What an aggregate function keeps, as a state of its own.
    accumulator: Option<State>,
}

impl WindowCalls {
    pub(super) fn new(spec: &WindowSpec, function: Box<dyn UserFunction>, ctx: OperatorContext) -> Self {
        let contents = match &spec.function {
            WindowFunction::Window { columns } => Schema::from(&columns[..]),
            WindowFunction::Aggregate { .. } => Schema::empty(),
        };
        let output = FiredOutput::new(spec, &ctx);
        let (input, lifecycle) = (spec.input.clone(), spec.lifecycle.clone());
        let accumulator = accumulator(&spec.function);
        Self { function, calls: Calls::new(ctx), input, output, lifecycle, contents, accumulator }
    }

    pub(super) fn ctx(&self) -> &OperatorContext {
        self.calls.ctx()
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    pub(super) fn calls_mut(&mut self) -> &mut Calls {
        &mut self.calls
    }

    /// The parts of a snapshot as the function of this version has them.
    pub(super) async fn migrated(&mut self, parts: Vec<StatePart>) -> Result<Vec<StatePart>, OperatorError> {
        let accumulator = self.accumulator.as_slice();
        Ok(migrated(parts, accumulator, &mut *self.function, &mut self.calls).await?)
    }

    /// The version of what windows have.
    pub(super) fn version(&self) -> u32 {
        self.accumulator.as_ref().map_or(1, |state| state.version)
    }

    pub(super) fn output(&self) -> &FiredOutput {
        &self.output
    }

    pub(super) async fn open(&mut self) -> Result<(), OperatorError> {
        let mut call = self.calls.begin();
        let result = self.function.open(&mut call).await;
        Ok(self.calls.end(call, result)?)
    }

    /// A call of the function's life, if it wants that; what it makes are rows of no group.
    pub(super) async fn lifecycle(
        &mut self,
        moment: Lifecycle,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        if !self.lifecycle.contains(&moment) {
            return Ok(());
        }
        let mut call = self.calls.begin();
        let (name, result) = match moment {
            Lifecycle::BeforeBarrier => {
                ("lifecycle.before-barrier", self.function.before_barrier(&mut call).await)
            }
            Lifecycle::EndOfInput => ("lifecycle.end-of-input", self.function.end_of_input(&mut call).await),
        };
        let outcome = self.calls.end(call, result)?;
        self.output.emit(name, &Batch::empty(), outcome.outputs, out)
    }

    pub(super) async fn close(&mut self) -> Result<(), OperatorError> {
        Ok(self.function.close().await?)
    }

    /// The rows of a batch as contents keep them.
    pub(super) fn contents(&self, batch: &Batch) -> Columns {
        let mut columns = self.input.columns(batch);
        if self.input.times {
            columns.arrays.push(Arc::new(Int64Array::new(batch.times().clone(), None)));
        }
        columns
    }

    /// Adds the rows of a batch to the accumulators of their groups.
    pub(super) async fn accumulate(
        &mut self,
        batch: &Batch,
        group_of_row: &[u32],
        accumulators: &Cells,
    ) -> Result<Accumulated, OperatorError> {
        let columns = self.input.columns(batch);
        let mut call = self.calls.begin();
        let times = self.input.times(batch);
        let result = self.function.accumulate(&columns, times, group_of_row, accumulators, &mut call).await;
        Ok(self.calls.end(call, result)?)
    }

    /// Merges accumulators pairwise.
    pub(super) async fn merge(&mut self, into: &Columns, other: &Columns) -> Result<Columns, OperatorError> {
        if into.rows == 0 {
            return Ok(into.clone());
        }
        let mut call = self.calls.begin();
        let result = self.function.merge(into, other, &mut call).await;
        Ok(self.calls.end(call, result)?)
    }

    /// Merges cells pairwise: where only one of two is there, it is the result.
    pub(super) async fn merge_cells(&mut self, into: Cells, other: Cells) -> Result<Cells, OperatorError> {
        let both = &into.present & &other.present;
        let rows: Vec<u32> = both.set_indices().map(|row| row as u32).collect();
        let merged = self.merge(&pick(&into.values, &rows), &pick(&other.values, &rows)).await?;
        let mut next = 0;
        let choice = |row: usize| {
            if both.value(row) {
                next += 1;
                (MERGED, next - 1)
            } else if other.present.value(row) {
                (OTHER, row)
            } else {
                (INTO, row)
            }
        };
        let choices: Vec<(usize, usize)> = (0..into.values.rows).map(choice).collect();
        let values = weave(&[&into.values, &other.values, &merged], &choices);
        Ok(Cells { present: &into.present | &other.present, values })
    }

    /// Emits the results of groups with accumulators.
    pub(super) async fn finish(
        &mut self,
        mut fired: Fired,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        if fired.groups() == 0 {
            return Ok(());
        }
        let accumulators = fired.take_columns();
        let keys = self.output.function_keys(&fired)?;
        let key_of_group = identity(fired.groups());
        let mut call = self.calls.begin();
        let result =
            self.function.finish(&accumulators, &keys, &key_of_group, fired.windows(), &mut call).await;
        let outcome = self.calls.end(call, result)?;
        self.output.refuse_groups(&fired, &outcome.rejected, out)?;
        self.output.emit("aggregate-function.finish", &self.output.origin(&fired)?, outcome.outputs, out)
    }

    /// Emits what the function makes of whole windows.
    pub(super) async fn apply(&mut self, mut fired: Fired, out: &mut Collector) -> Result<(), OperatorError> {
        if fired.groups() == 0 {
            return Ok(());
        }
        let mut rows = fired.take_columns();
        let times = if self.input.times { rows.arrays.pop() } else { None };
        let times = times.map(|array| array.as_primitive::<Int64Type>().values().clone());
        let keys = self.output.function_keys(&fired)?;
        let (offsets, key_of_window) = (fired.offsets(), identity(fired.groups()));
        let mut call = self.calls.begin();
        let result = self
            .function
            .apply(&rows, times.as_deref(), &offsets, &keys, &key_of_window, fired.windows(), &mut call)
            .await;
        let outcome = self.calls.end(call, result)?;
        if !outcome.rejected.is_empty() {
            let times = times.unwrap_or_else(|| ScalarBuffer::from(vec![NO_TIME; rows.rows]));
            let batch = Batch::new(&self.contents, rows.arrays, times)?;
            self.output.row_errors().refuse(&batch, &outcome.rejected, out)?;
        }
        self.output.emit("window-function.apply", &self.output.origin(&fired)?, outcome.outputs, out)
    }
}

/// Sets that a merged cell is taken from.
const INTO: usize = 0;
const OTHER: usize = 1;
const MERGED: usize = 2;

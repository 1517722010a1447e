//! The map operator: a stateless function over whole batches.
//!
//! With `on-trap = "isolate"` a call that trapped is run again by halves, in order, until the rows that trap are
//! found; they alone follow the row policy, and what the others make goes on. The instance behind the function is
//! lost with each trap, so ten bad rows in a thousand cost some two hundred new instances.

use async_trait::async_trait;
use millstream_operator::{
    Collector, FunctionError, Operator, OperatorContext, OperatorError, Outcome, Progress, Rejected,
    UserFunction,
};
use millstream_types::{Barrier, Batch, Lifecycle, SnapshotRequest, StatePart};

use crate::{
    Calls, OutputSpec, ProjectionSpec, RowErrorSpec, RowErrors, migrate::migrated,
    subtask_state::nothing_left,
};

/// What becomes of a call that trapped, went over a budget or returned what cannot be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTrap {
    /// The subtask fails.
    #[default]
    Fail,
    /// The rows at fault are found and follow the row policy.
    Isolate,
}

/// A map operator with everything resolved.
#[derive(Clone, Debug)]
pub struct MapSpec {
    /// What the function reads of the input.
    pub input: ProjectionSpec,
    /// What its outputs become; the origin is the input's batch.
    pub output: OutputSpec,
    /// What becomes of rows that it refuses.
    pub row_errors: RowErrorSpec,
    /// What becomes of calls that trap.
    pub on_trap: OnTrap,
    /// The life-cycle calls that it wants.
    pub lifecycle: Vec<Lifecycle>,
}

/// Runs a map function over batches.
pub struct MapOperator {
    spec: MapSpec,
    function: Box<dyn UserFunction>,
    calls: Calls,
    row_errors: RowErrors,
}

impl MapOperator {
    /// An operator for the subtask of `ctx`.
    pub fn new(spec: MapSpec, function: Box<dyn UserFunction>, ctx: OperatorContext) -> Self {
        let row_errors = RowErrors::new(spec.row_errors, &ctx);
        Self { spec, function, calls: Calls::new(ctx), row_errors }
    }

    /// One call over rows that the function takes.
    async fn call(
        &mut self,
        batch: &Batch,
        columns: &millstream_types::Columns,
    ) -> Result<Outcome, FunctionError> {
        let mut call = self.calls.begin();
        let times = self.spec.input.times(batch);
        let result = self.function.map(columns, times, &mut call).await;
        self.calls.end(call, result)
    }

    /// Emits what a call made and treats what it refused.
    fn settle(&self, batch: &Batch, outcome: Outcome, out: &mut Collector) -> Result<(), OperatorError> {
        self.row_errors.refuse(batch, &outcome.rejected, out)?;
        self.spec.output.emit("map-function.apply", batch, outcome.outputs, out)
    }

    /// Runs a batch that trapped again by halves, first half first.
    async fn isolate(
        &mut self,
        batch: Batch,
        error: FunctionError,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let mut parts = Vec::new();
        split(batch, error, &mut parts, &self.row_errors, out)?;
        while let Some(part) = parts.pop() {
            // Nulls have been refused already, so nothing is refused twice.
            let columns = self.spec.input.project(part.clone()).columns;
            match self.call(&part, &columns).await {
                Ok(outcome) => self.settle(&part, outcome, out)?,
                Err(error) if error.isolates() => split(part, error, &mut parts, &self.row_errors, out)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn wants(&self, lifecycle: Lifecycle) -> bool {
        self.spec.lifecycle.contains(&lifecycle)
    }

    /// Emits what a life-cycle call made: rows of no input.
    fn settle_lifecycle(
        &self,
        call: &'static str,
        outcome: Outcome,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        self.spec.output.emit(call, &Batch::empty(), outcome.outputs, out)
    }
}

/// Puts the halves of a batch that trapped on the stack, or refuses its only row.
fn split(
    batch: Batch,
    error: FunctionError,
    parts: &mut Vec<Batch>,
    row_errors: &RowErrors,
    out: &mut Collector,
) -> Result<(), OperatorError> {
    if batch.rows() <= 1 {
        let rejected = Rejected { row: 0, reason: reason(error), retryable: false };
        return row_errors.refuse(&batch, &[rejected], out);
    }
    let half = batch.rows() / 2;
    parts.push(batch.slice(half, batch.rows() - half));
    parts.push(batch.slice(0, half));
    Ok(())
}

/// What a dead letter says of a trap: the guest's own words, without its call stack.
fn reason(error: FunctionError) -> String {
    match error {
        FunctionError::Trapped { message, .. } => message,
        FunctionError::OverBudget { budget, .. } => budget,
        FunctionError::Malformed { problem, .. } => problem,
        other => other.to_string(),
    }
}

#[async_trait(?Send)]
impl Operator for MapOperator {
    async fn open(&mut self) -> Result<(), OperatorError> {
        let mut call = self.calls.begin();
        let result = self.function.open(&mut call).await;
        Ok(self.calls.end(call, result)?)
    }

    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let projected = self.spec.input.project(batch.clone());
        self.row_errors.refuse(&batch, &projected.rejected, out)?;
        let batch = projected.batch;
        if batch.is_empty() {
            return Ok(());
        }
        match self.call(&batch, &projected.columns).await {
            Ok(outcome) => self.settle(&batch, outcome, out),
            Err(error) if self.spec.on_trap == OnTrap::Isolate && error.isolates() => {
                self.isolate(batch, error, out).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn before_barrier(&mut self, _barrier: &Barrier, out: &mut Collector) -> Result<(), OperatorError> {
        if !self.wants(Lifecycle::BeforeBarrier) {
            return Ok(());
        }
        let mut call = self.calls.begin();
        let result = self.function.before_barrier(&mut call).await;
        let outcome = self.calls.end(call, result)?;
        self.settle_lifecycle("lifecycle.before-barrier", outcome, out)
    }

    async fn snapshot(&mut self, _request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        Ok(self.calls.snapshot())
    }

    async fn restore(&mut self, parts: Vec<StatePart>) -> Result<(), OperatorError> {
        let mut parts = migrated(parts, &[], &mut *self.function, &mut self.calls).await?;
        self.calls.restore(&mut parts)?;
        Ok(nothing_left(parts)?)
    }

    async fn end_of_input(&mut self, out: &mut Collector) -> Result<Progress, OperatorError> {
        if self.wants(Lifecycle::EndOfInput) {
            let mut call = self.calls.begin();
            let result = self.function.end_of_input(&mut call).await;
            let outcome = self.calls.end(call, result)?;
            self.settle_lifecycle("lifecycle.end-of-input", outcome, out)?;
        }
        Ok(Progress::Done)
    }

    async fn close(&mut self) -> Result<(), OperatorError> {
        Ok(self.function.close().await?)
    }
}

#[cfg(test)]
mod tests;

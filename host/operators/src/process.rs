//! The keyed process operator: a function over keyed rows, with state and timers.
//!
//! A batch is one call: its keys are encoded and looked up once, the function sees the distinct ones and each row's
//! position among them, and what it has written to state and timers applies when it returns `ok`. A watermark fires
//! event timers in rounds until none is due, and only then goes on; a round is a call, and the chain passes its rows on
//! before the next one.

use arrow_array::{ArrayRef, new_null_array};
use async_trait::async_trait;
use millstream_operator::{
    CallContext, Collector, Fired, FunctionError, KeyedInput, Operator, OperatorContext, OperatorError,
    Outcome, Progress, Rejected, UserFunction,
};
use millstream_state::KeyedContext;
use millstream_types::{
    Barrier, Batch, Clock, EncodedKeys, Field, Lifecycle, Limits, MIN_WATERMARK, Schema, SnapshotRequest,
    State, StatePart,
};

use crate::{
    Calls, KeySpec, OutputSpec, ProjectionSpec, RowErrorSpec, RowErrors,
    kept::WATERMARK,
    keyed::{encode_batch, keys_of_rows, refused_keys},
    migrate::migrated,
    project::without,
    subtask_state::{number, take_clock},
};

/// A keyed process operator with everything resolved.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// The inputs, by port.
    pub inputs: Vec<ProcessInput>,
    /// The key.
    pub key: KeySpec,
    /// The states that the function declares.
    pub states: Vec<State>,
    /// For how many milliseconds what it keeps for a key stays when nothing is about the key; none for ever.
    pub state_ttl: Option<i64>,
    /// What its timers' outputs become.
    pub timers: TimerSpec,
    /// What becomes of rows that it refuses.
    pub row_errors: RowErrorSpec,
    /// The life-cycle calls that it wants.
    pub lifecycle: Vec<Lifecycle>,
}

/// One input of a process operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInput {
    /// What the function reads of its rows.
    pub rows: ProjectionSpec,
    /// Where its batches have the key.
    pub key: Vec<usize>,
    /// What outputs of its rows become; the origin is the input's batch.
    pub output: OutputSpec,
}

/// What outputs of `on-timer` become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerSpec {
    /// The columns of the origin: those of the key, and whatever else a layout has to carry, which is null.
    pub origin: Schema,
    /// For each of them the column of the key that it is; none for a null.
    pub key_of_column: Vec<Option<usize>>,
    /// By output port: a column that it carries from rows, that is not null, and that a timer has no value for.
    pub unfilled: Vec<Option<String>>,
    /// The key's columns, which stand for a timer that the function refuses.
    pub key: Schema,
    /// The ports' layouts over that origin.
    pub output: OutputSpec,
}

/// Runs a process function over keyed batches.
pub struct ProcessOperator {
    spec: ProcessSpec,
    /// What the function sees of the key, by input.
    key_columns: Vec<ProjectionSpec>,
    function: Box<dyn UserFunction>,
    calls: Calls,
    row_errors: RowErrors,
    /// Lent to the function during a call.
    keyed: Option<KeyedContext>,
    keys: EncodedKeys,
    watermark: i64,
}

impl ProcessOperator {
    /// An operator for the subtask of `ctx` with its state in memory.
    pub fn new(spec: ProcessSpec, function: Box<dyn UserFunction>, ctx: OperatorContext) -> Self {
        let keyed = KeyedContext::in_memory(&spec.states);
        Self::with_state(spec, function, ctx, keyed)
    }

    /// The same with state that is kept elsewhere, made for the states of `spec`.
    pub fn with_state(
        spec: ProcessSpec,
        function: Box<dyn UserFunction>,
        ctx: OperatorContext,
        mut keyed: KeyedContext,
    ) -> Self {
        keyed.set_ttl(spec.state_ttl);
        let key_columns = spec.inputs.iter().map(|input| spec.key.projection(&input.key)).collect();
        let row_errors = RowErrors::new(spec.row_errors, &ctx);
        let (calls, keys) = (Calls::new(ctx), EncodedKeys::new());
        Self {
            spec,
            key_columns,
            function,
            calls,
            row_errors,
            keyed: Some(keyed),
            keys,
            watermark: MIN_WATERMARK,
        }
    }

    /// Takes out the rows that cannot be keyed and those that the function does not take for a null.
    fn accept(&self, port: usize, batch: Batch, out: &mut Collector) -> Result<Batch, OperatorError> {
        let rejected = refused_keys(&batch, &self.spec.inputs[port].key);
        self.row_errors.refuse(&batch, &rejected, out)?;
        let batch = if rejected.is_empty() { batch } else { without(&batch, &rejected) };
        let (kept, rejected) = self.spec.inputs[port].rows.split_nulls(batch.clone());
        self.row_errors.refuse(&batch, &rejected, out)?;
        let (keyed, rejected) = self.key_columns[port].split_nulls(kept.clone());
        self.row_errors.refuse(&kept, &rejected, out)?;
        Ok(keyed)
    }

    /// One call over rows that the function takes.
    async fn call_process(&mut self, port: usize, batch: &Batch) -> Result<Outcome, OperatorError> {
        let input = &self.spec.inputs[port];
        encode_batch(batch, &input.key, &mut self.keys)?;
        let mut keyed = self.keyed.take().ok_or_else(|| lost(&input.output.function))?;
        let now = self.calls.ctx().clock.now();
        self.calls.add(|metrics| &metrics.keys_expired, keyed.expire(now)?);
        keyed.begin(&self.keys)?;
        keyed.touch(now);
        let keys = keys_of_rows(batch, &self.key_columns[port], &keyed.grouping().first_row_of_group);
        let key_of_row = keyed.grouping().group_of_row.clone();
        let rows = input.rows.columns(batch);
        let mut call = CallContext { keyed: Some(keyed), ..self.calls.begin() };
        let input = KeyedInput {
            port: port as u32,
            rows: &rows,
            times: input.rows.times(batch),
            keys: &keys,
            key_of_row: &key_of_row,
            watermark: self.watermark,
        };
        let result = self.function.process(&input, &mut call).await;
        self.end_call(call, result)
    }

    /// Fires a round of due timers, if there are any.
    async fn fire(&mut self, clock: Clock, now: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        let mut keyed = self.keyed.take().ok_or_else(|| lost(&self.spec.timers.output.function))?;
        if keyed.begin_timers(clock, now, Limits::BATCH_ROWS)? == 0 {
            self.keyed = Some(keyed);
            return Ok(Progress::Done);
        }
        keyed.touch(self.calls.ctx().clock.now());
        let times = keyed.fired_times().to_vec();
        let stored = self.spec.key.decode(&keyed.call_keys())?;
        let keys = self.spec.key.declared_columns(times.len(), &stored);
        let mut call = CallContext { keyed: Some(keyed), ..self.calls.begin() };
        let fired = Fired { clock, keys: &keys, times: &times, watermark: self.watermark };
        let result = self.function.on_timer(&fired, &mut call).await;
        let outcome = self.end_call(call, result)?;
        self.refuse_timers(&stored, &times, &outcome.rejected, out)?;
        self.check_filled(&outcome)?;
        let origin = self.timer_origin(&stored, times)?;
        self.spec.timers.output.emit(ON_TIMER, &origin, outcome.outputs, out)?;
        Ok(Progress::More)
    }

    /// Treats timers that the function refuses: rows of their key.
    fn refuse_timers(
        &self,
        stored: &[ArrayRef],
        times: &[i64],
        rejected: &[Rejected],
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        if rejected.is_empty() {
            return Ok(());
        }
        let batch = Batch::new(&self.spec.timers.key, stored.to_vec(), times.to_vec().into())?;
        self.row_errors.refuse(&batch, rejected, out)
    }

    /// Checks that no timer has emitted where its rows would lack a value.
    fn check_filled(&self, outcome: &Outcome) -> Result<(), OperatorError> {
        let TimerSpec { unfilled, output, .. } = &self.spec.timers;
        let lacking = outcome.outputs.iter().filter(|made| made.rows > 0).find_map(|made| {
            let column = unfilled.get(made.port)?.as_ref()?;
            Some((made.port, column))
        });
        let Some((port, column)) = lacking else { return Ok(()) };
        let problem = format!(
            "rows of a timer for output port {port}, which extends its input: a timer has no row to take the column \
             `{column}` from, which is not null; emit them on a port that replaces, or make `{column}` nullable"
        );
        Err(FunctionError::Malformed { function: output.function.clone(), call: ON_TIMER, problem }.into())
    }

    /// The batch from which outputs of timers come: one row a timer.
    fn timer_origin(&self, stored: &[ArrayRef], times: Vec<i64>) -> Result<Batch, OperatorError> {
        let TimerSpec { origin, key_of_column, output, .. } = &self.spec.timers;
        if !output.carries() {
            return Ok(Batch::new(&Schema::empty(), Vec::new(), times.into())?);
        }
        let column = |(field, key): (&Field, &Option<usize>)| match key {
            Some(key) => stored[*key].clone(),
            None => new_null_array(&field.data_type.to_arrow(), times.len()),
        };
        let columns = origin.fields().iter().zip(key_of_column).map(column).collect();
        Ok(Batch::new(origin, columns, times.into())?)
    }

    /// Takes the state back that was lent for a call, with what the call has written in it if that went well.
    fn end_call(
        &mut self,
        mut call: CallContext,
        result: Result<Outcome, FunctionError>,
    ) -> Result<Outcome, OperatorError> {
        let mut keyed = call.keyed.take().ok_or_else(|| lost(&self.spec.timers.output.function))?;
        let outcome = self.calls.end(call, result);
        let state = match outcome {
            Ok(_) => keyed.commit(),
            Err(_) => {
                keyed.rollback();
                Ok(())
            }
        };
        self.keyed = Some(keyed);
        let outcome = outcome?;
        state?;
        Ok(outcome)
    }

    fn wants(&self, lifecycle: Lifecycle) -> bool {
        self.spec.lifecycle.contains(&lifecycle)
    }

    /// Emits what a life-cycle call made: rows of no input.
    fn settle_lifecycle(
        &mut self,
        name: &'static str,
        call: CallContext,
        result: Result<Outcome, FunctionError>,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let outcome = self.end_call(call, result)?;
        self.spec.timers.output.emit(name, &Batch::empty(), outcome.outputs, out)
    }

    /// The context of a call without keys.
    fn begin_lifecycle(&mut self) -> CallContext {
        CallContext { keyed: self.keyed.take(), ..self.calls.begin() }
    }
}

#[async_trait(?Send)]
impl Operator for ProcessOperator {
    async fn open(&mut self) -> Result<(), OperatorError> {
        let mut call = self.calls.begin();
        let result = self.function.open(&mut call).await;
        Ok(self.calls.end(call, result)?)
    }

    async fn process(&mut self, port: usize, batch: Batch, out: &mut Collector) -> Result<(), OperatorError> {
        let batch = self.accept(port, batch, out)?;
        if batch.is_empty() {
            return Ok(());
        }
        let outcome = self.call_process(port, &batch).await?;
        self.row_errors.refuse(&batch, &outcome.rejected, out)?;
        self.spec.inputs[port].output.emit("process-function.process", &batch, outcome.outputs, out)
    }

    async fn watermark(&mut self, watermark: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        self.watermark = watermark;
        let progress = self.fire(Clock::Event, watermark, out).await?;
        if progress == Progress::Done {
            out.watermark(watermark);
        }
        Ok(progress)
    }

    async fn processing_time(&mut self, now: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        let expired = self.keyed.as_mut().map_or(Ok(0), |keyed| keyed.expire(now))?;
        self.calls.add(|metrics| &metrics.keys_expired, expired);
        self.fire(Clock::Processing, now, out).await
    }

    fn next_wakeup(&self) -> Option<i64> {
        let keyed = self.keyed.as_ref()?;
        [Clock::Processing, Clock::Expiry].into_iter().filter_map(|clock| keyed.next_timer(clock)).min()
    }

    async fn before_barrier(&mut self, _barrier: &Barrier, out: &mut Collector) -> Result<(), OperatorError> {
        if !self.wants(Lifecycle::BeforeBarrier) {
            return Ok(());
        }
        let mut call = self.begin_lifecycle();
        let result = self.function.before_barrier(&mut call).await;
        self.settle_lifecycle("lifecycle.before-barrier", call, result, out)
    }

    async fn snapshot(&mut self, request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        let max = self.calls.ctx().max_parallelism;
        let keyed = self.keyed.as_mut().ok_or_else(|| lost(&self.spec.timers.output.function))?;
        let mut parts = keyed.snapshot(max, request)?;
        parts.push(number(WATERMARK, self.watermark));
        parts.extend(self.calls.snapshot());
        Ok(parts)
    }

    async fn restore(&mut self, parts: Vec<StatePart>) -> Result<(), OperatorError> {
        let mut parts = migrated(parts, &[], &mut *self.function, &mut self.calls).await?;
        self.watermark = take_clock(WATERMARK, &mut parts)?;
        self.calls.restore(&mut parts)?;
        let keyed = self.keyed.as_mut().ok_or_else(|| lost(&self.spec.timers.output.function))?;
        parts.iter().try_for_each(|part| keyed.restore(part))?;
        if self.spec.state_ttl.is_none() && keyed.pending_timers(Clock::Expiry) > 0 {
            keyed.drop_timers(Clock::Expiry)?;
        }
        Ok(())
    }

    async fn restore_piece(&mut self, piece: StatePart) -> Result<(), OperatorError> {
        let pieces = migrated(vec![piece], &[], &mut *self.function, &mut self.calls).await?;
        let keyed = self.keyed.as_mut().ok_or_else(|| lost(&self.spec.timers.output.function))?;
        Ok(pieces.iter().try_for_each(|piece| keyed.restore(piece))?)
    }

    async fn end_of_input(&mut self, out: &mut Collector) -> Result<Progress, OperatorError> {
        if self.wants(Lifecycle::EndOfInput) {
            let mut call = self.begin_lifecycle();
            let result = self.function.end_of_input(&mut call).await;
            self.settle_lifecycle("lifecycle.end-of-input", call, result, out)?;
        }
        let dropped = self.keyed.as_mut().map_or(Ok(0), |keyed| keyed.drop_timers(Clock::Processing))?;
        self.calls.add(|metrics| &metrics.timers_dropped, dropped as usize);
        Ok(Progress::Done)
    }

    async fn close(&mut self) -> Result<(), OperatorError> {
        Ok(self.function.close().await?)
    }
}

/// The call for timers, as messages name it.
const ON_TIMER: &str = "process-function.on-timer";

/// A function has kept the state that was lent to it.
fn lost(function: &str) -> OperatorError {
    let problem = "the state that was lent for the call did not come back".to_owned();
    FunctionError::Malformed { function: function.to_owned(), call: "process-function", problem }.into()
}

#[cfg(test)]
mod tests;

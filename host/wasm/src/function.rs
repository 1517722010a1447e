//! A user function that is a Wasm instance.
//!
//! The instance is made and opened with the first call, lives as long as nothing goes wrong in it, and is replaced by
//! a fresh one after a trap, an exhausted budget, or a result that cannot be taken. A future of a call that is dropped
//! takes the instance with it.

use arrow_buffer::BooleanBuffer;
use async_trait::async_trait;
use millstream_operator::{
    Accumulated, CallContext, Fired, FunctionError, KeyedInput, Outcome, StoredValues, UserFunction,
};
use millstream_types::{Cells, Clock, Column, Columns, State, Window};
use wasmtime::Store;

use crate::{
    bindings::types as wit,
    boundary::{
        lift::{self, Problem},
        lower::{BatchScratch, LowerError, batch, realign},
        outcome::{self, Inputs},
        params::{CellsParam, ClockParam, FiredParam, KeyedBatchParam},
    },
    exports::{Exports, KindExports},
    imports::Guest,
    instance::{Instance, Purpose},
};

/// A function of a module in one subtask.
pub(crate) struct WasmFunction {
    slot: Slot,
    rows: BatchScratch,
    keys: BatchScratch,
    present: Vec<u8>,
    windows: Vec<wit::Window>,
}

/// The instance, if there is one, and what to make the next one of.
struct Slot {
    purpose: Purpose,
    instance: Option<Instance>,
}

impl WasmFunction {
    pub(crate) fn new(purpose: Purpose) -> Self {
        Self {
            slot: Slot { purpose, instance: None },
            rows: BatchScratch::default(),
            keys: BatchScratch::default(),
            present: Vec::new(),
            windows: Vec::new(),
        }
    }
}

#[async_trait(?Send)]
impl UserFunction for WasmFunction {
    async fn open(&mut self, call: &mut CallContext) -> Result<(), FunctionError> {
        self.slot.ready(call).await
    }

    async fn map(
        &mut self,
        input: &Columns,
        times: Option<&[i64]>,
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError> {
        let Self { slot, rows, .. } = self;
        let declared = slot.input_columns(0)?;
        rows.prepare(input, declared).map_err(|e| slot.unfit(e))?;
        let columns = rows.columns(input, declared);
        let params = (batch(input.rows, &columns), times);
        let found = slot
            .call("apply", call, async |store, exports| match &exports.kind {
                KindExports::Map(map) => map.apply.call_async(store, params).await,
                _ => Err(other_kind()),
            })
            .await?;
        slot.outcome("apply", found, Inputs { count: input.rows, what: "rows" })
    }

    async fn process(
        &mut self,
        input: &KeyedInput<'_>,
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError> {
        let Self { slot, rows, keys, .. } = self;
        let (row_columns, key_columns) = (slot.input_columns(input.port as usize)?, slot.key_columns());
        rows.prepare(input.rows, row_columns).map_err(|e| slot.unfit(e))?;
        keys.prepare(input.keys, key_columns).map_err(|e| slot.unfit(e))?;
        let (row_params, key_params) =
            (rows.columns(input.rows, row_columns), keys.columns(input.keys, key_columns));
        let params = KeyedBatchParam {
            port: input.port,
            rows: batch(input.rows.rows, &row_params),
            times: input.times,
            keys: batch(input.keys.rows, &key_params),
            key_of_row: input.key_of_row,
            watermark: input.watermark,
        };
        let found = slot
            .call("process", call, async |store, exports| match &exports.kind {
                KindExports::Process(process) => process.process.call_async(store, (params,)).await,
                _ => Err(other_kind()),
            })
            .await?;
        slot.outcome("process", found, Inputs { count: input.rows.rows, what: "rows" })
    }

    async fn on_timer(
        &mut self,
        fired: &Fired<'_>,
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError> {
        let Self { slot, keys, .. } = self;
        let declared = slot.key_columns();
        keys.prepare(fired.keys, declared).map_err(|e| slot.unfit(e))?;
        let key_params = keys.columns(fired.keys, declared);
        let params = FiredParam {
            clock: match fired.clock {
                Clock::Event => ClockParam::Event,
                // Expiries are no timers of the function.
                Clock::Processing | Clock::Expiry => ClockParam::Processing,
            },
            keys: batch(fired.keys.rows, &key_params),
            times: fired.times,
            watermark: fired.watermark,
        };
        let found = slot
            .call("on-timer", call, async |store, exports| match &exports.kind {
                KindExports::Process(process) => process.on_timer.call_async(store, (params,)).await,
                _ => Err(other_kind()),
            })
            .await?;
        slot.outcome("on-timer", found, Inputs { count: fired.times.len(), what: "timers" })
    }

    async fn accumulate(
        &mut self,
        input: &Columns,
        times: Option<&[i64]>,
        group_of_row: &[u32],
        accumulators: &Cells,
        call: &mut CallContext,
    ) -> Result<Accumulated, FunctionError> {
        let Self { slot, rows, keys: groups, present, .. } = self;
        let (row_columns, group_columns) = (slot.input_columns(0)?, slot.accumulator_columns());
        rows.prepare(input, row_columns).map_err(|e| slot.unfit(e))?;
        groups.prepare(&accumulators.values, group_columns).map_err(|e| slot.unfit(e))?;
        realign(&accumulators.present, present);
        let row_params = rows.columns(input, row_columns);
        let group_params = groups.columns(&accumulators.values, group_columns);
        let count = accumulators.values.rows;
        let cells = CellsParam { present, values: batch(count, &group_params) };
        let params = (batch(input.rows, &row_params), times, group_of_row, cells);
        let found = slot
            .call("accumulate", call, async |store, exports| match &exports.kind {
                KindExports::Aggregate(aggregate) => aggregate.accumulate.call_async(store, params).await,
                _ => Err(other_kind()),
            })
            .await?;
        let accumulators =
            lift::batch(found.accumulators, slot.accumulator_columns(), count, &"the batch of accumulators");
        let accumulators = slot.taken("accumulate", accumulators)?;
        let rejected = outcome::rejected(found.rejected, Inputs { count: input.rows, what: "rows" });
        Ok(Accumulated { accumulators, rejected: slot.taken("accumulate", rejected)? })
    }

    async fn merge(
        &mut self,
        into: &Columns,
        other: &Columns,
        call: &mut CallContext,
    ) -> Result<Columns, FunctionError> {
        let Self { slot, rows: left, keys: right, .. } = self;
        let declared = slot.accumulator_columns();
        left.prepare(into, declared).map_err(|e| slot.unfit(e))?;
        right.prepare(other, declared).map_err(|e| slot.unfit(e))?;
        let (left, right) = (left.columns(into, declared), right.columns(other, declared));
        let params = (batch(into.rows, &left), batch(other.rows, &right));
        let found = slot
            .call("merge", call, async |store, exports| match &exports.kind {
                KindExports::Aggregate(aggregate) => aggregate.merge.call_async(store, params).await,
                _ => Err(other_kind()),
            })
            .await?;
        let merged =
            lift::batch(found, slot.accumulator_columns(), into.rows, &"the batch of merged accumulators");
        slot.taken("merge", merged)
    }

    async fn finish(
        &mut self,
        accumulators: &Columns,
        keys: &Columns,
        key_of_group: &[u32],
        windows: &[Window],
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError> {
        let Self { slot, rows: groups, keys: key_scratch, windows: passed, .. } = self;
        let (group_columns, key_columns) = (slot.accumulator_columns(), slot.key_columns());
        groups.prepare(accumulators, group_columns).map_err(|e| slot.unfit(e))?;
        key_scratch.prepare(keys, key_columns).map_err(|e| slot.unfit(e))?;
        passed.clear();
        passed.extend(windows.iter().map(|w| wit::Window::from(*w)));
        let group_params = groups.columns(accumulators, group_columns);
        let key_params = key_scratch.columns(keys, key_columns);
        let params = (
            batch(accumulators.rows, &group_params),
            batch(keys.rows, &key_params),
            key_of_group,
            passed.as_slice(),
        );
        let found = slot
            .call("finish", call, async |store, exports| match &exports.kind {
                KindExports::Aggregate(aggregate) => aggregate.finish.call_async(store, params).await,
                _ => Err(other_kind()),
            })
            .await?;
        slot.outcome("finish", found, Inputs { count: accumulators.rows, what: "groups" })
    }

    async fn apply(
        &mut self,
        input: &Columns,
        times: Option<&[i64]>,
        offsets: &[u32],
        keys: &Columns,
        key_of_window: &[u32],
        windows: &[Window],
        call: &mut CallContext,
    ) -> Result<Outcome, FunctionError> {
        let Self { slot, rows, keys: key_scratch, windows: passed, .. } = self;
        let (row_columns, key_columns) = (slot.input_columns(0)?, slot.key_columns());
        rows.prepare(input, row_columns).map_err(|e| slot.unfit(e))?;
        key_scratch.prepare(keys, key_columns).map_err(|e| slot.unfit(e))?;
        passed.clear();
        passed.extend(windows.iter().map(|w| wit::Window::from(*w)));
        let (row_params, key_params) =
            (rows.columns(input, row_columns), key_scratch.columns(keys, key_columns));
        let (row_batch, key_batch) = (batch(input.rows, &row_params), batch(keys.rows, &key_params));
        let params = (row_batch, times, offsets, key_batch, key_of_window, passed.as_slice());
        let found = slot
            .call("apply", call, async |store, exports| match &exports.kind {
                KindExports::Window(window) => window.apply.call_async(store, params).await,
                _ => Err(other_kind()),
            })
            .await?;
        slot.outcome("apply", found, Inputs { count: windows.len(), what: "windows" })
    }

    async fn before_barrier(&mut self, call: &mut CallContext) -> Result<Outcome, FunctionError> {
        let slot = &mut self.slot;
        let found = slot
            .call("before-barrier", call, async |store, exports| match &exports.lifecycle {
                Some(lifecycle) => lifecycle.before_barrier.call_async(store, ()).await,
                None => Err(no_lifecycle()),
            })
            .await?;
        slot.outcome("before-barrier", found, NO_INPUT)
    }

    async fn end_of_input(&mut self, call: &mut CallContext) -> Result<Outcome, FunctionError> {
        let slot = &mut self.slot;
        let found = slot
            .call("end-of-input", call, async |store, exports| match &exports.lifecycle {
                Some(lifecycle) => lifecycle.end_of_input.call_async(store, ()).await,
                None => Err(no_lifecycle()),
            })
            .await?;
        slot.outcome("end-of-input", found, NO_INPUT)
    }

    async fn migrate(
        &mut self,
        state: &State,
        stored: &StoredValues<'_>,
        call: &mut CallContext,
    ) -> Result<Columns, FunctionError> {
        let Self { slot, rows, present, .. } = self;
        let StoredValues { version, columns, values } = *stored;
        rows.prepare(values, columns).map_err(|e| slot.unfit(e))?;
        realign(&BooleanBuffer::new_set(values.rows), present);
        let value_params = rows.columns(values, columns);
        let cells = CellsParam { present, values: batch(values.rows, &value_params) };
        let params = (state.name.as_str(), version, cells);
        let found = slot
            .call("migrate", call, async |store, exports| match &exports.migrate {
                Some(migrate) => migrate.call_async(store, params).await,
                None => Err(no_migration()),
            })
            .await?;
        let made = lift::cells(found, &state.columns, values.rows, &"the batch of migrated values");
        let made = made.and_then(|Cells { present, values }| match values.rows - present.count_set_bits() {
            0 => Ok(values),
            left_out => Err(Problem(format!("leaves out {left_out} of {} values", values.rows))),
        });
        slot.taken("migrate", made)
    }

    async fn close(&mut self) -> Result<(), FunctionError> {
        self.slot.close().await
    }
}

impl Slot {
    /// Sees to it that there is an open instance.
    async fn ready(&mut self, lent: &mut CallContext) -> Result<(), FunctionError> {
        if self.instance.is_none() {
            self.instance = Some(Instance::open(&self.purpose, lent).await?);
        }
        Ok(())
    }

    /// Makes one call. The instance is kept only if the call ends well or with a refusal.
    async fn call<R>(
        &mut self,
        name: &'static str,
        lent: &mut CallContext,
        export: impl AsyncFnOnce(&mut Store<Guest>, &Exports) -> wasmtime::Result<(Result<R, String>,)>,
    ) -> Result<R, FunctionError> {
        self.ready(lent).await?;
        let Some(mut instance) = self.instance.take() else { unreachable!("made by `ready`") };
        let returned = instance.call(&self.purpose, name, lent, export).await?;
        let recycled =
            self.purpose.limits.recycle_memory_bytes.is_some_and(|most| instance.memory_used() > most);
        self.instance = Some(instance);
        if recycled {
            self.close().await?;
        }
        returned.map_err(|message| FunctionError::Refused {
            function: self.purpose.function.name.clone(),
            message,
        })
    }

    /// Closes the function; an instance that fails in it is gone all the same.
    async fn close(&mut self) -> Result<(), FunctionError> {
        let Some(mut instance) = self.instance.take() else { return Ok(()) };
        let close = async |store: &mut Store<Guest>, exports: &Exports| {
            exports.close.call_async(store, ()).await.map(|()| ((),))
        };
        instance.call(&self.purpose, "close", &mut CallContext::default(), close).await
    }

    fn outcome(
        &mut self,
        call: &'static str,
        found: wit::Outcome,
        inputs: Inputs,
    ) -> Result<Outcome, FunctionError> {
        let outcome = outcome::outcome(found, &self.purpose.function, inputs);
        self.taken(call, outcome)
    }

    /// A result that has been checked. An instance that returned a bad one is not trusted with another call.
    fn taken<T>(&mut self, call: &'static str, checked: Result<T, Problem>) -> Result<T, FunctionError> {
        checked.map_err(|Problem(problem)| {
            self.instance = None;
            FunctionError::Malformed { function: self.purpose.function.name.clone(), call, problem }
        })
    }

    fn input_columns(&self, port: usize) -> Result<&[Column], FunctionError> {
        let function = &self.purpose.function;
        let input = function.inputs.get(port).ok_or_else(|| {
            let ports = function.inputs.len();
            self.purpose
                .module
                .error(format!("function `{}` has {ports} input ports, not a port {port}", function.name))
        })?;
        Ok(&input.columns)
    }

    fn key_columns(&self) -> &[Column] {
        &self.purpose.function.key
    }

    fn accumulator_columns(&self) -> &[Column] {
        self.purpose.function.accumulator.as_ref().map_or(&[], |a| &a.columns)
    }

    fn unfit(&self, error: LowerError) -> FunctionError {
        self.purpose.module.error(format!("function `{}`: {error}", self.purpose.function.name))
    }
}

/// Life-cycle calls have no input that rows could come from.
const NO_INPUT: Inputs = Inputs { count: 0, what: "rows" };

fn other_kind() -> wasmtime::Error {
    wasmtime::Error::msg("the function is of another kind")
}

fn no_migration() -> wasmtime::Error {
    wasmtime::Error::msg("the module does not export millstream:function/migration")
}

fn no_lifecycle() -> wasmtime::Error {
    wasmtime::Error::msg("the module does not export millstream:function/lifecycle")
}

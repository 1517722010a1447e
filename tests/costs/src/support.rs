//! What the parts run in: one thread, no clock that moves, an engine for a few instances.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use arrow_array::ArrayRef;
use millstream_operator::{Collector, ManualClock, OperatorContext};
use millstream_types::{
    Attempt, Batch, DataType, Field, JobName, MaxParallelism, OperatorId, Schema, SubtaskIndex,
};
use millstream_wasm::{FunctionLimits, WasmEngine, WasmFunctionFactory, WasmOptions};

use crate::guest::Guest;

/// The function of a guest in an engine of its own.
pub(crate) fn factory(guest: &Guest) -> WasmFunctionFactory {
    let options = WasmOptions {
        // Few, for valgrind has less address space to give.
        instances: 4,
        // So long that no guest is interrupted: an interruption would be counted or not, as it comes.
        tick: Duration::from_secs(3600),
        ..WasmOptions::default()
    };
    let engine = WasmEngine::new(options).expect("an engine");
    let module = engine.compile("guest", &guest.component()).expect("a good module");
    module.function("f", FunctionLimits::default()).expect("its function")
}

/// Where the parts run.
pub(crate) fn place() -> OperatorContext {
    OperatorContext {
        job: JobName::new("costs"),
        operator: OperatorId::new("part"),
        subtask: SubtaskIndex(0),
        parallelism: 1,
        max_parallelism: MaxParallelism::DEFAULT,
        run: Default::default(),
        attempt: Attempt(0),
        parameters: Arc::default(),
        states: Arc::new([]),
        checkpoints: false,
        restored: false,
        metrics: Arc::default(),
        clock: Arc::new(ManualClock::new(0)),
    }
}

/// A batch of these columns, all at one event time.
pub(crate) fn batch(columns: Vec<(&str, DataType, ArrayRef)>, time: i64) -> Batch {
    let rows = columns.first().map_or(0, |(_, _, array)| array.len());
    let fields: Vec<Field> =
        columns.iter().map(|(name, data_type, _)| Field::new(*name, *data_type)).collect();
    let arrays = columns.into_iter().map(|(_, _, array)| array).collect();
    Batch::new(&Schema::new(fields), arrays, vec![time; rows].into()).expect("columns of the schema")
}

/// Polls until the future is ready: nothing here waits for anything.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

/// Throws away what an operator made.
pub(crate) fn discard(out: &mut Collector) {
    while out.pop().is_some() {}
}

//! What the tests of operators share: batches written as text, and user functions written as closures.
//!
//! A batch is a list of lines. The first names the columns, `key:utf8 value:int64?`; each other one is a row, its
//! event time first if it has one: `@1000 a 7`. Values with spaces stand in quotes; `null` is null.

mod closures;
mod text;

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use millstream_operator::{Collector, Operator, OperatorContext, OperatorError, Progress};
use millstream_types::{Attempt, Batch, JobName, MaxParallelism, OperatorId, StreamElement, SubtaskIndex};

pub(crate) use closures::Closures;
pub(crate) use text::{rows, schema, show, text_batch, text_batch_of};

/// The context of subtask 0 of 1 of an operator, with a clock that stands at 0 until it is set.
pub(crate) fn context(operator: &str) -> OperatorContext {
    context_with_clock(operator, Arc::default())
}

/// The same with a clock that the test sets.
pub(crate) fn context_with_clock(
    operator: &str,
    clock: Arc<millstream_operator::ManualClock>,
) -> OperatorContext {
    OperatorContext {
        job: JobName::new("test"),
        operator: OperatorId::new(operator),
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
        clock,
    }
}

/// Runs a future that never waits for anything outside.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

/// Everything that waits in a collector, as text: `port: row` for each row, and the name of every other element.
pub(crate) fn drain(out: &mut Collector) -> String {
    let mut text = String::new();
    while let Some((port, element)) = out.pop() {
        match element {
            StreamElement::Batch(batch) => {
                show(&batch).lines().for_each(|row| text += &format!("{port}: {row}\n"))
            }
            StreamElement::Watermark(i64::MAX) => text += "watermark end\n",
            StreamElement::Watermark(watermark) => text += &format!("watermark {watermark}\n"),
            other => text += &format!("{other:?}\n").to_lowercase(),
        }
    }
    text
}

/// Sends rows into an operator and shows what comes out.
pub(crate) fn process(operator: &mut dyn Operator, batch: Batch) -> Result<String, OperatorError> {
    let mut out = Collector::new();
    block_on(operator.process(0, batch, &mut out))?;
    Ok(drain(&mut out))
}

/// Sends a watermark into an operator until it is done with it, and shows what comes out.
pub(crate) fn watermark(operator: &mut dyn Operator, watermark: i64) -> Result<String, OperatorError> {
    let mut text = String::new();
    let mut out = Collector::new();
    loop {
        let progress = block_on(operator.watermark(watermark, &mut out))?;
        text += &drain(&mut out);
        if progress == Progress::Done {
            return Ok(text);
        }
    }
}

/// Tells an operator that processing time has come, if it waits for it, and shows what comes out.
pub(crate) fn processing_time(operator: &mut dyn Operator, now: i64) -> Result<String, OperatorError> {
    let mut text = String::new();
    let mut out = Collector::new();
    while operator.next_wakeup().is_some_and(|at| at <= now) {
        while block_on(operator.processing_time(now, &mut out))? == Progress::More {}
        text += &drain(&mut out);
    }
    Ok(text)
}

/// The end of input, as a chain does it.
pub(crate) fn end_of_input(operator: &mut dyn Operator) -> Result<String, OperatorError> {
    let mut text = watermark(operator, i64::MAX)?;
    let mut out = Collector::new();
    while block_on(operator.end_of_input(&mut out))? == Progress::More {}
    text += &drain(&mut out);
    block_on(operator.close())?;
    Ok(text)
}

//! Guests written by hand, in the text form of WebAssembly, that do exactly what a test is about.

mod guest;
mod limits;
mod map;
mod modules;
mod process;
mod wasi;
mod windows;

use std::sync::Arc;

use millstream_operator::{ManualClock, OperatorContext, OperatorMetrics};
use millstream_types::{Attempt, JobName, MaxParallelism, OperatorId, SubtaskIndex};

/// Where the functions of these tests run.
fn place() -> OperatorContext {
    OperatorContext {
        job: JobName::new("job"),
        operator: OperatorId::new("operator"),
        subtask: SubtaskIndex(1),
        parallelism: 2,
        max_parallelism: MaxParallelism::DEFAULT,
        run: Default::default(),
        attempt: Attempt(3),
        parameters: Arc::new([("threshold".to_owned(), "15".to_owned())].into()),
        states: Arc::new([]),
        checkpoints: false,
        restored: false,
        metrics: Arc::new(OperatorMetrics::default()),
        clock: Arc::new(ManualClock::new(77)),
    }
}

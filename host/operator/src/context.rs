//! What an operator subtask knows of the place it runs in.

use std::{collections::BTreeMap, sync::Arc};

use millstream_types::{Attempt, JobName, MaxParallelism, OperatorId, RunId, State, SubtaskIndex};

use crate::{Clock, OperatorMetrics};

/// Where an operator runs, with its figures, its clock and its parameters.
#[derive(Clone)]
pub struct OperatorContext {
    /// The job.
    pub job: JobName,
    /// The operator.
    pub operator: OperatorId,
    /// Which of its subtasks this is.
    pub subtask: SubtaskIndex,
    /// Of how many.
    pub parallelism: u32,
    /// Number of key groups of the job.
    pub max_parallelism: MaxParallelism,
    /// The run of the job.
    pub run: RunId,
    /// How often the job has been started before.
    pub attempt: Attempt,
    /// The function's parameters from the job file, defaults filled in.
    pub parameters: Arc<BTreeMap<String, String>>,
    /// The states that its function declares.
    pub states: Arc<[State]>,
    /// Whether the job takes checkpoints: what a sink writes then becomes visible by them.
    pub checkpoints: bool,
    /// Whether the job goes on from a snapshot.
    pub restored: bool,
    /// Its figures.
    pub metrics: Arc<OperatorMetrics>,
    /// Processing time.
    pub clock: Arc<dyn Clock>,
}

impl OperatorContext {
    /// `delays[0]`: how messages name a subtask.
    pub fn name(&self) -> String {
        format!("{}[{}]", self.operator, self.subtask)
    }
}

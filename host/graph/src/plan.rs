//! A job that has passed every check, in all its forms.

use millstream_types::Attempt;

use crate::{
    ConnectorCatalog, ExecutionGraph, JobFile, JobGraph, LogicalGraph, ModuleResolver, build,
    problem::{PlanError, Problem, Report},
    size,
};

/// A checked job: what it says, how its nodes are chained, and every subtask and channel of its first attempt.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the job file says, resolved.
    pub logical: LogicalGraph,
    /// Which nodes share a task.
    pub job: JobGraph,
    /// What runs.
    pub execution: ExecutionGraph,
    /// What is odd but no error.
    pub warnings: Report,
}

impl Plan {
    /// Checks a job file. The error has everything that is wrong with it, in the order of the file.
    pub fn new(
        file: JobFile,
        modules: &dyn ModuleResolver,
        connectors: &dyn ConnectorCatalog,
    ) -> Result<Self, PlanError> {
        let logical = if file.readable { build::logical_graph(&file, modules, connectors) } else { None };
        let (mut errors, warnings) = file.problems.into_sorted();
        if logical.is_none() && errors.is_empty() {
            // A check that gives up without a word is a fault of ours, and must not look like a job that ran.
            errors.push(Problem::error("the job cannot be planned, and no check says why: please report it"));
        }
        let Some(logical) = logical.filter(|_| errors.is_empty()) else {
            return Err(PlanError(Report::new(file.source, errors)));
        };
        let job = JobGraph::new(&logical);
        let errors = size::check(&logical, &job);
        if !errors.is_empty() {
            return Err(PlanError(Report::new(file.source, errors)));
        }
        let execution = ExecutionGraph::new(&job, logical.job.max_parallelism, Attempt(0));
        Ok(Self { logical, job, execution, warnings: Report::new(file.source, warnings) })
    }
}

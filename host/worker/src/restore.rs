//! What the parts of a job go on from.
//!
//! Before anything runs each state of the snapshot is compared with what the plan wants ([`restore_report`]). What is
//! dropped is not read then, and what the host takes over is rewritten as it is read.
//!
//! A subtask that had processed the end of its input has nothing more to do, if that end still holds: if all sources
//! that reach it had ended in all of their subtasks. Otherwise what is left to read may be dealt out to others than
//! before, and the subtask goes on with what it has.

mod in_flight;
mod wanted;

use std::sync::Arc;

use millstream_graph::{Plan, Subtask, VertexIndex};
use millstream_operator::SourceSnapshot;
use millstream_snapshot::{
    OperatorMetadata, RedistributeError, RestoreReport, StateMetadata, Verdict, WantedOperator, state_of,
    verdict_on,
};
use millstream_state::{StateError, evolve_part};
use millstream_storage::{StorageError, StoredSnapshot};
use millstream_task::{Restore, decode_split};
use millstream_types::{OperatorId, StateForm, StatePart};
use tokio::sync::OnceCell;

use in_flight::StoredEdges;

pub(crate) use wanted::{key_of, windows_of};

/// A snapshot that a job cannot go on from.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The job has other key groups.
    #[error(transparent)]
    Redistribute(#[from] RedistributeError),
    /// State would be lost, or cannot be read as the job has it.
    #[error("{}", refusal(.0))]
    Refused(RestoreReport),
    /// State cannot be taken over after all.
    #[error("the state of `{operator}` cannot be taken over")]
    State {
        /// The operator.
        operator: String,
        /// Why.
        source: StateError,
    },
    /// It cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Rows that all were to get, and others than before.
    #[error(
        "rows were under way to all {found} subtasks behind `{edge}`, each of which had got others of them, and the job has {wanted}: go on at the same parallelism, or from a savepoint, at which nothing is under way"
    )]
    Broadcast {
        /// The edge.
        edge: String,
        /// How many there were.
        found: usize,
        /// How many there are.
        wanted: u32,
    },
    /// A split in it is none.
    #[error("the snapshot has a split of `{operator}` that cannot be read")]
    Split {
        /// The source.
        operator: String,
    },
}

/// The states on which the verdict is no, on a line.
fn refusal(report: &RestoreReport) -> String {
    let refused =
        report.verdicts.iter().filter(|v| matches!(v.verdict, Verdict::Missing | Verdict::Incompatible(_)));
    let text =
        |v: &millstream_snapshot::StateVerdict| format!("`{}` of `{}` is {}", v.state, v.operator, v.verdict);
    format!("the job cannot go on from the snapshot: {}", refused.map(text).collect::<Vec<_>>().join("; "))
}

/// What becomes of each state of a snapshot if a job goes on from it. The error is about the snapshot as a whole.
pub fn restore_report(snapshot: &StoredSnapshot, plan: &Plan) -> Result<RestoreReport, RestoreError> {
    let (found, wanted) = (snapshot.metadata.max_parallelism, plan.logical.job.max_parallelism);
    if found != wanted {
        return Err(RedistributeError::KeyGroups { found, wanted }.into());
    }
    in_flight::check_broadcast(snapshot, plan)?;
    Ok(RestoreReport::new(&snapshot.metadata, &wanted::wanted(plan)))
}

/// A snapshot that fits the job.
#[derive(Clone, Debug)]
pub(crate) struct RestorePlan {
    snapshot: Arc<StoredSnapshot>,
    /// What the operators of the job keep.
    wanted: Arc<[WantedOperator]>,
    /// Whether checkpoints may build on it.
    is_base: bool,
    /// Whether all sources that reach a vertex had ended, by vertex.
    sources_ended: Arc<[bool]>,
    /// What was under way in channels, once somebody has asked for it.
    in_flight: Arc<OnceCell<StoredEdges>>,
}

impl RestorePlan {
    /// Checks that a job can go on from a snapshot, on which checkpoints may build if it is one of their run.
    pub(crate) fn new(
        snapshot: Arc<StoredSnapshot>,
        is_base: bool,
        plan: &Plan,
        allow_dropped: bool,
    ) -> Result<Self, RestoreError> {
        let report = restore_report(&snapshot, plan)?;
        if report.is_refused(allow_dropped) {
            return Err(RestoreError::Refused(report));
        }
        let sources_ended = sources_ended(&snapshot, plan).into();
        let (wanted, in_flight) = (wanted::wanted(plan).into(), Arc::default());
        Ok(Self { snapshot, wanted, is_base, sources_ended, in_flight })
    }

    /// Whether the snapshot has an operator.
    pub(crate) fn has(&self, operator: &OperatorId) -> bool {
        self.snapshot.metadata.operator(operator.as_str()).is_some()
    }

    /// What a subtask goes on from.
    pub(crate) async fn subtask(&self, plan: &Plan, subtask: &Subtask) -> Result<Restore, RestoreError> {
        let chain = &plan.job.vertex(subtask.vertex).chain;
        let mut ended = self.sources_ended[subtask.vertex.0];
        let mut operators = Vec::with_capacity(chain.len());
        for chained in chain {
            let id = &plan.logical.node(chained.node).id;
            let mut parts = Vec::new();
            match self.snapshot.metadata.operator(id.as_str()) {
                None => ended = false,
                Some(operator) => {
                    let max = self.snapshot.metadata.max_parallelism;
                    let state = state_of(operator, subtask.index.0, subtask.parallelism, max);
                    ended &= state.ended;
                    let own =
                        |s: &&StateMetadata| !matches!(s.form, StateForm::Splits | StateForm::Overtaken);
                    for state in state.states.iter().filter(own) {
                        // At another parallelism a subtask's chunks are described elsewhere.
                        let same = operator.subtasks.len() == subtask.parallelism as usize;
                        let base = (self.is_base && same).then_some(self.snapshot.metadata.checkpoint);
                        let part = self.part(operator, state, base).await?;
                        parts.extend(part);
                    }
                }
            }
            operators.push(parts);
        }
        Ok(Restore { ended, operators, resent: self.resent(plan, subtask).await? })
    }

    /// A state as the operator wants it; none if it is dropped. Of one that stays as it is `base` says what it is of.
    async fn part(
        &self,
        operator: &OperatorMetadata,
        state: &StateMetadata,
        base: Option<u64>,
    ) -> Result<Option<StatePart>, RestoreError> {
        let Some(wanted) = self.wanted.iter().find(|wanted| wanted.id == operator.id) else {
            return Ok(None);
        };
        match verdict_on(state, operator, wanted) {
            Verdict::Missing | Verdict::New | Verdict::Incompatible(_) => Ok(None),
            Verdict::Same => Ok(Some(StatePart { base, ..self.snapshot.read(state).await? })),
            Verdict::Migrated { .. } => Ok(Some(self.snapshot.read(state).await?)),
            Verdict::Widened(_) => {
                let part = self.snapshot.read(state).await?;
                let found = wanted.states.iter().find(|w| w.name == state.name && w.form == state.form);
                let wanted = found.expect("the verdict has found it");
                let evolved = evolve_part(part, &wanted.columns, wanted.version);
                let failed = |source| RestoreError::State { operator: operator.id.clone(), source };
                evolved.map(Some).map_err(failed)
            }
        }
    }

    /// What a source goes on from; none if the snapshot does not have it.
    pub(crate) async fn source(&self, id: &OperatorId) -> Result<Option<SourceSnapshot>, RestoreError> {
        let Some(operator) = self.snapshot.metadata.operator(id.as_str()) else { return Ok(None) };
        let mut source = SourceSnapshot::default();
        let of_subtasks = operator.subtasks.iter().flat_map(|subtask| &subtask.states);
        for state in operator.shared.iter().chain(of_subtasks) {
            match state.form {
                StateForm::Enumerator => {
                    let part = self.snapshot.read(state).await?;
                    source.enumerator = part.chunks.into_iter().flat_map(|chunk| chunk.bytes).collect();
                }
                StateForm::Splits => {
                    for chunk in self.snapshot.read(state).await?.chunks {
                        let split = decode_split(&chunk.bytes);
                        let damaged = || RestoreError::Split { operator: id.to_string() };
                        source.unfinished.push(split.ok_or_else(damaged)?);
                    }
                }
                _ => {}
            }
        }
        Ok(Some(source))
    }
}

/// For each vertex, whether all subtasks of all sources that reach it had ended. Vertices are in topological order.
fn sources_ended(snapshot: &StoredSnapshot, plan: &Plan) -> Vec<bool> {
    let mut all: Vec<bool> = Vec::with_capacity(plan.job.vertices.len());
    for (index, vertex) in plan.job.vertices.iter().enumerate() {
        let mut above = plan.job.edges.iter().filter(|e| e.to == VertexIndex(index)).peekable();
        let ended = match above.peek() {
            Some(_) => above.all(|edge| all[edge.from.0]),
            None => {
                let id = plan.logical.node(vertex.head()).id.as_str();
                let source = snapshot.metadata.operator(id);
                source.is_some_and(|o| !o.subtasks.is_empty() && o.subtasks.iter().all(|s| s.ended))
            }
        };
        all.push(ended);
    }
    all
}

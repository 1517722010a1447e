//! What the parts of a job go on from.
//!
//! Before anything runs each state of the snapshot is compared with what the plan wants ([`restore_report`]). What is
//! dropped is not read then, and what the host takes over is rewritten as it is read.
//!
//! A subtask that had processed the end of its input has nothing more to do, if that end still holds: if all sources
//! that reach it had ended in all of their subtasks. Otherwise what is left to read may be dealt out to others than
//! before, and the subtask goes on with what it has.

mod in_flight;
mod look;
mod pieces;
mod store;
mod wanted;

use std::{io, sync::Arc};

use millstream_graph::{Plan, Subtask, VertexIndex};
use millstream_operator::SourceSnapshot;
use millstream_snapshot::{
    OperatorMetadata, RedistributeError, RestoreReport, StateMetadata, Verdict, WantedOperator, state_of,
    verdict_on,
};
use millstream_state::{StateError, evolve_part};
use millstream_storage::{StorageError, StoredSnapshot};
use millstream_task::{Restore, StatePieces, decode_split};
use millstream_types::{Column, OperatorId, StateForm, StatePart};
use tokio::sync::OnceCell;

use crate::{
    build::StateBackend,
    checkpoint::{Stored, StoredSnapshots},
};
use in_flight::StoredEdges;
use pieces::{ChunkPieces, PIECE};
use store::{FromStore, Restorer};

pub use look::stored_pieces;
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
    /// There is no place for what is fetched.
    #[error("there is no place for the state that is fetched")]
    Folder(#[from] io::Error),
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

    pub(crate) fn snapshot(&self) -> &StoredSnapshot {
        &self.snapshot
    }

    /// Whether checkpoints may build on it.
    pub(crate) fn is_base(&self) -> bool {
        self.is_base
    }

    /// What the subtasks of a plan have of it, for the checkpoints that build on it; nothing if none may.
    pub(crate) fn stored(&self, plan: &Plan) -> StoredSnapshots {
        let metadata = &self.snapshot.metadata;
        let of_subtask = |subtask: &Subtask| -> Stored {
            let chain = &plan.job.vertex(subtask.vertex).chain;
            let ids = chain.iter().map(|chained| &plan.logical.node(chained.node).id);
            let of = |id: &OperatorId| {
                metadata.operator(id.as_str())?.subtasks.get(subtask.index.index()).cloned()
            };
            ids.filter_map(|id| Some((id.clone(), of(id)?))).collect()
        };
        let subtasks = plan.execution.subtasks.iter().map(|subtask| Arc::new(of_subtask(subtask)));
        let all = self.is_base.then(|| (metadata.checkpoint, subtasks.enumerate().collect()));
        all.into_iter().collect()
    }

    /// Whether the snapshot has an operator.
    pub(crate) fn has(&self, operator: &OperatorId) -> bool {
        self.snapshot.metadata.operator(operator.as_str()).is_some()
    }

    /// What a subtask goes on from.
    pub(crate) async fn subtask(
        &self,
        plan: &Plan,
        subtask: &Subtask,
        backend: &StateBackend,
    ) -> Result<Restore, RestoreError> {
        let chain = &plan.job.vertex(subtask.vertex).chain;
        let mut ended = self.sources_ended[subtask.vertex.0];
        let (mut operators, mut pieces) = (Vec::with_capacity(chain.len()), Vec::new());
        for (position, chained) in chain.iter().enumerate() {
            let node = plan.logical.node(chained.node);
            let id = &node.id;
            let restorer = Restorer {
                position,
                states: node.function().map_or(&[], |function| &function.declaration.states),
                backend,
                index: subtask.index.0,
                parallelism: subtask.parallelism,
            };
            let mut parts = Vec::new();
            match self.snapshot.metadata.operator(id.as_str()) {
                None => ended = false,
                Some(operator) => {
                    let max = self.snapshot.metadata.max_parallelism;
                    let state = state_of(operator, subtask.index.0, subtask.parallelism, max);
                    ended &= state.ended;
                    let in_store = state.states.iter().any(|state| state.form == StateForm::Store);
                    let own =
                        |s: &&StateMetadata| !matches!(s.form, StateForm::Splits | StateForm::Overtaken);
                    for state in state.states.iter().filter(own) {
                        // At another parallelism a subtask's chunks are described elsewhere.
                        let same = operator.subtasks.len() == subtask.parallelism as usize;
                        let base = (self.is_base && same).then_some(self.snapshot.metadata.checkpoint);
                        match state.form {
                            StateForm::Store => match self.restore_store(operator, state, &restorer).await? {
                                FromStore::Part(part) => parts.push(part),
                                FromStore::Pieces(more) => pieces.push(more),
                            },
                            // Listed for its columns only.
                            _ if in_store && is_by_key(state.form) && state.chunks.is_empty() => {}
                            _ if backend.is_on_disk() && is_large(state) => {
                                pieces.extend(self.pieces(operator, state).map(|more| (position, more)));
                            }
                            _ => parts.extend(self.part(operator, state, base).await?),
                        }
                    }
                }
            }
            operators.push(parts);
        }
        Ok(Restore { ended, operators, pieces, resent: self.resent(plan, subtask).await? })
    }

    /// A state as the operator wants it; none if it is dropped. Of one that stays as it is `base` says what it is of.
    async fn part(
        &self,
        operator: &OperatorMetadata,
        state: &StateMetadata,
        base: Option<u64>,
    ) -> Result<Option<StatePart>, RestoreError> {
        let Some(takeover) = self.takeover(operator, state) else { return Ok(None) };
        let part = takeover.apply(self.snapshot.read(state).await?, &operator.id)?;
        // What is rewritten is not what the base has.
        let base = base.filter(|_| takeover.is_same);
        Ok(Some(StatePart { base, ..part }))
    }

    /// The chunks of a state, to be read while they are restored; none if it is dropped.
    fn pieces(&self, operator: &OperatorMetadata, state: &StateMetadata) -> Option<Box<dyn StatePieces>> {
        let takeover = self.takeover(operator, state)?;
        let (snapshot, operator) = (self.snapshot.clone(), operator.id.clone());
        Some(Box::new(ChunkPieces { snapshot, operator, state: state.clone(), takeover }))
    }

    /// What becomes of a state; none if it is dropped.
    fn takeover(&self, operator: &OperatorMetadata, state: &StateMetadata) -> Option<Takeover> {
        let wanted = self.wanted.iter().find(|wanted| wanted.id == operator.id)?;
        match verdict_on(state, operator, wanted) {
            Verdict::Missing | Verdict::New | Verdict::Incompatible(_) => None,
            Verdict::Same => Some(Takeover { is_same: true, evolved: None }),
            // By the operator.
            Verdict::Migrated { .. } => Some(Takeover { is_same: false, evolved: None }),
            Verdict::Widened(_) => {
                let found = wanted.states.iter().find(|w| w.name == state.name && w.form == state.form);
                let wanted = found.expect("the verdict has found it");
                Some(Takeover { is_same: false, evolved: Some((wanted.columns.clone(), wanted.version)) })
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

/// How a state is taken over.
#[derive(Clone, Debug)]
struct Takeover {
    /// Whether the bytes stay as they are.
    is_same: bool,
    /// The columns and the version that the host makes of it.
    evolved: Option<(Vec<Column>, u32)>,
}

impl Takeover {
    fn apply(&self, part: StatePart, operator: &str) -> Result<StatePart, RestoreError> {
        let Some((columns, version)) = &self.evolved else { return Ok(part) };
        let evolved = evolve_part(part, columns, *version);
        evolved.map_err(|source| RestoreError::State { operator: operator.to_owned(), source })
    }
}

/// Whether a state is kept by key, and so much that it is not restored at once where it is kept on disk.
fn is_large(state: &StateMetadata) -> bool {
    is_by_key(state.form) && state.bytes() > PIECE
}

/// Whether state of a form is what a store may have.
fn is_by_key(form: StateForm) -> bool {
    matches!(
        form,
        StateForm::Value
            | StateForm::List
            | StateForm::Map
            | StateForm::EventTimers
            | StateForm::ProcessingTimers
            | StateForm::Expiries
            | StateForm::Accumulators
            | StateForm::Contents
            | StateForm::SessionAccumulators
            | StateForm::SessionContents
    )
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

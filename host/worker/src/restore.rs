//! What the parts of a job go on from.
//!
//! A subtask that had processed the end of its input has nothing more to do, if that end still holds: if all sources
//! that reach it had ended in all of their subtasks. Otherwise what is left to read may be dealt out to others than
//! before, and the subtask goes on with what it has.

use std::sync::Arc;

use millstream_graph::{Plan, Subtask, VertexIndex};
use millstream_operator::SourceSnapshot;
use millstream_snapshot::{OperatorMetadata, RedistributeError, state_of};
use millstream_storage::{StorageError, StoredSnapshot};
use millstream_task::{Restore, decode_split};
use millstream_types::{OperatorId, StateForm};

/// A snapshot that a job cannot go on from.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The job has other key groups.
    #[error(transparent)]
    Redistribute(#[from] RedistributeError),
    /// State would be lost.
    #[error("the snapshot has state of `{operator}`, which the job does not have; it would be lost")]
    Dropped {
        /// The operator.
        operator: String,
    },
    /// It cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A split in it is none.
    #[error("the snapshot has a split of `{operator}` that cannot be read")]
    Split {
        /// The source.
        operator: String,
    },
}

/// A snapshot that fits the job.
#[derive(Clone, Debug)]
pub(crate) struct RestorePlan {
    snapshot: Arc<StoredSnapshot>,
    /// Whether all sources that reach a vertex had ended, by vertex.
    sources_ended: Arc<[bool]>,
}

impl RestorePlan {
    /// Checks that a job can go on from a snapshot.
    pub(crate) fn new(snapshot: Arc<StoredSnapshot>, plan: &Plan) -> Result<Self, RestoreError> {
        let metadata = &snapshot.metadata;
        let (found, wanted) = (metadata.max_parallelism, plan.logical.job.max_parallelism);
        if found != wanted {
            return Err(RedistributeError::KeyGroups { found, wanted }.into());
        }
        let known = |id: &str| plan.logical.nodes.iter().any(|node| node.id.as_str() == id);
        let dropped = metadata.operators.iter().find(|o| has_state(o) && !known(&o.id));
        if let Some(dropped) = dropped {
            return Err(RestoreError::Dropped { operator: dropped.id.clone() });
        }
        let sources_ended = sources_ended(&snapshot, plan).into();
        Ok(Self { snapshot, sources_ended })
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
                    for state in state.states.iter().filter(|s| s.form != StateForm::Splits) {
                        parts.push(self.snapshot.read(state).await?);
                    }
                }
            }
            operators.push(parts);
        }
        Ok(Restore { ended, operators })
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

fn has_state(operator: &OperatorMetadata) -> bool {
    operator.subtasks.iter().flat_map(|s| &s.states).chain(&operator.shared).any(|s| !s.chunks.is_empty())
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

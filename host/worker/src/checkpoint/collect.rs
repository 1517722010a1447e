//! The snapshots of all participants as the metadata of one checkpoint.

use std::{collections::BTreeMap, sync::Arc};

use millstream_snapshot::{OperatorMetadata, SnapshotKind, SnapshotMetadata};
use millstream_types::{BarrierKind, Column, MaxParallelism};

use super::store::Stored;
use crate::edges::EdgeName;

/// Who takes part in the checkpoints of a job.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) job: String,
    pub(crate) max_parallelism: MaxParallelism,
    /// The columns by which operators are keyed; those that are not have none.
    pub(crate) keys: BTreeMap<String, Vec<Column>>,
    /// How operators cut time into windows; those that do not are not there.
    pub(crate) windows: BTreeMap<String, String>,
    /// The exchanges by position, for what is under way on them.
    pub(crate) edges: Vec<EdgeName>,
    /// First the subtasks, by vertex and then by index, then the enumerators.
    pub(crate) participants: Vec<Participant>,
}

/// What a participant's snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Participant {
    /// The operators of a chain, in the subtask of this number.
    Subtask(usize),
    /// What a source has once.
    Enumerator,
}

/// The snapshots that have been stored for a checkpoint.
pub(crate) struct Collected {
    layout: Arc<Layout>,
    /// By participant.
    stored: Vec<Option<Stored>>,
}

impl Collected {
    pub(crate) fn new(layout: Arc<Layout>) -> Self {
        let stored = layout.participants.iter().map(|_| None).collect();
        Self { layout, stored }
    }

    pub(crate) fn add(&mut self, participant: usize, stored: Stored) {
        self.stored[participant] = Some(stored);
    }

    /// The metadata, once all are there. Subtasks of an operator follow each other, as participants do.
    pub(crate) fn metadata(
        &self,
        checkpoint: u64,
        kind: BarrierKind,
        triggered: i64,
        completed: i64,
    ) -> SnapshotMetadata {
        let mut operators: BTreeMap<&str, OperatorMetadata> = BTreeMap::new();
        for (participant, stored) in self.layout.participants.iter().zip(&self.stored) {
            for (id, subtask) in stored.iter().flatten() {
                let new = || OperatorMetadata {
                    id: id.to_string(),
                    key: self.layout.keys.get(id.as_str()).cloned().unwrap_or_default(),
                    windows: self.layout.windows.get(id.as_str()).cloned().unwrap_or_default(),
                    subtasks: Vec::new(),
                    shared: Vec::new(),
                };
                let operator = operators.entry(id.as_str()).or_insert_with(new);
                match participant {
                    Participant::Subtask(_) => operator.subtasks.push(subtask.clone()),
                    Participant::Enumerator => operator.shared.extend(subtask.states.iter().cloned()),
                }
            }
        }
        SnapshotMetadata {
            checkpoint,
            kind: match kind {
                BarrierKind::Savepoint => SnapshotKind::Savepoint,
                BarrierKind::Checkpoint | BarrierKind::Swap => SnapshotKind::Checkpoint,
            },
            job: self.layout.job.clone(),
            max_parallelism: self.layout.max_parallelism,
            triggered,
            completed,
            operators: operators.into_values().collect(),
            program: None,
        }
    }
}

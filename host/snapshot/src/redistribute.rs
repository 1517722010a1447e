//! Whose state is whose at a restore, at the same parallelism or another.
//!
//! At the same parallelism a subtask gets what the subtask of its number had. At another one, chunks of keyed state go
//! by their key group, items are dealt out in turn, and what is dealt to all goes to all. A job may only be restored with
//! as many key groups as it had, as the keys would lie elsewhere.

use millstream_types::{Dealing, KeyGroupRange, MaxParallelism};

use crate::{OperatorMetadata, StateMetadata};

/// What one subtask of an operator restores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubtaskState {
    /// Whether it has nothing more to do: it, or at another parallelism everybody, had processed the end of its input.
    pub ended: bool,
    /// The states, each with the chunks that are the subtask's. Two may have the same name and form.
    pub states: Vec<StateMetadata>,
}

/// A restore that cannot be exact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedistributeError {
    /// The number of key groups differs.
    #[error(
        "the snapshot has {found} key groups and the job {wanted}: keys would lie elsewhere; set `max-parallelism = {found}`"
    )]
    KeyGroups {
        /// Of the snapshot.
        found: MaxParallelism,
        /// Of the job.
        wanted: MaxParallelism,
    },
}

/// What subtask `index` of `parallelism` restores of an operator.
pub fn state_of(
    operator: &OperatorMetadata,
    index: u32,
    parallelism: u32,
    max: MaxParallelism,
) -> SubtaskState {
    if operator.subtasks.len() == parallelism as usize {
        let subtask = &operator.subtasks[index as usize];
        return SubtaskState { ended: subtask.ended, states: subtask.states.clone() };
    }
    let range = KeyGroupRange::of(index, parallelism, max).0;
    let mut dealt = 0;
    let mut states = Vec::new();
    for state in operator.subtasks.iter().flat_map(|subtask| &subtask.states) {
        let mut mine = state.clone();
        mine.chunks.retain(|chunk| match state.form.dealing() {
            Dealing::ByKeyGroup => chunk.key_group.is_some_and(|group| range.contains(&group.0)),
            Dealing::ToAll => true,
            // It is no state of the operator's.
            Dealing::ToSenders => false,
            Dealing::InTurn => {
                dealt += 1;
                (dealt - 1) % parallelism == index
            }
        });
        if !mine.chunks.is_empty() {
            states.push(mine);
        }
    }
    let ended = !operator.subtasks.is_empty() && operator.subtasks.iter().all(|subtask| subtask.ended);
    SubtaskState { ended, states }
}

//! Whose state is whose at a restore, at the same parallelism or another.
//!
//! At the same parallelism a subtask gets what the subtask of its number had. At another one, chunks of keyed state go
//! by their key group, items are dealt out in turn, what is dealt to all goes to all, and the files of a store go to all
//! who take key groups out of them. A job may only be restored with as many key groups as it had, as the keys would lie
//! elsewhere.

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
    let mut shares = Vec::new();
    let before = operator.subtasks.len() as u32;
    let states =
        (0..).zip(&operator.subtasks).flat_map(|(i, subtask)| subtask.states.iter().map(move |s| (i, s)));
    for (had_by, state) in states {
        let had = KeyGroupRange::of(had_by, before, max).0;
        let overlaps = had.start < range.end && range.start < had.end;
        let mut mine = state.clone();
        mine.chunks.retain(|chunk| match state.form.dealing() {
            Dealing::ByKeyGroup => chunk.key_group.is_some_and(|group| range.contains(&group.0)),
            Dealing::ByOverlap => overlaps,
            Dealing::ToAll => true,
            // It is no state of the operator's.
            Dealing::ToSenders => false,
            Dealing::InTurn => {
                dealt += 1;
                (dealt - 1) % parallelism == index
            }
        });
        if !mine.chunks.is_empty() {
            shares.push(mine);
        }
    }
    let ended = !operator.subtasks.is_empty() && operator.subtasks.iter().all(|subtask| subtask.ended);
    SubtaskState { ended, states: shares }
}

#[cfg(test)]
mod tests {
    use millstream_types::{StateChunk, StateForm, StatePart};

    use super::*;
    use crate::{Location, SubtaskMetadata};

    #[test]
    fn stores_go_to_all_who_take_key_groups_out_of_them() {
        let store = |subtask: u8| {
            let part = StatePart::plain("store", StateForm::Store, vec![StateChunk::item(vec![subtask; 3])]);
            let states = vec![StateMetadata::of_part(&part, Location::Inline(vec![subtask; 3]), 0)];
            SubtaskMetadata { states, ..SubtaskMetadata::default() }
        };
        let operator = OperatorMetadata {
            id: "op".into(),
            key: Vec::new(),
            windows: String::new(),
            subtasks: (0..4).map(store).collect(),
            shared: Vec::new(),
        };
        let max = MaxParallelism::new(8).expect("in range");
        let of = |index, parallelism| -> Vec<Location> {
            let states = state_of(&operator, index, parallelism, max).states;
            states.into_iter().flat_map(|state| state.places).collect()
        };
        let expected = |subtasks: &[u8]| -> Vec<Location> {
            subtasks.iter().map(|&subtask| Location::Inline(vec![subtask; 3])).collect()
        };
        assert_eq!(of(0, 1), expected(&[0, 1, 2, 3]));
        // Key groups 0 to 2, 3 to 5, and 6 and 7; two of each store.
        assert_eq!([of(0, 3), of(1, 3), of(2, 3)], [expected(&[0, 1]), expected(&[1, 2]), expected(&[3])]);
        assert_eq!(of(5, 8), expected(&[2]));
        assert_eq!(of(2, 4), expected(&[2]));
    }
}

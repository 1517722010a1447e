//! A list a key, with what the current call has appended and cleared.

use millstream_types::{Column, Columns, Runs};

use crate::{
    StateError, changes::ChangedSlots, list_store::ListStore, slot_store::SlotStore,
    value_state::interleave_columns,
};

/// Lists by slot, and changes not yet applied.
#[derive(Clone, Debug)]
pub(crate) struct ListState {
    store: ListStore,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    /// Run i goes to group `groups[i]`.
    Append {
        groups: Vec<u32>,
        runs: Runs,
    },
    Clear {
        groups: Vec<u32>,
    },
}

impl ListState {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { store: ListStore::new(columns), changes: Vec::new() }
    }

    pub(crate) fn grow(&mut self, slots: usize) {
        self.store.grow(slots);
    }

    pub(crate) fn store(&self) -> &ListStore {
        &self.store
    }

    pub(crate) fn store_mut(&mut self) -> &mut ListStore {
        &mut self.store
    }

    pub(crate) fn is_present(&self, slot: u32) -> bool {
        self.store.rows(slot) > 0
    }

    /// The lists of some groups, as the call sees them.
    pub(crate) fn read(&self, groups: &[u32], slot_of_group: &[u32]) -> Result<Runs, StateError> {
        let stored = self.store.read(groups.iter().map(|&g| slot_of_group[g as usize]))?;
        if self.changes.is_empty() {
            Ok(stored)
        } else {
            Ok(self.overlay(groups, &stored, slot_of_group.len()))
        }
    }

    pub(crate) fn append(&mut self, groups: &[u32], runs: Runs) {
        self.changes.push(Change::Append { groups: groups.to_vec(), runs });
    }

    pub(crate) fn clear(&mut self, groups: &[u32]) {
        self.changes.push(Change::Clear { groups: groups.to_vec() });
    }

    /// Applies the changes; slots that are written are marked in `changed`, cleared ones are added to `cleared`.
    pub(crate) fn commit(
        &mut self,
        slot_of_group: &[u32],
        cleared: &mut Vec<u32>,
        changed: &mut ChangedSlots,
    ) {
        for change in self.changes.drain(..) {
            match change {
                Change::Append { groups, runs } => {
                    let rows = groups.iter().enumerate().flat_map(|(i, &group)| {
                        let slot = slot_of_group[group as usize];
                        run(&runs, i).map(move |row| (slot, row))
                    });
                    changed.mark(rows.clone().map(|(slot, _)| slot));
                    self.store.append(rows, &runs.items);
                }
                Change::Clear { groups } => {
                    for group in groups {
                        let slot = slot_of_group[group as usize];
                        self.store.remove(slot);
                        changed.mark([slot]);
                        cleared.push(slot);
                    }
                }
            }
        }
    }

    pub(crate) fn rollback(&mut self) {
        self.changes.clear();
    }

    /// What is stored for `groups`, changed as the call has changed it.
    fn overlay(&self, groups: &[u32], stored: &Runs, all_groups: usize) -> Runs {
        let mut emptied = vec![false; all_groups];
        let mut appended: Vec<Vec<(usize, usize)>> = vec![Vec::new(); all_groups];
        for (source, change) in self.changes.iter().enumerate() {
            match change {
                Change::Append { groups, runs } => groups.iter().enumerate().for_each(|(i, &group)| {
                    appended[group as usize].extend(run(runs, i).map(|row| (source + 1, row)));
                }),
                Change::Clear { groups } => groups.iter().for_each(|&group| {
                    emptied[group as usize] = true;
                    appended[group as usize].clear();
                }),
            }
        }
        let (mut offsets, mut places) = (vec![0], Vec::new());
        for (i, &group) in groups.iter().enumerate() {
            if !emptied[group as usize] {
                places.extend(run(stored, i).map(|row| (0, row)));
            }
            places.extend(&appended[group as usize]);
            offsets.push(places.len() as u32);
        }
        let nothing = stored.items.slice(0, 0);
        let items = |change: &'_ Change| match change {
            Change::Append { runs, .. } => runs.items.clone(),
            Change::Clear { .. } => nothing.clone(),
        };
        let sources: Vec<Columns> =
            std::iter::once(stored.items.clone()).chain(self.changes.iter().map(items)).collect();
        Runs { offsets, items: interleave_columns(&sources.iter().collect::<Vec<_>>(), &places) }
    }
}

/// The rows of a run.
fn run(runs: &Runs, index: usize) -> std::ops::Range<usize> {
    runs.offsets[index] as usize..runs.offsets[index + 1] as usize
}

//! The key group of each slot, so that what a key group has is found without a look at every key.

use std::{collections::BTreeSet, ops::Range};

use millstream_types::{KeyGroup, MaxParallelism, hash_key};

use crate::{KeyTable, prefetch::prefetch};

/// Key groups by slot, as far as they are known, and which there are.
#[derive(Default)]
pub(super) struct KeyGroups {
    of_slot: Vec<u16>,
    /// Groups that have had keys since they were last found to be empty.
    present: BTreeSet<KeyGroup>,
}

impl KeyGroups {
    /// The group of an occupied slot.
    pub(super) fn of(&mut self, slot: u32, keys: &KeyTable, max: MaxParallelism) -> KeyGroup {
        match self.of_slot.get(slot as usize) {
            Some(&group) if group != UNKNOWN => KeyGroup(group),
            _ => {
                let group = max.group_of(hash_key(keys.key(slot)));
                self.set(slot, group);
                group
            }
        }
    }

    /// Asks for the memory of some slots' groups.
    pub(super) fn prefetch(&self, slots: &[u32]) {
        slots.iter().for_each(|&slot| prefetch(&self.of_slot, slot as usize));
    }

    /// The group of a slot is known.
    pub(super) fn set(&mut self, slot: u32, group: KeyGroup) {
        if self.of_slot.len() <= slot as usize {
            self.of_slot.resize((slot as usize + 1).next_power_of_two(), UNKNOWN);
        }
        self.of_slot[slot as usize] = group.0;
        self.present.insert(group);
    }

    /// The key of a slot goes.
    #[inline]
    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(group) = self.of_slot.get_mut(slot as usize) {
            *group = UNKNOWN;
        }
    }

    /// Every slot whose group is known is below this.
    pub(super) fn slots(&self) -> usize {
        self.of_slot.len()
    }

    /// The slots of a group among some, ascending.
    pub(super) fn slots_of(&self, group: KeyGroup, among: Range<usize>) -> Vec<u32> {
        let mut slots = Vec::new();
        for (at, groups) in among.clone().step_by(STRIDE).zip(self.of_slot[among].chunks(STRIDE)) {
            // Without a branch for each slot: most strides have none of the group.
            if groups.iter().fold(false, |found, &g| found | (g == group.0)) {
                let of_stride = groups.iter().enumerate().filter(|(_, g)| **g == group.0);
                slots.extend(of_stride.map(|(i, _)| (at + i) as u32));
            }
        }
        slots
    }

    /// How many groups there are.
    pub(super) fn present(&self) -> usize {
        self.present.len()
    }

    /// The first group from one on; behind the last one comes the first.
    pub(super) fn next(&self, from: KeyGroup) -> Option<KeyGroup> {
        self.present.range(from..).chain(&self.present).next().copied()
    }

    /// A group has been found to be empty.
    pub(super) fn is_empty(&mut self, group: KeyGroup) {
        self.present.remove(&group);
    }
}

/// The group of a slot of which nothing is known.
const UNKNOWN: u16 = u16::MAX;
/// Slots that are looked at together.
const STRIDE: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_by_their_group_and_groups_in_turn() {
        let mut groups = KeyGroups::default();
        (0..200).for_each(|slot| groups.set(slot, KeyGroup((slot % 40) as u16 + 5)));
        groups.forget(47);
        assert_eq!(groups.slots_of(KeyGroup(12), 0..groups.slots()), [7, 87, 127, 167]);
        assert_eq!(groups.slots_of(KeyGroup(12), 8..128), [87, 127]);
        assert!(groups.slots_of(KeyGroup(4), 0..200).is_empty());
        assert_eq!((groups.present(), groups.next(KeyGroup(0))), (40, Some(KeyGroup(5))));
        groups.is_empty(KeyGroup(44));
        assert_eq!([43, 44].map(|from| groups.next(KeyGroup(from))), [Some(KeyGroup(43)), Some(KeyGroup(5))]);
    }
}

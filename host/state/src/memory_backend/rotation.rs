//! Which key groups a snapshot of changes writes whole: a few in turn, so that no chain of changes gets long.
//!
//! What has been written as changes is paid for with as many bytes of whole groups in later snapshots. So in the long
//! run a snapshot writes twice what has changed; and by the time that a group's turn comes again, changes have been
//! written as large as the state, half of which on average lie upon a group's last whole chunk: a restore reads one and a
//! half times the state. Where little changes, groups are written whole because of the number of chunks upon the last
//! whole one, whose descriptions are in every checkpoint.

use std::collections::BTreeMap;

use millstream_types::{ChunkKind, KeyGroup, StateChunk};

/// Whose turn it is, and what is owed.
#[derive(Debug)]
pub(super) struct Rotation {
    /// The group from which to go on.
    pub(super) next: KeyGroup,
    /// The most changes upon the last whole chunk of a group that a restore has seen.
    restored: usize,
    /// Bytes of changes that are not paid for.
    owed: i64,
    /// How often groups have had changes, since they were written whole for the sake of that.
    steps: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { next: KeyGroup(0), restored: 0, owed: 0, steps: 0 }
    }
}

impl Rotation {
    /// Goes on with the group that has not been written whole for the longest time.
    pub(super) fn restored(&mut self, chunks: &[StateChunk]) {
        let mut changes: BTreeMap<KeyGroup, usize> = BTreeMap::new();
        let of_group = chunks.iter().filter(|chunk| chunk.kind == ChunkKind::Changes);
        of_group
            .filter_map(|chunk| chunk.key_group)
            .for_each(|group| *changes.entry(group).or_default() += 1);
        for (group, changes) in changes {
            if changes > self.restored {
                (self.next, self.restored) = (group, changes);
            }
        }
    }

    /// Whether a further one of the groups is to be written whole.
    pub(super) fn is_due(&self, groups: usize) -> bool {
        self.owed > 0 || self.steps >= longest_chain(groups)
    }

    /// One of the groups has been written whole.
    pub(super) fn written_whole(&mut self, group: KeyGroup, bytes: usize, groups: usize) {
        self.next = KeyGroup(group.0.wrapping_add(1));
        self.owed -= bytes as i64;
        self.steps = self.steps.saturating_sub(longest_chain(groups));
    }

    /// Changes have been written, of any of so many groups.
    pub(super) fn written_changes(&mut self, bytes: usize, groups: usize) {
        self.owed += bytes as i64;
        self.steps += groups;
    }
}

/// How many changes may lie upon the last whole chunk of a group, of so many groups: what bounds the descriptions of
/// chunks that every checkpoint has, and the files that a restore reads.
fn longest_chain(groups: usize) -> usize {
    (DESCRIBED / groups.max(1)).clamp(8, 256)
}

/// Chunks of changes that a checkpoint may describe for a state.
const DESCRIBED: usize = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes `changes` bytes a snapshot into a state of a hundred groups of 1,000 bytes; returns the bytes that the last
    /// thousand of snapshots wrote in all, and the longest time that a group had to wait, in snapshots.
    fn simulate(changes: usize) -> (usize, usize) {
        let (mut rotation, mut written, mut whole_at, mut longest) = (Rotation::default(), 0, [0; 100], 0);
        for snapshot in 0..2000 {
            let mut bytes = changes;
            while rotation.is_due(100) {
                let group = usize::from(rotation.next.0) % 100;
                longest = longest.max(snapshot - whole_at[group]);
                whole_at[group] = snapshot;
                rotation.written_whole(KeyGroup(group as u16), 1000, 100);
                bytes += 1000;
            }
            rotation.written_changes(changes, 100);
            written += if snapshot < 1000 { 0 } else { bytes };
        }
        (written, longest)
    }

    #[test]
    fn a_snapshot_writes_twice_what_has_changed() {
        let (written, longest) = simulate(1000);
        assert_eq!((written, longest), (2_000_000, 100));
    }

    #[test]
    fn a_chain_is_bounded_where_little_changes() {
        let (written, longest) = simulate(1);
        assert!(longest <= 257, "{longest}");
        assert!(written <= 1000 + 1000 * 100_000 / 255, "{written}");
    }
}

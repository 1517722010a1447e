//! Key groups that are written whole, a piece after each call, between two snapshots.
//!
//! What is copied at any time since the snapshot before is good enough: the next snapshot puts all that has changed since
//! then, or since an earlier one, behind it. Keys that are copied count as ones that a snapshot may have, so that one that
//! goes after it has been copied is among the changes. So a snapshot waits for nothing but what has changed.

use std::collections::BTreeMap;

use millstream_types::KeyGroup;

use super::MemoryBackend;

/// Groups that are being written whole, or have been since the last snapshot.
#[derive(Default)]
pub(super) struct Rewrite {
    /// The one that is being written.
    current: Option<Piecemeal>,
    /// Those that have been: the bytes of each store, by position.
    pub(super) done: BTreeMap<KeyGroup, Vec<Vec<u8>>>,
}

struct Piecemeal {
    group: KeyGroup,
    /// The slots below this have been looked at.
    slots: usize,
    /// Whether any of them was of the group.
    found: bool,
    bytes: Vec<Vec<u8>>,
}

impl MemoryBackend {
    /// Begins with the next group, if it is one's turn and it has not been written since the last snapshot.
    pub(super) fn begin_rewrite(&mut self) {
        let groups = self.key_groups.present();
        let next = self.key_groups.next(self.rotation.next);
        let next =
            next.filter(|group| self.rotation.is_due(groups) && !self.rewrite.done.contains_key(group));
        let bytes = vec![Vec::new(); self.states.len() + super::CLOCKS.len()];
        self.rewrite.current = next.map(|group| Piecemeal { group, slots: 0, found: false, bytes });
    }

    /// Copies a piece of the group that is being written, if there is one, after a call of so many keys. For each key that
    /// changes one is to be written whole, which is as many slots away as there are groups; twice as many, so that it is
    /// done before the next snapshot.
    #[inline]
    pub(super) fn go_on_with_rewrite(&mut self, keys: usize) {
        if self.rewrite.current.is_some() {
            self.copy_piece(PIECE + 2 * keys * self.key_groups.present());
        }
    }

    /// Copies what is left of the group that is being written.
    pub(super) fn finish_rewrite(&mut self) {
        if self.rewrite.current.is_some() {
            self.copy_piece(usize::MAX);
        }
        self.rewrite.current = None;
    }

    #[cold]
    fn copy_piece(&mut self, slots: usize) {
        let Some(mut current) = self.rewrite.current.take() else { return };
        let end = current.slots.saturating_add(slots).min(self.key_groups.slots());
        let there = self.key_groups.slots_of(current.group, current.slots..end);
        for (content, bytes) in self.contents().iter().zip(&mut current.bytes) {
            if let Some(content) = content {
                content.write_present(&there, bytes);
            }
        }
        current.slots = end;
        current.found |= !there.is_empty();
        self.changes.add_stored(there);
        if end < self.key_groups.slots() {
            self.rewrite.current = Some(current);
            return;
        }
        let written = current.bytes.iter().map(Vec::len).sum();
        self.rotation.written_whole(current.group, written, self.key_groups.present());
        if !current.found {
            self.key_groups.is_empty(current.group);
        }
        self.rewrite.done.insert(current.group, current.bytes);
        self.begin_rewrite();
    }
}

/// Slots that are looked at after any call.
const PIECE: usize = 1 << 10;

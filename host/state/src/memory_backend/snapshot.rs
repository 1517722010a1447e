//! Keyed state and timers in memory as parts of a snapshot: all of it, or what has changed.
//!
//! A snapshot of changes has, for each store (a state, or the timers of a clock) and key group, the keys that have gone
//! and what the others have now, if anything of theirs has been written; before that a few groups have their whole
//! content, which has been copied in the meantime. Of a list or map that has been written all is stored.

use std::collections::BTreeMap;

use millstream_types::{
    EncodedKeys, KeyGroup, MaxParallelism, SnapshotRequest, State, StateChunk, StatePart, hash_key,
};

use super::{MemoryBackend, Rotation, content::Content, rewrite::Rewrite};
use crate::{
    changes::{Interval, Since},
    snapshot::{SlotsByGroup, by_group, chunks},
};

impl MemoryBackend {
    /// The parts that are asked for, those of timers last. Not during a call.
    pub(super) fn parts(
        &mut self,
        states: &[State],
        max: MaxParallelism,
        request: &SnapshotRequest,
    ) -> Vec<StatePart> {
        if !request.base_of_later {
            return self.whole_parts(states, &by_group(&self.keys, max));
        }
        let since = self.changes.take(request.checkpoint, request.base, self.rotation.next);
        let parts = match since.filter(|since| self.is_worth_it(&since.changes)) {
            Some(since) => self.changed_parts(states, max, &since),
            None => self.all_parts(states, max),
        };
        self.changes.set_note(self.rotation.next);
        self.begin_rewrite();
        parts
    }

    /// Whether changes are so much less than everything that they are worth being written as such.
    fn is_worth_it(&self, changes: &Interval) -> bool {
        let changed = changes.changed.iter().map(|slots| slots.count()).max().unwrap_or(0);
        self.whole_bytes > SMALL && 2 * changed < self.keys.len()
    }

    /// Everything, for others to build on.
    fn all_parts(&mut self, states: &[State], max: MaxParallelism) -> Vec<StatePart> {
        self.changes.turn_on();
        (self.rotation, self.rewrite) = (Rotation::default(), Rewrite::default());
        let groups = by_group(&self.keys, max);
        for (group, slots) in &groups {
            slots.iter().for_each(|&slot| self.key_groups.set(slot, *group));
            self.changes.add_stored(slots.iter().copied());
        }
        let parts = self.whole_parts(states, &groups);
        self.whole_bytes = parts.iter().map(StatePart::len).sum();
        parts
    }

    fn whole_parts(&self, states: &[State], groups: &SlotsByGroup) -> Vec<StatePart> {
        let part = |(at, content): (usize, Option<Content<'_>>)| {
            let content = content?;
            let chunks = chunks(groups, |slot| content.has(slot), |slots, out| content.write(slots, out));
            content.part(states.get(at), None, chunks)
        };
        self.contents().into_iter().enumerate().filter_map(part).collect()
    }

    /// What has changed since a base was taken, behind the groups that have been written whole.
    fn changed_parts(
        &mut self,
        states: &[State],
        max: MaxParallelism,
        since: &Since<KeyGroup>,
    ) -> Vec<StatePart> {
        self.finish_rewrite();
        let mut whole = std::mem::take(&mut self.rewrite.done);
        let changed = self.changed_by_group(&since.changes, max);
        let gone = gone_by_group(&since.changes.removed, max);
        let (mut parts, mut written) = (Vec::new(), 0);
        for (at, content) in self.contents().iter().enumerate() {
            let Some(content) = content else { continue };
            let (mut chunks, mut room) = (Vec::new(), Room::default());
            for (group, slots) in (0..).map(KeyGroup).zip(&changed[at]) {
                if let Some(stores) = whole.get_mut(&group) {
                    chunks.push(StateChunk::whole(group, std::mem::take(&mut stores[at])));
                }
                let gone = gone.get(&group);
                if !slots.is_empty() || gone.is_some() {
                    let mut bytes = room.of(slots.len());
                    content.write_changes(gone.unwrap_or(&EncodedKeys::new()), slots, &mut bytes);
                    room.used(slots.len(), bytes.len());
                    written += bytes.len();
                    chunks.push(StateChunk::changes(group, bytes));
                }
            }
            parts.extend(content.part(states.get(at), Some(since.base), chunks));
        }
        changed.iter().flatten().for_each(|slots| self.changes.add_stored(slots.iter().copied()));
        self.rotation.written_changes(written, self.key_groups.present());
        if !since.is_last {
            // Those in between may have been given up, and with them what they had whole.
            self.rotation.next = since.note;
        }
        parts
    }

    /// The slots that have changed and have a key, by store and by group.
    fn changed_by_group(&mut self, changes: &Interval, max: MaxParallelism) -> Vec<Vec<Vec<u32>>> {
        let mut by_store = Vec::with_capacity(changes.changed.len());
        for changed in &changes.changed {
            let mut groups: Vec<Vec<u32>> = vec![Vec::new(); usize::from(max.groups())];
            for slots in changed.slots().chunks(STRIDE) {
                self.keys.prefetch(slots);
                self.key_groups.prefetch(slots);
                for &slot in slots.iter().filter(|&&slot| self.keys.is_occupied(slot)) {
                    groups[usize::from(self.key_groups.of(slot, &self.keys, max).0)].push(slot);
                }
            }
            by_store.push(groups);
        }
        by_store
    }
}

/// Keys that have gone, by group.
fn gone_by_group(removed: &EncodedKeys, max: MaxParallelism) -> BTreeMap<KeyGroup, EncodedKeys> {
    let mut groups: BTreeMap<KeyGroup, EncodedKeys> = BTreeMap::new();
    for key in removed.iter() {
        let hash = hash_key(key);
        groups.entry(max.group_of(hash)).or_default().push(key, hash);
    }
    groups
}

/// How much memory the next chunk takes, going by the last one: growing from nothing would copy it again and again.
#[derive(Default)]
struct Room {
    bytes_a_slot: usize,
}

impl Room {
    fn of(&self, slots: usize) -> Vec<u8> {
        Vec::with_capacity(slots * self.bytes_a_slot)
    }

    fn used(&mut self, slots: usize, bytes: usize) {
        self.bytes_a_slot = bytes / slots.max(1) + 1;
    }
}

/// Slots whose memory is asked for at once.
const STRIDE: usize = 64;

/// State of up to so many bytes is written whole each time: to describe chunks of changes would take as much.
const SMALL: usize = 64 << 10;

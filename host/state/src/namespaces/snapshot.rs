//! Windows as chunks of a snapshot: in a chunk, one window behind the other, each with its keys of the key group.

use std::collections::BTreeMap;

use millstream_types::{EncodedKeys, KeyGroup, MaxParallelism, StateChunk, Window};

use super::Namespaces;
use crate::{
    StateError,
    slot_store::WindowStore,
    snapshot::{by_group, put_bytes, put_i64, put_u32, slots_of, take_i64, take_key, take_u32},
};

impl<S: WindowStore> Namespaces<S> {
    /// All windows, those that end first before the others.
    pub(crate) fn chunks(&self, max: MaxParallelism) -> Vec<StateChunk> {
        let mut chunks: BTreeMap<KeyGroup, Vec<u8>> = BTreeMap::new();
        for (window, namespace) in &self.windows {
            for (group, slots) in by_group(&namespace.keys, max) {
                let out = chunks.entry(group).or_default();
                put_i64(window.start, out);
                put_i64(window.end, out);
                put_u32(slots.len() as u32, out);
                let key = |slot, out: &mut Vec<u8>| put_bytes(namespace.keys.key(slot), out);
                namespace.store.write(&slots, &self.codec, out, key);
            }
        }
        chunks.into_iter().map(|(group, bytes)| StateChunk::whole(group, bytes)).collect()
    }

    /// Adds the windows of a chunk, and evicts what has no room.
    pub(super) fn restore(&mut self, mut bytes: &[u8]) -> Result<(), StateError> {
        while !bytes.is_empty() {
            let (start, end) = (take_i64(&mut bytes)?, take_i64(&mut bytes)?);
            let window = Window::new(start, end);
            let mut left = take_u32(&mut bytes)?;
            while left > 0 {
                let some = left.min(RESTORED_AT_ONCE);
                self.restore_keys(window, some, &mut bytes)?;
                left -= some;
                self.make_room(None)?;
            }
        }
        Ok(())
    }

    fn restore_keys(&mut self, window: Window, count: u32, bytes: &mut &[u8]) -> Result<(), StateError> {
        let (mut keys, mut entries) = (EncodedKeys::new(), S::entries(&self.codec));
        for _ in 0..count {
            take_key(bytes, &mut keys)?;
            S::read(&mut entries, bytes)?;
        }
        let mut namespace = self.take_or_new(window);
        let slots = slots_of(&keys, &mut namespace.keys);
        namespace.store.grow(namespace.keys.slots());
        namespace.store.put(&slots, entries);
        self.put(window, namespace);
        Ok(())
    }
}

/// Keys that are restored at once.
const RESTORED_AT_ONCE: u32 = 1 << 16;

//! Windows as chunks of a snapshot: in a chunk, one window behind the other, each with its keys of the key group.

use std::collections::BTreeMap;

use millstream_types::{EncodedKeys, KeyGroup, MaxParallelism, StateChunk, Window};

use super::Namespaces;
use crate::{
    StateError,
    row_codec::RowCodec,
    slot_store::WindowStore,
    snapshot::{Stored, by_group, put_bytes, put_i64, put_u32, slots_of, take_i64, take_key, take_u32},
};

impl<S: WindowStore + Stored> Namespaces<S> {
    /// All windows, those that end first before the others.
    pub(crate) fn chunks(&self, max: MaxParallelism) -> Vec<StateChunk> {
        let codec = RowCodec::new(&self.columns);
        let mut chunks: BTreeMap<KeyGroup, Vec<u8>> = BTreeMap::new();
        for (window, namespace) in &self.windows {
            for (group, slots) in by_group(&namespace.keys, max) {
                let out = chunks.entry(group).or_default();
                put_i64(window.start, out);
                put_i64(window.end, out);
                put_u32(slots.len() as u32, out);
                let key = |slot, out: &mut Vec<u8>| put_bytes(namespace.keys.key(slot), out);
                namespace.store.write(&slots, &codec, out, key);
            }
        }
        chunks.into_iter().map(|(group, bytes)| StateChunk::whole(group, bytes)).collect()
    }

    /// Adds the windows of a chunk.
    pub(crate) fn restore(&mut self, mut bytes: &[u8]) -> Result<(), StateError> {
        let codec = RowCodec::new(&self.columns);
        while !bytes.is_empty() {
            let (start, end) = (take_i64(&mut bytes)?, take_i64(&mut bytes)?);
            let (mut keys, mut entries) = (EncodedKeys::new(), S::entries(&codec));
            for _ in 0..take_u32(&mut bytes)? {
                take_key(&mut bytes, &mut keys)?;
                S::read(&mut entries, &mut bytes)?;
            }
            let window = Window::new(start, end);
            let mut namespace = self.take_or_new(window);
            let slots = slots_of(&keys, &mut namespace.keys);
            namespace.store.grow(namespace.keys.slots());
            namespace.store.put(&slots, entries);
            self.put(window, namespace);
        }
        Ok(())
    }
}

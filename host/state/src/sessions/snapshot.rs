//! Sessions as chunks of a snapshot: in a chunk, one session behind the other, those of a key in order of time.

use std::collections::BTreeMap;

use millstream_types::{EncodedKeys, KeyGroup, MaxParallelism, StateChunk, Window};

use super::{Order, Session, Sessions};
use crate::{
    StateError,
    row_codec::RowCodec,
    slot_store::SessionStore,
    snapshot::{Stored, by_group, put_bytes, put_i64, slots_of, take_i64, take_key, take_u8},
};

/// The session has been handed out as over, or came into being as such.
const OVER: u8 = 1;
/// Something is stored for it.
const STORED: u8 = 2;

impl<S: SessionStore + Stored> Sessions<S> {
    /// All sessions.
    pub(crate) fn chunks(&self, codec: &RowCodec, max: MaxParallelism) -> Vec<StateChunk> {
        let mut chunks: BTreeMap<KeyGroup, Vec<u8>> = BTreeMap::new();
        for (group, keys) in by_group(&self.keys, max) {
            let out = chunks.entry(group).or_default();
            for key in keys {
                self.of_key[key as usize].iter().for_each(|&session| self.write(session, codec, out));
            }
        }
        chunks.into_iter().map(|(group, bytes)| StateChunk::whole(group, bytes)).collect()
    }

    fn write(&self, slot: u32, codec: &RowCodec, out: &mut Vec<u8>) {
        let session = &self.sessions[slot as usize];
        let over = session.over == Some(session.window.max_time());
        let stored = self.store.is_present(slot);
        put_bytes(self.keys.key(session.key), out);
        put_i64(session.window.start, out);
        put_i64(session.window.end, out);
        out.push(if over { OVER } else { 0 } | if stored { STORED } else { 0 });
        if stored {
            self.store.write(&[slot], codec, out, |_, _| {});
        }
    }

    /// Adds the sessions of a chunk.
    pub(crate) fn restore(&mut self, codec: &RowCodec, mut bytes: &[u8]) -> Result<(), StateError> {
        let (mut stored, mut entries) = (Vec::new(), S::entries(codec));
        let mut keys = EncodedKeys::new();
        while !bytes.is_empty() {
            keys.clear();
            take_key(&mut bytes, &mut keys)?;
            let window = Window::new(take_i64(&mut bytes)?, take_i64(&mut bytes)?);
            let flags = take_u8(&mut bytes)?;
            let key = slots_of(&keys, &mut self.keys)[0];
            self.of_key.resize(self.keys.slots(), Order::new());
            let slot = self.restore_session(key, window, flags & OVER != 0);
            if flags & STORED != 0 {
                S::read(&mut entries, &mut bytes)?;
                stored.push(slot);
            }
        }
        self.store.put(&stored, entries);
        Ok(())
    }

    fn restore_session(&mut self, key: u32, window: Window, over: bool) -> u32 {
        let slot = self.sessions.len() as u32;
        let over = over.then(|| window.max_time());
        self.sessions.push(Session { over, ..Session::new(key, window) });
        self.store.grow(self.sessions.len());
        self.of_key[key as usize].push(slot);
        self.schedule(slot);
        slot
    }
}

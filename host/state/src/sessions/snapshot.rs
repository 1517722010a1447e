//! Sessions as chunks of a snapshot: in a chunk, one session behind the other, those of a key in order of time.

use std::collections::BTreeMap;

use millstream_types::{KeyGroup, MaxParallelism, StateChunk, Window, hash_key};

use super::{Order, Session, Sessions};
use crate::{
    StateError,
    slot_store::SessionStore,
    snapshot::{by_group, put_bytes, put_i64, take_bytes, take_i64, take_u8},
};

/// The session has been handed out as over, or came into being as such.
const OVER: u8 = 1;
/// Something is stored for it.
const STORED: u8 = 2;

impl<S: SessionStore> Sessions<S> {
    /// All sessions.
    pub(super) fn chunks(&self, max: MaxParallelism) -> Vec<StateChunk> {
        let mut chunks: BTreeMap<KeyGroup, Vec<u8>> = BTreeMap::new();
        for (group, keys) in by_group(&self.keys, max) {
            let out = chunks.entry(group).or_default();
            for key in keys {
                self.of_key[key as usize].iter().for_each(|&session| self.write(session, out));
            }
        }
        chunks.into_iter().map(|(group, bytes)| StateChunk::whole(group, bytes)).collect()
    }

    pub(super) fn write(&self, slot: u32, out: &mut Vec<u8>) {
        let session = &self.sessions[slot as usize];
        let over = session.over == Some(session.window.max_time());
        let stored = self.store.is_present(slot);
        put_bytes(self.keys.key(session.key), out);
        put_i64(session.window.start, out);
        put_i64(session.window.end, out);
        out.push(if over { OVER } else { 0 } | if stored { STORED } else { 0 });
        if stored {
            self.store.write(&[slot], &self.codec, out, |_, _| {});
        }
    }

    /// Adds the sessions of a chunk, and evicts what has no room.
    pub(super) fn restore(&mut self, mut bytes: &[u8]) -> Result<(), StateError> {
        while !bytes.is_empty() {
            self.restore_some(&mut bytes)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Adds sessions of keys that are new, and all that the last one of them has.
    pub(super) fn restore_some(&mut self, bytes: &mut &[u8]) -> Result<(), StateError> {
        let (mut stored, mut entries) = (Vec::new(), S::entries(&self.codec));
        let (mut key, mut slot_of_key, mut count) = (None, 0, 0);
        while !bytes.is_empty() {
            let mut rest = *bytes;
            let next = take_bytes(&mut rest)?;
            if key != Some(next) {
                if count >= RESTORED_AT_ONCE {
                    break;
                }
                slot_of_key = self.keys.insert(next, hash_key(next)).0;
                self.of_key.resize(self.keys.slots(), Order::new());
                key = Some(next);
            }
            count += 1;
            let session = StoredSession::take(&mut rest)?;
            let slot = self.restore_session(slot_of_key, session.window, session.is_over);
            if session.has_content {
                S::read(&mut entries, &mut rest)?;
                stored.push(slot);
            }
            *bytes = rest;
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

/// What stands between a session's key and its content.
pub(super) struct StoredSession {
    pub(super) window: Window,
    pub(super) is_over: bool,
    pub(super) has_content: bool,
}

impl StoredSession {
    pub(super) fn take(bytes: &mut &[u8]) -> Result<Self, StateError> {
        let window = Window::new(take_i64(bytes)?, take_i64(bytes)?);
        let flags = take_u8(bytes)?;
        Ok(Self { window, is_over: flags & OVER != 0, has_content: flags & STORED != 0 })
    }
}

/// Sessions that are restored at once, and more of the last key.
const RESTORED_AT_ONCE: usize = 4096;

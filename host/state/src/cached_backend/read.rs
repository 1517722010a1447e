//! Keys out of the store into the cache.

use millstream_types::{Clock, EncodedKeys};

use super::{
    CachedBackend,
    key_row::{Loaded, Piece, index_of, take_times},
};
use crate::{ByteRows, StateError, Table, memory_backend::CLOCKS};

impl CachedBackend {
    /// Takes up slots whose keys are new in the cache, with what the store has of them.
    pub(super) fn enter(&mut self, created: &[u32]) -> Result<(), StateError> {
        for &slot in created {
            self.marks.reset(slot);
            self.maps.iter_mut().for_each(|marks| marks.reset(slot));
        }
        if self.elsewhere.keys == 0 { Ok(()) } else { self.read_keys(created) }
    }

    /// Finds or makes the slots of keys, which have all that the store has of them.
    pub(super) fn slots_with_state(&mut self, keys: &EncodedKeys) -> Result<Vec<u32>, StateError> {
        let found = (0..keys.len()).map(|i| self.cache.keys.insert(keys.key(i), keys.hash(i)));
        let found: Vec<(u32, bool)> = found.collect();
        self.cache.grow();
        let created: Vec<u32> = found.iter().filter(|(_, new)| *new).map(|(slot, _)| *slot).collect();
        self.enter(&created)?;
        Ok(found.into_iter().map(|(slot, _)| slot).collect())
    }

    /// Reads what the store has of the keys at some slots, which have nothing yet.
    fn read_keys(&mut self, slots: &[u32]) -> Result<(), StateError> {
        let mut keys = ByteRows::new();
        let (layout, table) = (&self.layout, &self.cache.keys);
        slots.iter().for_each(|&slot| keys.push_with(|out| layout.put_row_key(table.key(slot), out)));
        let order = keys.order();
        let mut loaded = Loaded::new(layout);
        let (mut found, mut timers, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        self.store.read(Table::Keys, &keys.picked(&order), &mut |i, row| {
            let slot = slots[order[i] as usize];
            found.push(slot);
            let piece = |state, piece: Piece<'_>| {
                if let Piece::Map { entries: count } = piece {
                    entries.push((state, slot, count));
                }
                loaded.add(state, slot, piece)
            };
            let times = |clock: Clock, mut times: &[u8]| {
                take_times(&mut times, |time| timers.push((clock, slot, time))).map(drop)
            };
            layout.parse(row, piece, times)
        })?;
        loaded.put(&mut self.cache);
        entries.into_iter().for_each(|(state, slot, count)| self.maps[state].set_entries(slot, count));
        self.enter_timers(&timers);
        self.elsewhere.keys -= found.len();
        found.into_iter().for_each(|slot| _ = self.cache.kept.set(slot, true));
        Ok(())
    }

    fn enter_timers(&mut self, timers: &[(Clock, u32, i64)]) {
        let slots = self.cache.keys.slots();
        for clock in CLOCKS {
            let of_clock = timers.iter().filter(|(of, ..)| *of == clock);
            for (i, &(_, slot, time)) in of_clock.enumerate() {
                let timers = self.cache.timers(clock);
                if i == 0 {
                    timers.grow(slots);
                }
                if !timers.has(slot) {
                    self.marks.set_indexed(clock, slot, Some(time));
                }
                self.cache.timers(clock).set(slot, time);
                self.elsewhere.timers[index_of(clock)] -= 1;
            }
        }
    }
}

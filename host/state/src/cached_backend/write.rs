//! Keys out of the cache into the store.

use super::{CachedBackend, key_row::put_timer_key};
use crate::{ByteRows, StateError, Table, memory_backend::CLOCKS};

impl CachedBackend {
    /// Writes what has changed of the keys at some slots, as one batch. They stay in the cache, but for keys that have
    /// nothing any more.
    pub(super) fn write_back(&mut self, slots: &[u32]) -> Result<(), StateError> {
        let mut keys = ByteRows::new();
        let changed: Vec<u32> = slots.iter().copied().filter(|&slot| self.is_to_be_written(slot)).collect();
        for &slot in &changed {
            keys.push_with(|out| self.layout.put_row_key(self.cache.keys.key(slot), out));
        }
        let order = keys.order();
        let (keys, slots): (_, Vec<u32>) =
            (keys.picked(&order), order.iter().map(|&at| changed[at as usize]).collect());
        self.stage_rows(&slots, &keys);
        self.stage_maps(&slots);
        self.stage_timers(&slots, &keys);
        self.store.apply()?;
        self.elsewhere.used = true;
        slots.iter().for_each(|&slot| self.mark_stored(slot));
        Ok(())
    }

    /// Writes all that has changed.
    pub(super) fn write_all_back(&mut self) -> Result<(), StateError> {
        let occupied: Vec<u32> = self.cache.keys.occupied().collect();
        occupied.chunks(BATCH).try_for_each(|slots| self.write_back(slots))
    }

    fn is_to_be_written(&self, slot: u32) -> bool {
        self.marks.is_changed(slot)
            || CLOCKS
                .into_iter()
                .any(|clock| self.cache.timers_of(clock).earliest(slot) != self.marks.indexed(clock, slot))
    }

    /// Whether a key has anything, be it in the cache or not.
    pub(super) fn is_live(&self, slot: u32) -> bool {
        self.cache.is_present(slot) || self.maps.iter().any(|marks| marks.entries(slot) > 0)
    }

    fn stage_rows(&mut self, slots: &[u32], keys: &ByteRows) {
        let (live, dead): (Vec<usize>, Vec<usize>) = (0..slots.len()).partition(|&i| self.is_live(slots[i]));
        let live_slots: Vec<u32> = live.iter().map(|&i| slots[i]).collect();
        let Self { cache, store, layout, maps, .. } = self;
        let entries = |state: usize, slot| maps[state].entries(slot);
        layout.write(cache, &live_slots, entries, |i, row| {
            store.put(Table::Keys, keys.get(live[i]), row);
        });
        for i in dead.into_iter().filter(|&i| cache.kept.get(slots[i])) {
            store.delete(Table::Keys, keys.get(i));
        }
    }

    /// Puts each key with its earliest timer in the place of what the table of timers has.
    fn stage_timers(&mut self, slots: &[u32], keys: &ByteRows) {
        let mut key = Vec::new();
        for clock in CLOCKS {
            for (i, &slot) in slots.iter().enumerate() {
                let (stored, wanted) =
                    (self.marks.indexed(clock, slot), self.cache.timers_of(clock).earliest(slot));
                if stored == wanted {
                    continue;
                }
                if let Some(time) = stored {
                    key.clear();
                    put_timer_key(clock, time, keys.get(i), &mut key);
                    self.store.delete(Table::Timers, &key);
                }
                if let Some(time) = wanted {
                    key.clear();
                    put_timer_key(clock, time, keys.get(i), &mut key);
                    self.store.put(Table::Timers, &key, &[]);
                }
            }
        }
    }

    fn mark_stored(&mut self, slot: u32) {
        for clock in CLOCKS {
            let earliest = self.cache.timers_of(clock).earliest(slot);
            self.marks.set_indexed(clock, slot, earliest);
        }
        self.marks.written(slot);
        self.maps.iter_mut().for_each(|marks| marks.written(slot));
        let live = self.is_live(slot);
        self.cache.kept.set(slot, live);
        if !live {
            self.cache.keys.remove(slot);
        }
    }
}

/// Keys that are written at once when all are.
const BATCH: usize = 2 << 10;

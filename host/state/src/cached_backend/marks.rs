//! What is known of the slots of the cache, beside what they have.

use millstream_types::Clock;

use super::key_row::index_of;
use crate::{bits::Bits, memory_backend::CLOCKS};

/// Marks by slot.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Set where the store does not have what the cache has.
    changed: Bits,
    /// By clock: the time with which the store's table of timers has the key. Empty until there is any.
    indexed: [Vec<Option<i64>>; CLOCKS.len()],
}

impl Marks {
    /// Forgets what is known of a slot, whose key is another one now.
    pub(super) fn reset(&mut self, slot: u32) {
        self.changed.set(slot, false);
        for times in &mut self.indexed {
            if let Some(time) = times.get_mut(slot as usize) {
                *time = None;
            }
        }
    }

    pub(super) fn changed(&mut self, slot: u32) {
        self.changed.set(slot, true);
    }

    pub(super) fn is_changed(&self, slot: u32) -> bool {
        self.changed.get(slot)
    }

    pub(super) fn written(&mut self, slot: u32) {
        self.changed.set(slot, false);
    }

    /// The time with which the table of timers has the key of a slot.
    pub(super) fn indexed(&self, clock: Clock, slot: u32) -> Option<i64> {
        self.indexed[index_of(clock)].get(slot as usize).copied().flatten()
    }

    pub(super) fn set_indexed(&mut self, clock: Clock, slot: u32, time: Option<i64>) {
        let times = &mut self.indexed[index_of(clock)];
        if times.len() <= slot as usize {
            if time.is_none() {
                return;
            }
            times.resize(slot as usize + 1, None);
        }
        times[slot as usize] = time;
    }

    /// The bytes of memory of a slot.
    pub(super) fn bytes_per_slot(&self) -> usize {
        let clocks = self.indexed.iter().filter(|times| !times.is_empty()).count();
        clocks * size_of::<Option<i64>>()
    }
}

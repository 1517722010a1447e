//! Which keys are evicted: a hand goes round over the slots and passes over those that a call has named since it began
//! its round. So a key that is named at least once a round mostly stays, and no list has to be kept up to date.

use crate::{KeyTable, bits::Bits};

/// The hand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sweep {
    hand: u32,
    /// The call in which this round began.
    began: u32,
}

impl Sweep {
    /// Up to `count` slots whose keys have not been named lately; if there are not enough, others. Between calls.
    pub(crate) fn choose(&mut self, keys: &KeyTable, count: usize) -> Vec<u32> {
        let (slots, call) = (keys.slots() as u32, keys.call());
        let count = count.min(keys.len());
        let (mut chosen, mut is_chosen) = (Vec::with_capacity(count), Bits::default());
        let mut rounds = 0;
        while chosen.len() < count {
            if self.hand >= slots {
                (self.hand, self.began) = (0, call);
                rounds += 1;
            }
            let slot = self.hand;
            self.hand += 1;
            // A whole round over what the last call has not named was not enough.
            let is_any = rounds > 1;
            let is_cold = is_any || age(call, keys.touched(slot)) > age(call, self.began);
            if is_cold && keys.is_occupied(slot) && !is_chosen.set(slot, true) {
                chosen.push(slot);
            }
        }
        chosen
    }
}

/// How many calls ago a call was.
fn age(now: u32, call: u32) -> u32 {
    now.wrapping_sub(call)
}

#[cfg(test)]
mod tests {
    use millstream_types::{EncodedKeys, hash_key};

    use super::*;
    use crate::Grouping;

    fn name(keys: &mut KeyTable, numbers: impl Iterator<Item = u32>) {
        let mut named = EncodedKeys::new();
        numbers.for_each(|n| named.push(&n.to_be_bytes(), hash_key(&n.to_be_bytes())));
        let mut grouping = Grouping::default();
        grouping.start(named.len());
        keys.resolve(&named, &mut grouping);
    }

    fn evict(sweep: &mut Sweep, keys: &mut KeyTable, count: usize) -> Vec<u32> {
        let chosen = sweep.choose(keys, count);
        chosen.iter().for_each(|&slot| keys.remove(slot));
        chosen
    }

    #[test]
    fn keys_that_are_named_stay() {
        let (mut sweep, mut keys) = (Sweep::default(), KeyTable::new());
        // Ten hot keys, and new ones in every call, of which a hundred have room.
        for call in 0..100 {
            name(&mut keys, (0..10).chain(10 + call * 20..30 + call * 20));
            let excess = keys.len().saturating_sub(100);
            let evicted = evict(&mut sweep, &mut keys, excess);
            assert_eq!(evicted.len(), excess);
            if call > 5 {
                let hot =
                    (0..10u32).filter(|n| keys.find(&n.to_be_bytes(), hash_key(&n.to_be_bytes())).is_some());
                assert_eq!(hot.count(), 10, "in call {call}");
            }
        }
    }

    #[test]
    fn all_are_chosen_if_need_be() {
        let (mut sweep, mut keys) = (Sweep::default(), KeyTable::new());
        name(&mut keys, 0..50);
        assert_eq!(evict(&mut sweep, &mut keys, 1000).len(), 50);
        assert!(evict(&mut sweep, &mut keys, 1000).is_empty());
    }
}

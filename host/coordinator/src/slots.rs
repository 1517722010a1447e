//! Which worker gives a slot to whom: decided here, and acted upon elsewhere.

use std::collections::BTreeMap;

/// The slots of all workers. Workers and executions are numbers to it.
#[derive(Debug)]
pub(crate) struct SlotTable<E> {
    workers: BTreeMap<u128, Worker<E>>,
    /// Those that wait, in the order in which they are given slots, with how many they want.
    waiting: BTreeMap<Turn, u32>,
    turns: u64,
}

/// A place among those that wait for slots. Jobs that have run before come before those that have not, as their users
/// take them for running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn {
    new: bool,
    number: u64,
}

impl<E> Default for SlotTable<E> {
    fn default() -> Self {
        Self { workers: BTreeMap::new(), waiting: BTreeMap::new(), turns: 0 }
    }
}

#[derive(Debug)]
struct Worker<E> {
    slots: u32,
    used: BTreeMap<E, u32>,
}

impl<E> Worker<E> {
    fn free(&self) -> u32 {
        self.slots.saturating_sub(self.used.values().sum())
    }
}

impl<E: Ord + Copy> SlotTable<E> {
    /// A worker offers slots.
    pub(crate) fn add(&mut self, worker: u128, slots: u32) {
        self.workers.insert(worker, Worker { slots, used: BTreeMap::new() });
    }

    /// A worker is gone, with all that it ran.
    pub(crate) fn remove(&mut self, worker: u128) {
        self.workers.remove(&worker);
    }

    /// Begins to wait for so many slots.
    pub(crate) fn wait(&mut self, is_new: bool, slots: u32) -> Turn {
        self.turns += 1;
        let turn = Turn { new: is_new, number: self.turns };
        self.waiting.insert(turn, slots);
        turn
    }

    /// Waits no more.
    pub(crate) fn leave(&mut self, turn: Turn) {
        self.waiting.remove(&turn);
    }

    /// Gives an execution the slots that it waits for, spread over the workers: each slot's worker, in order. All or none,
    /// and none before its turn: whoever wants many would wait for ever else. One that wants more than there are holds up
    /// nobody.
    pub(crate) fn allocate(&mut self, execution: E, turn: Turn) -> Option<Vec<u128>> {
        let slots = *self.waiting.get(&turn)?;
        let all: u32 = self.workers.values().map(|worker| worker.slots).sum();
        let is_its_turn = self.waiting.range(..turn).all(|(_, wanted)| *wanted > all);
        if self.free() < slots || !is_its_turn {
            return None;
        }
        self.waiting.remove(&turn);
        let mut given = Vec::with_capacity(slots as usize);
        for _ in 0..slots {
            let usable = self.workers.iter_mut().filter(|(_, worker)| worker.free() > 0);
            // Of those that have as many, the first, so that the same workers are given the same slots again.
            let (id, worker) = usable.max_by_key(|(id, worker)| (worker.free(), std::cmp::Reverse(**id)))?;
            *worker.used.entry(execution).or_default() += 1;
            given.push(*id);
        }
        Some(given)
    }

    /// An execution is over on a worker.
    pub(crate) fn release(&mut self, worker: u128, execution: E) {
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.used.remove(&execution);
        }
    }

    /// How many slots may be given away.
    pub(crate) fn free(&self) -> u32 {
        self.workers.values().map(Worker::free).sum()
    }

    /// How many slots of a worker are free.
    pub(crate) fn free_of(&self, worker: u128) -> u32 {
        self.workers.get(&worker).map_or(0, Worker::free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives slots to one that waits for nobody.
    fn give(table: &mut SlotTable<char>, execution: char, slots: u32) -> Option<Vec<u128>> {
        let turn = table.wait(true, slots);
        let given = table.allocate(execution, turn);
        table.leave(turn);
        given
    }

    #[test]
    fn slots_are_spread_and_given_all_or_none() {
        let mut table = SlotTable::default();
        table.add(1, 2);
        table.add(2, 3);
        assert_eq!(give(&mut table, 'a', 3), Some(vec![2, 1, 2]));
        assert_eq!(give(&mut table, 'b', 3), None);
        assert_eq!(table.free(), 2);
        assert_eq!(give(&mut table, 'b', 2), Some(vec![1, 2]));
        table.release(2, 'a');
        assert_eq!((table.free_of(1), table.free_of(2)), (0, 2));
        table.remove(1);
        assert_eq!(give(&mut table, 'c', 2), Some(vec![2, 2]));
    }

    #[test]
    fn those_that_wait_have_their_turn() {
        let mut table = SlotTable::default();
        table.add(1, 4);
        assert_eq!(give(&mut table, 'r', 3), Some(vec![1; 3]));
        let (impossible, large, small) = (table.wait(true, 9), table.wait(true, 4), table.wait(true, 1));
        assert_eq!(table.allocate('s', small), None, "the large one came first");
        let again = table.wait(false, 1);
        assert_eq!(table.allocate('g', again), Some(vec![1]), "it has run before");
        table.release(1, 'r');
        table.release(1, 'g');
        assert_eq!(table.allocate('i', impossible), None);
        assert_eq!(table.allocate('l', large), Some(vec![1; 4]));
        table.release(1, 'l');
        assert_eq!(table.allocate('s', small), Some(vec![1]));
        table.add(2, 8);
        assert_eq!(table.allocate('i', impossible).map(|given| given.len()), Some(9));
    }
}

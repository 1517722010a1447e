//! Which worker gives a slot to whom: decided here, and acted upon elsewhere.

use std::collections::BTreeMap;

/// The slots of all workers. Workers and executions are numbers to it.
#[derive(Debug)]
pub(crate) struct SlotTable<E> {
    workers: BTreeMap<u128, Worker<E>>,
}

impl<E> Default for SlotTable<E> {
    fn default() -> Self {
        Self { workers: BTreeMap::new() }
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

    /// Gives an execution so many slots, spread over the workers: each slot's worker, in order. All or none.
    pub(crate) fn allocate(&mut self, execution: E, slots: u32) -> Option<Vec<u128>> {
        if self.free() < slots {
            return None;
        }
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

    #[test]
    fn slots_are_spread_and_given_all_or_none() {
        let mut table = SlotTable::default();
        table.add(1, 2);
        table.add(2, 3);
        assert_eq!(table.allocate('a', 3), Some(vec![2, 1, 2]));
        assert_eq!(table.allocate('b', 3), None);
        assert_eq!(table.free(), 2);
        assert_eq!(table.allocate('b', 2), Some(vec![1, 2]));
        table.release(2, 'a');
        assert_eq!((table.free_of(1), table.free_of(2)), (0, 2));
        table.remove(1);
        assert_eq!(table.allocate('c', 2), Some(vec![2, 2]));
    }
}

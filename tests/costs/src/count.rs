//! What a step of a part costs, in counts.
//!
//! A part is run for some steps and then for twice as many. What the second run costs more is what so many steps cost:
//! whatever a run costs by itself has gone out of it.

use crate::{
    Part,
    allocations::{Allocated, allocated},
};

/// What a part costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    /// Allocations of a step.
    pub allocations: f64,
    /// Bytes allocated for a unit.
    pub bytes: f64,
    /// Machine instructions of a unit, host and guest together; none where nothing counts them.
    pub instructions: Option<f64>,
}

impl Counts {
    /// Keeps the least of each count.
    pub fn take_least(&mut self, other: &Self) {
        self.allocations = self.allocations.min(other.allocations);
        self.bytes = self.bytes.min(other.bytes);
        let both = self.instructions.zip(other.instructions);
        self.instructions = both.map(|(one, other)| one.min(other)).or(self.instructions);
    }
}

/// Counts the allocations of a part, all of which are made by the thread that runs it.
pub fn allocations(part: &Part) -> Counts {
    let [first, second, third] = sections(part, allocated);
    let cost = |of: fn(&Allocated) -> u64| {
        let (once, twice) = (of(&second) - of(&first), of(&third) - of(&second));
        (twice as f64 - once as f64) / STEPS as f64
    };
    Counts {
        allocations: cost(|a| a.allocations),
        bytes: cost(|a| a.bytes) / part.units as f64,
        instructions: None,
    }
}

/// Runs a part, with what `mark` says before, between and behind the two runs.
pub(crate) fn sections<T>(part: &Part, mut mark: impl FnMut() -> T) -> [T; 3] {
    let mut work = part.prepare();
    work.run(WARM_UP);
    let first = mark();
    work.run(STEPS);
    let second = mark();
    work.run(2 * STEPS);
    [first, second, mark()]
}

/// Steps until a part has all the memory that it needs and has seen all its keys.
const WARM_UP: u64 = 8;
/// Steps of the shorter run.
pub(crate) const STEPS: u64 = 8;

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn the_least_of_each_count_stays() {
        let counts = |allocations, bytes, instructions| Counts { allocations, bytes, instructions };
        let mut least = counts(3.0, 40.0, Some(500.0));
        least.take_least(&counts(4.0, 30.0, Some(600.0)));
        least.take_least(&counts(3.0, 50.0, None));
        assert_eq!(least, counts(3.0, 30.0, Some(500.0)));
    }
}

//! Key groups: the fixed division of all keys, which decides what subtask owns a key at any parallelism.

use std::{fmt, ops::Range};

use xxhash_rust::xxh3::xxh3_64;

/// The hash of an encoded key. It decides placement on disk and wire, so it never changes.
#[inline]
pub fn hash_key(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// One of the divisions of the key space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyGroup(pub u16);

/// Number of key groups of a job: the most subtasks a keyed operator of it can ever have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxParallelism(u16);

impl MaxParallelism {
    /// What a job has that does not say otherwise.
    pub const DEFAULT: MaxParallelism = MaxParallelism(128);

    /// From 1 to 32,768 key groups.
    pub fn new(groups: u32) -> Option<Self> {
        (1..=1 << 15).contains(&groups).then_some(Self(groups as u16))
    }

    /// How many key groups there are.
    pub fn groups(self) -> u16 {
        self.0
    }

    /// The group of a key with this hash.
    #[inline]
    pub fn group_of(self, hash: u64) -> KeyGroup {
        let groups = u64::from(self.0);
        // Most jobs have a power of two, for which no division is needed.
        let group = if groups.is_power_of_two() { hash & (groups - 1) } else { hash % groups };
        KeyGroup(group as u16)
    }

    /// The subtask, of `parallelism`, that owns a group: the one whose range holds it.
    #[inline]
    pub fn owner_of(self, group: KeyGroup, parallelism: u32) -> u32 {
        u32::from(group.0) * parallelism / u32::from(self.0)
    }
}

impl Default for MaxParallelism {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for MaxParallelism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The key groups that one subtask owns: `[ceil(i*m/p), ceil((i+1)*m/p))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyGroupRange(pub Range<u16>);

impl KeyGroupRange {
    /// The range of subtask `index` of `parallelism`.
    pub fn of(index: u32, parallelism: u32, max: MaxParallelism) -> Self {
        let groups = u32::from(max.groups());
        let bound = |i: u32| (i * groups).div_ceil(parallelism) as u16;
        Self(bound(index)..bound(index + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_range_agree_for_every_parallelism() {
        for groups in [1, 2, 7, 128, 1000] {
            let max = MaxParallelism::new(groups).expect("in range");
            for parallelism in 1..=groups.min(130) {
                for group in 0..groups as u16 {
                    let owner = max.owner_of(KeyGroup(group), parallelism);
                    assert!(KeyGroupRange::of(owner, parallelism, max).0.contains(&group));
                }
            }
        }
    }

    #[test]
    fn a_group_is_the_remainder_of_the_hash() {
        for groups in [1, 2, 3, 100, 128, 1 << 15] {
            let max = MaxParallelism::new(groups).expect("in range");
            for hash in [0, 1, 127, 128, 12_345_678_901_234_567, u64::MAX] {
                assert_eq!(u64::from(max.group_of(hash).0), hash % u64::from(groups));
            }
        }
    }

    #[test]
    fn hashes_are_for_ever() {
        assert_eq!(hash_key(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash_key(b"millstream"), hash_key(b"millstream"));
    }

    #[test]
    fn the_number_of_groups_is_bounded() {
        assert_eq!(MaxParallelism::new(0), None);
        assert_eq!(MaxParallelism::new(32_769), None);
        assert_eq!(MaxParallelism::new(32_768).map(MaxParallelism::groups), Some(32_768));
    }
}

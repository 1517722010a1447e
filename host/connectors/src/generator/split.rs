//! Which records a subtask makes, and how that goes on from a snapshot.
//!
//! At first each of p subtasks has one split, every p-th record. With another number of subtasks the records are dealt
//! out anew from the first number that none of the splits had reached; what was left before it, a gap for every split
//! that was behind, is made first. So every record is made once, whatever number of subtasks there was.

use std::sync::Arc;

use millstream_operator::{Assignment, ConnectorError, SourceSnapshot, Split, SplitEnumerator};
use millstream_types::MIN_WATERMARK;
use serde::{Deserialize, Serialize};

/// Records `next`, `next + stride` and so on below `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GeneratorSplit {
    pub(crate) next: u64,
    pub(crate) stride: u64,
    pub(crate) end: u64,
    /// For how many nanoseconds records of it have been made.
    pub(crate) elapsed: u64,
}

impl GeneratorSplit {
    /// How many records it has.
    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.next).div_ceil(self.stride)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// Takes the next `count` records; the number of the first.
    pub(crate) fn take(&mut self, count: u64) -> u64 {
        let first = self.next;
        self.next += count * self.stride;
        first
    }

    /// The split as it travels to a reader.
    pub(crate) fn encode(&self) -> Split {
        let Self { next, stride, .. } = self;
        let id = Arc::from(format!("every {stride} from {next}"));
        let payload = serde_json::to_vec(self).expect("numbers always encode");
        Split { id, payload, watermark: MIN_WATERMARK }
    }

    /// Reads what [`GeneratorSplit::encode`] wrote.
    pub(crate) fn decode(split: &Split) -> Result<Self, ConnectorError> {
        let decoded: Self = serde_json::from_slice(&split.payload).map_err(|e| foreign(&split.id, e))?;
        if decoded.stride == 0 {
            return Err(ConnectorError::user(format!("split `{}` of a generator has no stride", split.id)));
        }
        Ok(decoded)
    }
}

fn foreign(what: &str, error: serde_json::Error) -> ConnectorError {
    ConnectorError::external(format!("`{what}` was not written by a generator: {error}"), error)
}

/// Gives each subtask its splits, once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct GeneratorEnumerator {
    /// Below this number all records are.
    end: u64,
    /// By subtask.
    waiting: Vec<Vec<Split>>,
}

impl GeneratorEnumerator {
    /// All `records`, or without end, for so many subtasks.
    pub(crate) fn new(records: Option<u64>, parallelism: u32) -> Self {
        let end = records.unwrap_or(i64::MAX as u64);
        let deal = deal(0, end, parallelism, 0);
        Self { end, waiting: deal.map(|split| vec![split.encode()]).collect() }
    }

    /// What was left at a snapshot.
    pub(crate) fn restore(parallelism: u32, snapshot: &SourceSnapshot) -> Result<Self, ConnectorError> {
        let Self { end, waiting } = serde_json::from_slice(&snapshot.enumerator)
            .map_err(|e| foreign("the snapshot of a source", e))?;
        let mut left = Vec::new();
        for split in waiting.into_iter().flatten().chain(snapshot.unfinished.iter().cloned()) {
            let decoded = GeneratorSplit::decode(&split)?;
            left.push((decoded, split.watermark));
        }
        left.retain(|(split, _)| !split.is_empty());
        left.sort_by_key(|(split, _)| (split.end, split.next));
        if left.iter().filter(|(split, _)| split.end == end).count() != parallelism as usize {
            left = deal_anew(left, end, parallelism);
        }
        let mut waiting = vec![Vec::new(); parallelism as usize];
        for (index, (split, watermark)) in left.into_iter().enumerate() {
            waiting[index % parallelism as usize].push(Split { watermark, ..split.encode() });
        }
        Ok(Self { end, waiting })
    }
}

impl SplitEnumerator for GeneratorEnumerator {
    fn next_split(&mut self, subtask: u32) -> Result<Assignment, ConnectorError> {
        let waiting = self.waiting.get_mut(subtask as usize).map(std::mem::take);
        Ok(match waiting.filter(|splits| !splits.is_empty()) {
            Some(splits) => Assignment::Splits(splits),
            None => Assignment::Finished,
        })
    }

    fn snapshot(&self) -> Result<Vec<u8>, ConnectorError> {
        serde_json::to_vec(self)
            .map_err(|e| ConnectorError::external("the generator's position cannot be written", e))
    }
}

/// The records from `first` on, for so many subtasks.
fn deal(first: u64, end: u64, parallelism: u32, elapsed: u64) -> impl Iterator<Item = GeneratorSplit> {
    let stride = u64::from(parallelism.max(1));
    (0..stride).map(move |i| GeneratorSplit { next: first + i, stride, end, elapsed })
}

/// Gaps up to the furthest of the splits that go on to the end, and the rest in new splits behind them. If one of
/// those has reached the end, the rest are gaps too.
fn deal_anew(left: Vec<(GeneratorSplit, i64)>, end: u64, parallelism: u32) -> Vec<(GeneratorSplit, i64)> {
    let open = |split: &GeneratorSplit| split.end == end;
    let furthest = left.iter().filter(|(split, _)| open(split)).map(|(split, _)| split.next).max();
    let all = left.iter().filter(|(split, _)| open(split)).count() as u64;
    let Some(furthest) = furthest.filter(|_| left.iter().all(|(s, _)| !open(s) || s.stride == all)) else {
        return left;
    };
    let elapsed = left.iter().map(|(split, _)| split.elapsed).max().unwrap_or_default();
    let gap = |(split, watermark): (GeneratorSplit, i64)| {
        (GeneratorSplit { end: split.end.min(furthest), ..split }, watermark)
    };
    let gaps = left.into_iter().map(gap).filter(|(split, _)| !split.is_empty());
    let rest = deal(furthest, end, parallelism, elapsed).map(|split| (split, MIN_WATERMARK));
    gaps.chain(rest.filter(|(split, _)| !split.is_empty())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hands everything out, makes `turns` of each subtask's records by the pattern, and takes a snapshot.
    fn run(enumerator: &mut GeneratorEnumerator, turns: &[u64], made: &mut Vec<u64>) -> SourceSnapshot {
        let mut unfinished = Vec::new();
        for (subtask, turns) in turns.iter().enumerate() {
            let Ok(Assignment::Splits(splits)) = enumerator.next_split(subtask as u32) else { continue };
            let mut left = *turns;
            for split in splits {
                let mut decoded = GeneratorSplit::decode(&split).expect("its own");
                while left > 0 && !decoded.is_empty() {
                    made.push(decoded.take(1));
                    left -= 1;
                }
                unfinished.push(decoded.encode());
            }
        }
        SourceSnapshot { enumerator: enumerator.snapshot().expect("encodes"), unfinished }
    }

    proptest! {
        #[test]
        fn every_record_is_made_once_whatever_the_number_of_subtasks(
            records in 0u64..200, steps in prop::collection::vec(prop::collection::vec(0u64..40, 1..6), 1..8)
        ) {
            let mut made = Vec::new();
            let mut enumerator = GeneratorEnumerator::new(Some(records), steps[0].len() as u32);
            for (i, turns) in steps.iter().enumerate() {
                let snapshot = run(&mut enumerator, turns, &mut made);
                let next = steps.get(i + 1).map_or(3, Vec::len);
                enumerator = GeneratorEnumerator::restore(next as u32, &snapshot).expect("its own");
            }
            run(&mut enumerator, &[u64::MAX; 3], &mut made);
            made.sort_unstable();
            prop_assert_eq!(made, (0..records).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_same_number_of_subtasks_goes_on_with_the_same_splits() {
        let mut enumerator = GeneratorEnumerator::new(None, 2);
        let snapshot = run(&mut enumerator, &[3, 5], &mut Vec::new());
        let mut restored = GeneratorEnumerator::restore(2, &snapshot).expect("its own");
        let ids = |assignment: Assignment| match assignment {
            Assignment::Splits(splits) => splits.iter().map(|s| s.id.to_string()).collect::<Vec<_>>(),
            other => vec![format!("{other:?}")],
        };
        assert_eq!(ids(restored.next_split(0).expect("known")), ["every 2 from 6"]);
        assert_eq!(ids(restored.next_split(1).expect("known")), ["every 2 from 11"]);
        assert_eq!(ids(restored.next_split(1).expect("known")), ["Finished"]);
    }

    #[test]
    fn what_another_connector_wrote_is_refused() {
        let snapshot = SourceSnapshot { enumerator: b"{}".to_vec(), unfinished: Vec::new() };
        let error = GeneratorEnumerator::restore(1, &snapshot).expect_err("not its own").to_string();
        assert!(error.contains("was not written by a generator: missing field `end`"), "{error}");
    }
}

//! The count trigger: after how many rows of a batch which keys fire.
//!
//! A key fires with exactly the rows up to its n-th, so a batch is added in rounds: the first has each key's rows up to
//! the one that fires it, the next one those up to the one that fires it again. Most batches are one round.

use arrow_array::{Int64Array, cast::AsArray, types::Int64Type};
use millstream_operator::OperatorError;
use millstream_state::{MemoryAccumulators, Overflow, StateName, WindowAccumulators};
use millstream_types::{
    Column, Columns, DataType, EncodedKeys, MaxParallelism, SnapshotRequest, StateForm, StatePart, Window,
};

use super::assign::Part;
use crate::{kept::COUNTS, subtask_state::take_state};

/// Rows of each key and window since it last fired.
pub(super) struct CountTrigger {
    every: i64,
    counts: Box<dyn WindowAccumulators>,
}

/// Rows that are added together.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// Their positions in the batch, ascending.
    pub(super) rows: Vec<u32>,
    /// Those among `rows`, by their position there, whose groups fire afterwards.
    pub(super) firing: Vec<u32>,
}

impl CountTrigger {
    pub(super) fn new(every: u64, overflow: Option<Overflow>) -> Self {
        let column = Column { name: "count".to_owned(), data_type: DataType::Int64, nullable: false };
        let every = i64::try_from(every).unwrap_or(i64::MAX).max(1);
        Self { every, counts: Box::new(MemoryAccumulators::with_overflow(&[column], overflow)) }
    }

    /// Counts the rows of a batch and says how they are added. Every row is in one part.
    pub(super) fn rounds(&mut self, keys: &EncodedKeys, parts: &[Part]) -> Result<Vec<Round>, OperatorError> {
        self.counts.begin(keys.len())?;
        for part in parts {
            self.counts.resolve(part.window, keys, part.rows.as_deref())?;
        }
        let cells = self.counts.read()?;
        let before = cells.values.arrays[0].as_primitive::<Int64Type>().values();
        let mut counts: Vec<i64> = before
            .iter()
            .zip(&cells.present)
            .map(|(&count, present)| if present { count } else { 0 })
            .collect();
        let mut rounds: Vec<Round> = Vec::new();
        for (row, &group) in self.counts.grouping().group_of_row.iter().enumerate() {
            let count = &mut counts[group as usize];
            let at = (*count / self.every) as usize;
            *count += 1;
            if rounds.len() <= at {
                rounds.resize_with(at + 1, Round::default);
            }
            let round = &mut rounds[at];
            if *count % self.every == 0 {
                round.firing.push(round.rows.len() as u32);
            }
            round.rows.push(row as u32);
        }
        self.keep(counts)?;
        Ok(rounds)
    }

    /// Forgets a window.
    pub(super) fn clear(&mut self, window: Window) -> Result<(), OperatorError> {
        Ok(self.counts.clear(window)?)
    }

    /// The counts, as parts of a snapshot.
    pub(super) fn snapshot(
        &mut self,
        max: MaxParallelism,
        request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, OperatorError> {
        Ok(self.counts.snapshot(StateName { name: COUNTS, version: 1 }, max, request)?)
    }

    /// Takes the parts that are its own out of a snapshot.
    pub(super) fn restore(&mut self, parts: &mut Vec<StatePart>) -> Result<(), OperatorError> {
        let own = take_state(COUNTS, StateForm::Accumulators, parts);
        Ok(own.iter().try_for_each(|part| self.counts.restore(part))?)
    }

    fn keep(&mut self, counts: Vec<i64>) -> Result<(), OperatorError> {
        let rest: Vec<i64> = counts.iter().map(|count| count % self.every).collect();
        let fired: Vec<u32> = (0..rest.len() as u32).filter(|&group| rest[group as usize] == 0).collect();
        let column = std::sync::Arc::new(Int64Array::from(rest));
        self.counts.write(&Columns::new(counts.len(), vec![column]), &[])?;
        Ok(self.counts.remove_groups(&fired)?)
    }
}

//! The count trigger of sessions.
//!
//! Which session a row joins, and so how many rows that has, depends on the rows before it. So a batch is added in
//! rounds of one row a key. The counts are kept as sessions of their own, which join as those that they count.

use std::sync::Arc;

use arrow_array::{Int64Array, cast::AsArray, types::Int64Type};
use hashbrown::HashMap;
use millstream_operator::OperatorError;
use millstream_state::{MemorySessionAccumulators, Overflow, SessionAccumulators, SessionState, StateName};
use millstream_types::{
    Column, Columns, DataType, EncodedKeys, MaxParallelism, SnapshotRequest, StateForm, StatePart,
};

use crate::{kept::COUNTS, subtask_state::take_state};

/// Rows of each session since it last fired.
pub(super) struct SessionCount {
    every: i64,
    gap: i64,
    counts: MemorySessionAccumulators,
}

impl SessionCount {
    pub(super) fn new(every: u64, gap: i64, lateness: i64, overflow: Option<Overflow>) -> Self {
        let column = Column { name: "count".to_owned(), data_type: DataType::Int64, nullable: false };
        let every = i64::try_from(every).unwrap_or(i64::MAX).max(1);
        Self { every, gap, counts: MemorySessionAccumulators::with_overflow(&[column], lateness, overflow) }
    }

    /// The rows of a batch in rounds of one row a key, in order.
    pub(super) fn rounds(keys: &EncodedKeys) -> Vec<Vec<u32>> {
        let mut seen: HashMap<&[u8], usize> = HashMap::new();
        let mut rounds: Vec<Vec<u32>> = Vec::new();
        for (row, key) in keys.iter().enumerate() {
            let round = seen.entry(key).or_insert(0);
            if *round == rounds.len() {
                rounds.push(Vec::new());
            }
            rounds[*round].push(row as u32);
            *round += 1;
        }
        rounds
    }

    /// Counts rows of different keys, none of which is late. Returns the groups that fire, as the sessions themselves
    /// number them: both are given the same rows.
    pub(super) fn add(
        &mut self,
        keys: &EncodedKeys,
        times: &[i64],
        clock: i64,
    ) -> Result<Vec<u32>, OperatorError> {
        self.counts.assign(keys, times, self.gap, clock)?;
        while let Some(step) = self.counts.next_merge()? {
            let sums = numbers(&step.into).iter().zip(numbers(&step.other)).map(|(a, b)| a + b).collect();
            self.counts.finish_merge(&column(sums))?;
        }
        let cells = self.counts.read()?;
        let counts = numbers(&cells.values).iter().zip(&cells.present);
        let mut counts: Vec<i64> =
            counts.map(|(&count, present)| if present { count + 1 } else { 1 }).collect();
        let fires = |group: &u32| counts[*group as usize] >= self.every;
        let firing: Vec<u32> = (0..counts.len() as u32).filter(fires).collect();
        firing.iter().for_each(|&group| counts[group as usize] = 0);
        self.counts.write(&column(counts), &[])?;
        Ok(firing)
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
        let own = take_state(COUNTS, StateForm::SessionAccumulators, parts);
        Ok(own.iter().try_for_each(|part| self.counts.restore(part))?)
    }

    /// Forgets the sessions that are forgotten at `clock`.
    pub(super) fn forget(&mut self, clock: i64) -> Result<(), OperatorError> {
        while !self.counts.take_due(clock, usize::MAX, false)?.windows.is_empty() {}
        Ok(())
    }
}

fn numbers(columns: &Columns) -> &[i64] {
    columns.arrays[0].as_primitive::<Int64Type>().values()
}

fn column(counts: Vec<i64>) -> Columns {
    Columns::new(counts.len(), vec![Arc::new(Int64Array::from(counts))])
}

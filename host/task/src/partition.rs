//! Dealing rows out to the subtasks of the next vertex.

use arrow_array::UInt32Array;
use arrow_buffer::ScalarBuffer;
use millstream_types::{
    Batch, EncodedKeys, KeyError, KeyGroup, MaxParallelism, Positions, hash_keys, long_keys,
};

/// How an edge deals out its rows.
#[derive(Clone, Debug)]
pub enum Partitioner {
    /// To the one channel there is.
    Forward,
    /// By the key groups of these columns.
    Hash {
        /// Positions of the key's columns.
        columns: Vec<usize>,
        /// Number of key groups of the job.
        max_parallelism: MaxParallelism,
    },
    /// Batch by batch to one after the other.
    Rebalance,
    /// To all.
    Broadcast,
}

/// Deals rows out by key and keeps its buffers between batches.
#[derive(Default)]
pub(crate) struct HashSplitter {
    keys: EncodedKeys,
    hashes: Vec<u64>,
    /// By key group.
    owners: Vec<u32>,
    targets: Vec<u32>,
    counts: Vec<u32>,
}

impl HashSplitter {
    /// The rows of each of `targets` subtasks, in their order; `None` where there is none. One pass counts, one
    /// places: what is gathered are indices and then views, never text.
    pub(crate) fn split(
        &mut self,
        batch: &Batch,
        columns: &[usize],
        max: MaxParallelism,
        targets: usize,
    ) -> Result<Vec<Option<Batch>>, KeyError> {
        if targets == 1 {
            return Ok(vec![Some(batch.clone())]);
        }
        let key: Vec<_> = columns.iter().map(|&c| batch.column(c)).collect();
        if let Err(error) = hash_keys(&key, batch.rows(), &mut self.keys, &mut self.hashes) {
            return self.split_long(batch, columns, max, targets, error);
        }
        self.count(max, targets);
        let order = self.place();
        let mut start = 0;
        let range = batch.positions().map(Positions::range);
        let take = |&count: &u32| {
            let rows = order.slice(start, count as usize);
            start += count as usize;
            match count as usize {
                0 => None,
                all if all == batch.rows() => Some(batch.clone()),
                // What waits in a queue refers to no picks.
                _ => Some(batch.take(&UInt32Array::new(rows, None)).with_positions(range.clone())),
            }
        };
        Ok(self.counts.iter().map(take).collect())
    }

    /// The same for a batch in which a key is too long. Rows with such a key go to the first subtask, as any would do
    /// that can refuse them: what becomes of refused rows is for the receiving operator to say.
    fn split_long(
        &mut self,
        batch: &Batch,
        columns: &[usize],
        max: MaxParallelism,
        targets: usize,
        error: KeyError,
    ) -> Result<Vec<Option<Batch>>, KeyError> {
        let key: Vec<_> = columns.iter().map(|&c| batch.column(c)).collect();
        let long: Vec<u32> = long_keys(&key, batch.rows()).into_iter().map(|key| key.row).collect();
        if long.is_empty() {
            return Err(error);
        }
        let short = (0..batch.rows() as u32).filter(|row| long.binary_search(row).is_err());
        let short = batch.take(&UInt32Array::from_iter_values(short));
        let mut parts = self.split(&short, columns, max, targets)?;
        let long = batch.take(&UInt32Array::from(long));
        parts[0] = match parts[0].take() {
            Some(first) => Batch::concat(&[first, long]),
            None => Some(long),
        };
        Ok(parts)
    }

    fn count(&mut self, max: MaxParallelism, targets: usize) {
        self.counts.clear();
        self.counts.resize(targets, 0);
        self.owners.clear();
        self.owners.extend((0..max.groups()).map(|group| max.owner_of(KeyGroup(group), targets as u32)));
        self.targets.clear();
        let owner = |&hash: &u64| self.owners[usize::from(max.group_of(hash).0)];
        self.targets.extend(self.hashes.iter().map(owner));
        for &target in &self.targets {
            self.counts[target as usize] += 1;
        }
    }

    /// Row numbers by target, in order within each.
    fn place(&self) -> ScalarBuffer<u32> {
        let mut next: Vec<u32> = Vec::with_capacity(self.counts.len());
        let mut sum = 0;
        for count in &self.counts {
            next.push(sum);
            sum += count;
        }
        let mut order = vec![0; self.targets.len()];
        for (row, &target) in self.targets.iter().enumerate() {
            let place = &mut next[target as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        order.into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch, StringViewArray, cast::AsArray, types::Int64Type};
    use millstream_types::{DataType, Field, RecordNumbers, RecordUnit, Schema, hash_key};

    use super::*;

    fn batch(keys: &[&str]) -> Batch {
        let schema = Schema::new(vec![Field::new("k", DataType::Utf8), Field::new("i", DataType::Int64)]);
        let numbers = Int64Array::from_iter_values(0..keys.len() as i64);
        let columns: Vec<arrow_array::ArrayRef> =
            vec![Arc::new(StringViewArray::from(keys.to_vec())), Arc::new(numbers)];
        Batch::without_times(RecordBatch::try_new(schema.arrow().clone(), columns).expect("fits"))
    }

    #[test]
    fn every_row_goes_to_the_owner_of_its_key_group_in_order() {
        let words: Vec<String> = (0..1000).map(|i| format!("key {}", i % 37)).collect();
        let batch = batch(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let max = MaxParallelism::DEFAULT;
        let parts = HashSplitter::default().split(&batch, &[0], max, 3).expect("short keys");
        let mut seen = 0;
        for (target, part) in parts.iter().enumerate() {
            let part = part.as_ref().expect("37 keys reach all of 3");
            let numbers = part.column(1).as_primitive::<Int64Type>().values();
            assert!(numbers.is_sorted(), "rows of a target keep their order");
            for row in 0..part.rows() {
                let key = part.column(0).as_string_view().value(row);
                let encoded = [&[1], key.as_bytes(), &[0, 0]].concat();
                assert_eq!(max.owner_of(max.group_of(hash_key(&encoded)), 3), target as u32);
            }
            seen += part.rows();
        }
        assert_eq!(seen, 1000);
    }

    #[test]
    fn rows_with_a_key_that_is_too_long_are_sent_on_too() {
        let long = "x".repeat(millstream_types::Limits::KEY_BYTES);
        let mut splitter = HashSplitter::default();
        let mut rows = |keys: &[&str]| {
            let parts = splitter.split(&batch(keys), &[0], MaxParallelism::DEFAULT, 2).expect("all go on");
            parts.iter().map(|part| part.as_ref().map_or(0, Batch::rows)).collect::<Vec<_>>()
        };
        let short = rows(&["a", "b", "c", "d"]);
        assert_eq!(rows(&["a", &long, "b", "c", &long, "d"]), [short[0] + 2, short[1]]);
        assert_eq!(rows(&[&long]), [1, 0]);
    }

    #[test]
    fn one_target_gets_the_batch_as_it_is() {
        let parts = HashSplitter::default().split(&batch(&["a", "b"]), &[0], MaxParallelism::DEFAULT, 1);
        assert_eq!(parts.expect("nothing to encode")[0].as_ref().map(Batch::rows), Some(2));
    }

    #[test]
    fn rows_that_are_dealt_out_keep_the_range_that_they_come_from() {
        let words: Vec<String> = (0..100).map(|i| format!("key {i}")).collect();
        let numbers = RecordNumbers::Even { first: 2, stride: 1, rows: 100 };
        let positions = Positions::read("a.csv".into(), RecordUnit::Line, numbers);
        let batch =
            batch(&words.iter().map(String::as_str).collect::<Vec<_>>()).with_positions(Some(positions));
        let parts =
            HashSplitter::default().split(&batch, &[0], MaxParallelism::DEFAULT, 2).expect("short keys");
        for part in parts {
            let part = part.expect("100 keys reach both");
            assert_eq!(part.positions().map(|p| p.of(0)).as_deref(), Some("a.csv: lines 2 to 101"));
        }
    }
}

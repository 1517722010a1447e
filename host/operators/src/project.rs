//! From the rows of a stream to the columns that a function reads: selection, widening, and what becomes of nulls
//! that the function does not take.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, UInt32Array, cast::AsArray, types};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType as ArrowType;
use millstream_operator::Rejected;
use millstream_types::{Batch, Columns, DataType};

/// One column that a function reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadColumn {
    /// Its position in the stream's batches.
    pub index: usize,
    /// The type that the function declares: the stream's own, or one that it widens to.
    pub data_type: DataType,
    /// Whether a row without a value in it is refused and not sent: `on-null = "reject"` for a column that may be
    /// null in the stream and may not be in the function.
    pub reject_null: bool,
}

/// What a function reads of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectionSpec {
    /// The columns, in the order of the function's manifest.
    pub columns: Vec<ReadColumn>,
    /// Whether event times are sent too.
    pub times: bool,
}

/// A batch as a function gets it.
#[derive(Debug)]
pub struct Projected {
    /// The rows that are sent, with all their columns: what the function's outputs come from.
    pub batch: Batch,
    /// The columns that the function reads of them.
    pub columns: Columns,
    /// The rows that are not sent, by their position in the original batch.
    pub rejected: Vec<Rejected>,
}

impl ProjectionSpec {
    /// Selects and widens the columns, without the rows that have a null where the function takes none.
    pub fn project(&self, batch: Batch) -> Projected {
        let (batch, rejected) = self.split_nulls(batch);
        let columns = self.columns(&batch);
        Projected { batch, columns, rejected }
    }

    /// The rows that have a value wherever the function wants one, and those that do not by their position.
    pub fn split_nulls(&self, batch: Batch) -> (Batch, Vec<Rejected>) {
        let rejected = self.refused_nulls(&batch);
        let batch = if rejected.is_empty() { batch } else { without(&batch, &rejected) };
        (batch, rejected)
    }

    /// The columns that the function reads, of rows that have been through [`ProjectionSpec::split_nulls`].
    pub fn columns(&self, batch: &Batch) -> Columns {
        Columns::new(
            batch.rows(),
            self.columns.iter().map(|c| widen(batch.column(c.index), c.data_type)).collect(),
        )
    }

    /// The event times to send along, if the function reads them.
    pub fn times<'a>(&self, batch: &'a Batch) -> Option<&'a [i64]> {
        self.times.then(|| &batch.times()[..])
    }

    fn refused_nulls(&self, batch: &Batch) -> Vec<Rejected> {
        let strict = || self.columns.iter().filter(|c| c.reject_null).map(|c| c.index);
        let masks = strict().map(|i| batch.column(i).nulls());
        let Some(valid) = masks.fold(None, |all, mask| NullBuffer::union(all.as_ref(), mask)) else {
            return Vec::new();
        };
        let reason = |row: usize| {
            let name = |i: usize| batch.records().schema_ref().field(i).name().clone();
            let missing = strict().find(|&i| batch.column(i).is_null(row)).map(name).unwrap_or_default();
            format!("column `{missing}` is null and the function takes no null in it")
        };
        let refused = (0..batch.rows()).filter(|&row| valid.is_null(row));
        refused.map(|row| Rejected { row: row as u32, reason: reason(row), retryable: false }).collect()
    }
}

/// The rows of a batch that are not among `rejected`, which is ascending.
pub fn without(batch: &Batch, rejected: &[Rejected]) -> Batch {
    batch.take(&kept_rows(batch.rows(), rejected))
}

/// The positions, of `rows`, that are not among `rejected`, which is ascending.
pub(crate) fn kept_rows(rows: usize, rejected: &[Rejected]) -> UInt32Array {
    let mut refused = rejected.iter().map(|r| r.row).peekable();
    (0..rows as u32).filter(|row| refused.next_if_eq(row).is_none()).collect::<Vec<_>>().into()
}

/// A column in the type that the function declares.
pub(crate) fn widen(array: &ArrayRef, wanted: DataType) -> ArrayRef {
    match (array.data_type(), wanted) {
        (ArrowType::Int32, DataType::Int64) => {
            Arc::new(array.as_primitive::<types::Int32Type>().unary::<_, types::Int64Type>(i64::from))
        }
        (ArrowType::Float32, DataType::Float64) => {
            Arc::new(array.as_primitive::<types::Float32Type>().unary::<_, types::Float64Type>(f64::from))
        }
        _ => array.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float32Array, Float64Array, Int32Array, Int64Array};
    use millstream_types::{Field, Schema};

    use super::*;

    fn batch() -> Batch {
        let schema = Schema::new(vec![
            Field::nullable("a", DataType::Int32),
            Field::nullable("b", DataType::Float32),
            Field::new("c", DataType::Int64),
        ]);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])),
            Arc::new(Float32Array::from(vec![Some(0.5), Some(1.5), None])),
            Arc::new(Int64Array::from(vec![7, 8, 9])),
        ];
        Batch::new(&schema, arrays, vec![10, 20, 30].into()).expect("fits")
    }

    fn column(index: usize, data_type: DataType, reject_null: bool) -> ReadColumn {
        ReadColumn { index, data_type, reject_null }
    }

    #[test]
    fn columns_come_in_the_functions_order_and_widened() {
        let columns = vec![column(1, DataType::Float64, false), column(0, DataType::Int64, false)];
        let projected = ProjectionSpec { columns, times: true }.project(batch());
        assert!(projected.rejected.is_empty());
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.5), Some(1.5), None]));
        let integers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        assert_eq!(projected.columns.arrays, [floats, integers]);
    }

    #[test]
    fn rows_with_a_null_that_is_not_taken_are_split_off() {
        let columns = vec![column(0, DataType::Int32, true), column(1, DataType::Float32, true)];
        let projected = ProjectionSpec { columns, times: false }.project(batch());
        let refused: Vec<_> = projected.rejected.iter().map(|r| (r.row, r.reason.as_str())).collect();
        let reason = |c| format!("column `{c}` is null and the function takes no null in it");
        assert_eq!(refused, [(1, reason("a").as_str()), (2, reason("b").as_str())]);
        assert_eq!(projected.batch.times().to_vec(), [10]);
        assert_eq!(projected.columns.rows, 1);
        assert_eq!(projected.columns.arrays[0].null_count(), 0);
    }

    #[test]
    fn a_function_that_reads_nothing_still_gets_the_number_of_rows() {
        let projected = ProjectionSpec::default().project(batch());
        assert_eq!((projected.columns.rows, projected.columns.arrays.len()), (3, 0));
    }
}

//! A batch of rows with their event times: the unit in which everything moves.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, RecordBatch, StringViewArray, UInt32Array, cast::AsArray,
};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use arrow_select::{concat::concat_batches, take::take};

use crate::{NO_TIME, Positions, Schema};

/// Rows of one stream: Arrow columns and the event time of each row.
///
/// Cloning and slicing share the buffers. `kinds` is there for changelog streams: a byte a row (0 insert,
/// 1 update-before, 2 update-after, 3 delete); none means that every row is an insert. `positions` is where the rows
/// stand in their source, as far as that is known: for messages.
#[derive(Clone, Debug)]
pub struct Batch {
    records: RecordBatch,
    times: ScalarBuffer<i64>,
    kinds: Option<ScalarBuffer<u8>>,
    positions: Option<Positions>,
}

/// Columns that do not make a batch of a schema.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Arrow refused the columns: their number, types, lengths or nulls are not the schema's.
    #[error("the columns do not fit the schema ({columns}): {reason}", columns = .schema)]
    Columns {
        /// The schema's columns.
        schema: String,
        /// What Arrow found.
        reason: String,
    },
    /// There is not one time a row.
    #[error("{times} event times for {rows} rows")]
    Times {
        /// Times given.
        times: usize,
        /// Rows there are.
        rows: usize,
    },
}

impl Batch {
    /// A batch of `schema` out of its columns and the rows' event times.
    pub fn new(schema: &Schema, arrays: Vec<ArrayRef>, times: ScalarBuffer<i64>) -> Result<Self, BatchError> {
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(times.len()));
        let records = RecordBatch::try_new_with_options(schema.arrow().clone(), arrays, &options)
            .map_err(|e| BatchError::Columns { schema: schema.names(), reason: e.to_string() })?;
        Ok(Self { records, times, kinds: None, positions: None })
    }

    /// No rows and no columns.
    pub fn empty() -> Self {
        Self {
            records: RecordBatch::new_empty(Schema::empty().arrow().clone()),
            times: Vec::new().into(),
            kinds: None,
            positions: None,
        }
    }

    /// A batch whose rows have no event time yet.
    pub fn without_times(records: RecordBatch) -> Self {
        let times = ScalarBuffer::from(vec![NO_TIME; records.num_rows()]);
        Self { records, times, kinds: None, positions: None }
    }

    /// The same rows with other times.
    pub fn with_times(self, times: ScalarBuffer<i64>) -> Result<Self, BatchError> {
        if times.len() != self.rows() {
            return Err(BatchError::Times { times: times.len(), rows: self.rows() });
        }
        Ok(Self { times, ..self })
    }

    /// The same rows, which stand there in their source.
    pub fn with_positions(self, positions: Option<Positions>) -> Self {
        Self { positions, ..self }
    }

    /// Where the rows stand in their source, if that is known.
    pub fn positions(&self) -> Option<&Positions> {
        self.positions.as_ref()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.records.num_rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }

    /// The rows as an Arrow record batch.
    pub fn records(&self) -> &RecordBatch {
        &self.records
    }

    /// One column.
    pub fn column(&self, index: usize) -> &ArrayRef {
        self.records.column(index)
    }

    /// The event time of each row, or [`NO_TIME`].
    pub fn times(&self) -> &ScalarBuffer<i64> {
        &self.times
    }

    /// Rows `offset..offset + length`, by reference.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        Self {
            records: self.records.slice(offset, length),
            times: self.times.slice(offset, length),
            kinds: self.kinds.as_ref().map(|k| k.slice(offset, length)),
            positions: self.positions.as_ref().map(|p| p.slice(offset)),
        }
    }

    /// The rows at `indices`, in that order. Text and bytes stay where they are; only their views are gathered.
    ///
    /// # Panics
    /// If an index is out of range: whoever takes indices from outside checks them.
    pub fn take(&self, indices: &UInt32Array) -> Self {
        let gather =
            |column: &ArrayRef| take(column, indices, None).expect("indices were checked by the caller");
        let columns = self.records.columns().iter().map(gather).collect();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(indices.len()));
        let records = RecordBatch::try_new_with_options(self.records.schema(), columns, &options)
            .expect("gathered columns have the schema of their source");
        let times = indices.values().iter().map(|&i| self.times[i as usize]).collect();
        let kinds = self.kinds.as_ref().map(|k| indices.values().iter().map(|&i| k[i as usize]).collect());
        let positions = self.positions.as_ref().map(|p| p.pick(indices.values()));
        Self { records, times, kinds, positions }
    }

    /// The rows of `batches`, one behind the other; they have one schema. `None` if there is no batch.
    ///
    /// # Panics
    /// If the schemas differ: batches of one stream never do.
    pub fn concat(batches: &[Batch]) -> Option<Batch> {
        let first = match batches {
            [] => return None,
            [only] => return Some(only.clone()),
            [first, ..] => first,
        };
        let records = concat_batches(&first.records.schema(), batches.iter().map(|b| &b.records))
            .expect("batches of one stream have one schema");
        let times = batches.iter().flat_map(|b| b.times.iter().copied()).collect();
        let kinds = batches.iter().any(|b| b.kinds.is_some()).then(|| {
            let of = |b: &Batch| b.kinds.as_ref().map_or_else(|| vec![0; b.rows()], |k| k.to_vec());
            batches.iter().flat_map(of).collect()
        });
        let positions = Positions::concat(batches.iter().map(|b| b.positions.as_ref()));
        Some(Batch { records, times, kinds, positions })
    }

    /// Copies text and bytes out of buffers of which only a small part is shown: see [`compact`].
    pub fn compacted(self) -> Self {
        let columns = self.records.columns().iter().map(compact).collect();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows()));
        let records = RecordBatch::try_new_with_options(self.records.schema(), columns, &options)
            .expect("the same columns fit the same schema");
        Self { records, ..self }
    }

    /// Bytes that this batch keeps alive: what a queue is charged for holding it.
    pub fn retained_bytes(&self) -> usize {
        self.records.get_array_memory_size() + self.times.inner().capacity()
    }

    /// Bytes that the rows themselves need: what a frame or a compacted copy takes.
    pub fn content_bytes(&self) -> usize {
        let columns: usize = self.records.columns().iter().map(|c| content_bytes(c)).sum();
        columns + self.rows() * size_of::<i64>()
    }
}

/// Bytes that the rows of a column need, without what else its buffers hold.
fn content_bytes(array: &dyn Array) -> usize {
    let validity = array.nulls().map_or(0, |_| array.len().div_ceil(8));
    let values = match array.data_type() {
        ArrowType::Utf8View => {
            array.as_string_view().lengths().map(|n| n as usize).sum::<usize>() + array.len() * 4
        }
        ArrowType::BinaryView => {
            array.as_binary_view().lengths().map(|n| n as usize).sum::<usize>() + array.len() * 4
        }
        ArrowType::Boolean => array.len().div_ceil(8),
        other => array.len() * other.primitive_width().unwrap_or(16),
    };
    validity + values
}

/// Copies the text and bytes of view columns that keep more than four times what they show into buffers of their own,
/// so that a small batch does not keep a large buffer alive. Other columns are shared.
pub fn compact(array: &ArrayRef) -> ArrayRef {
    let wasteful =
        |buffers: &[Buffer], used: usize| buffers.iter().map(Buffer::len).sum::<usize>() > 4 * used + 4096;
    match array.data_type() {
        ArrowType::Utf8View => {
            let view: &StringViewArray = array.as_string_view();
            if wasteful(view.data_buffers(), view.total_buffer_bytes_used()) {
                Arc::new(view.gc())
            } else {
                array.clone()
            }
        }
        ArrowType::BinaryView => {
            let view: &BinaryViewArray = array.as_binary_view();
            if wasteful(view.data_buffers(), view.total_buffer_bytes_used()) {
                Arc::new(view.gc())
            } else {
                array.clone()
            }
        }
        _ => array.clone(),
    }
}

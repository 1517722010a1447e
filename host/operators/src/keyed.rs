//! The key of a keyed operator: how its inputs' rows are keyed, and what its function sees of the keys.

use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::take::take;
use millstream_operator::Rejected;
use millstream_types::{
    Batch, Columns, DataType, EncodedKeys, KeyError, KeyReader, LongKey, encode_keys, long_keys,
};

use crate::{ProjectionSpec, ReadColumn, project::widen};

/// The key of an operator. All its inputs have the same one, each in columns of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySpec {
    /// The types of the key's columns in the stream, as encoded keys have them.
    pub stored: Vec<DataType>,
    /// The columns that the function declares, by position: none, or one for each of `stored` from the first on.
    pub declared: Vec<DeclaredKey>,
}

/// A key column as a function declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredKey {
    /// The stream's type, or one that it widens to.
    pub data_type: DataType,
    /// Whether a row without a value in it is refused and not sent.
    pub reject_null: bool,
}

impl KeySpec {
    /// What the function sees of the key in an input that has it in the columns `key`.
    pub(crate) fn projection(&self, key: &[usize]) -> ProjectionSpec {
        let read = |(&index, declared): (&usize, &DeclaredKey)| {
            let DeclaredKey { data_type, reject_null } = *declared;
            ReadColumn { index, data_type, reject_null }
        };
        ProjectionSpec { columns: key.iter().zip(&self.declared).map(read).collect(), times: false }
    }

    /// Reads encoded keys back: the stored columns.
    pub(crate) fn decode(&self, keys: &[&[u8]]) -> Result<Vec<ArrayRef>, KeyError> {
        KeyReader::new(self.stored.as_slice()).read(keys.iter().copied())
    }

    /// What the function sees of `rows` keys with these stored columns.
    pub(crate) fn declared_columns(&self, rows: usize, stored: &[ArrayRef]) -> Columns {
        let columns =
            stored.iter().zip(&self.declared).map(|(array, declared)| widen(array, declared.data_type));
        Columns::new(rows, columns.collect())
    }
}

/// Encodes the keys of a batch, one a row.
pub(crate) fn encode_batch(batch: &Batch, key: &[usize], keys: &mut EncodedKeys) -> Result<(), KeyError> {
    let columns: Vec<&ArrayRef> = key.iter().map(|&index| batch.column(index)).collect();
    encode_keys(&columns, batch.rows(), keys)
}

/// The rows whose key is too long to be kept.
pub(crate) fn refused_keys(batch: &Batch, key: &[usize]) -> Vec<Rejected> {
    let columns: Vec<&ArrayRef> = key.iter().map(|&index| batch.column(index)).collect();
    let refused = |key: LongKey| Rejected { row: key.row, reason: key.to_string(), retryable: false };
    long_keys(&columns, batch.rows()).into_iter().map(refused).collect()
}

/// The key columns that a function sees of the keys first met in `rows` of a batch.
pub(crate) fn keys_of_rows(batch: &Batch, projection: &ProjectionSpec, rows: &[u32]) -> Columns {
    let indices = UInt32Array::from(rows.to_vec());
    let column = |read: &ReadColumn| {
        let gathered =
            take(batch.column(read.index), &indices, None).expect("first rows are rows of the batch");
        widen(&gathered, read.data_type)
    };
    Columns::new(rows.len(), projection.columns.iter().map(column).collect())
}

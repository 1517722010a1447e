//! Rows on their way to a writer of text.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions, cast::AsArray, types::TimestampMillisecondType,
};
use arrow_schema::{ArrowError, DataType as ArrowType, Field, Schema};

/// The same rows with the time zone of their timestamps as an offset, `+00:00` for `UTC`: the writers look names up in
/// a table that is not built in. Nothing is copied.
pub(crate) fn printable(records: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = records.schema();
    if !schema.fields().iter().any(|field| is_timestamp(field.data_type())) {
        return Ok(records.clone());
    }
    let columns: Vec<ArrayRef> = records.columns().iter().map(with_offset).collect();
    let fields = schema.fields().iter().zip(&columns);
    let fields = fields.map(|(f, c)| Field::new(f.name(), c.data_type().clone(), f.is_nullable()));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let options = RecordBatchOptions::new().with_row_count(Some(records.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
}

fn with_offset(column: &ArrayRef) -> ArrayRef {
    match column.as_primitive_opt::<TimestampMillisecondType>() {
        Some(times) => Arc::new(times.clone().with_timezone("+00:00")),
        None => column.clone(),
    }
}

fn is_timestamp(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::Timestamp(..))
}

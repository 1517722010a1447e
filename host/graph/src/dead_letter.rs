//! The form of rows that could not be used.

use millstream_types::{DataType, Field, Schema};

/// Columns of every `dead-letter` port: which subtask of which operator refused the row, where in the input it stood
/// if that is known, why it was refused, and the row itself as JSON, or as the text that could not be read.
pub fn dead_letter_schema() -> Schema {
    Schema::new(vec![
        Field::new("operator", DataType::Utf8),
        Field::new("subtask", DataType::Int32),
        Field::nullable("position", DataType::Utf8),
        Field::new("reason", DataType::Utf8),
        Field::new("row", DataType::Utf8),
    ])
}

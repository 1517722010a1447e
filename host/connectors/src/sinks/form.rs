//! The text of a row over which its checksum is taken.

use std::io::Write;

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Date32Type, Float32Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType},
};
use millstream_types::{DataType, Schema};

/// Pieces of text and positions of columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Column(usize),
}

impl Form {
    /// The columns' values with commas between them, `(a,b,c)`; a single column's alone.
    pub(crate) fn plain(schema: &Schema) -> Self {
        let names: Vec<_> = schema.fields().iter().map(|field| format!("{{{}}}", field.name)).collect();
        let template = if names.len() == 1 { names.join(",") } else { format!("({})", names.join(",")) };
        Self::parse(&template, schema).expect("the schema has its own columns")
    }

    /// A template such as `({key},{end},({count},{sum}),{max})`. An error names the column that is not there.
    pub(crate) fn parse(template: &str, schema: &Schema) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((text, behind)) = rest.split_once('{') {
            let (name, behind) = behind
                .split_once('}')
                .ok_or_else(|| format!("`form` has a `{{` without `}}`: {template}"))?;
            let column = schema.index_of(name);
            let column = column.ok_or_else(|| {
                format!("`form` names the column `{name}`; the input has {}", schema.names())
            })?;
            pieces.extend([Piece::Text(text.to_owned()), Piece::Column(column)]);
            rest = behind;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Ok(Self(pieces))
    }

    /// Appends the text of a row. Times are milliseconds and dates days since 1970, bytes are as they are.
    pub(crate) fn write(&self, records: &RecordBatch, row: usize, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Column(column) => write_value(records.column(*column), row, out),
            }
        }
    }
}

fn write_value(column: &dyn Array, row: usize, out: &mut Vec<u8>) {
    if column.is_null(row) {
        return out.extend_from_slice(b"null");
    }
    let mut number =
        |value: &dyn std::fmt::Display| write!(out, "{value}").expect("memory takes all that is written");
    match DataType::from_arrow(column.data_type()) {
        Some(DataType::Boolean) => number(&column.as_boolean().value(row)),
        Some(DataType::Int32) => number(&column.as_primitive::<Int32Type>().value(row)),
        Some(DataType::Int64) => number(&column.as_primitive::<Int64Type>().value(row)),
        Some(DataType::Float32) => number(&column.as_primitive::<Float32Type>().value(row)),
        Some(DataType::Float64) => number(&column.as_primitive::<Float64Type>().value(row)),
        Some(DataType::Timestamp) => number(&column.as_primitive::<TimestampMillisecondType>().value(row)),
        Some(DataType::Date) => number(&column.as_primitive::<Date32Type>().value(row)),
        Some(DataType::Utf8) => out.extend_from_slice(column.as_string_view().value(row).as_bytes()),
        Some(DataType::Binary) => out.extend_from_slice(column.as_binary_view().value(row)),
        // Batches of the host have no other types.
        None => {}
    }
}

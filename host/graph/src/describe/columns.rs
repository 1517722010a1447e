//! Columns in and out.

use millstream_types::{Column, Schema};
use serde::Serialize;

use crate::{BoundColumn, OutputPort};

/// A column of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColumnDescription {
    /// Its name.
    pub name: String,
    /// Its type, with `?` if it may be null.
    #[serde(rename = "type")]
    pub type_text: String,
}

/// A column that a function reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReadDescription {
    /// What the function calls it.
    pub name: String,
    /// The type that the function takes.
    #[serde(rename = "type")]
    pub type_text: String,
    /// The column of the stream.
    pub column: String,
    /// The type from which it is widened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widened_from: Option<String>,
    /// Whether rows with null there are refused.
    pub reject_null: bool,
}

/// What comes out of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputDescription {
    /// The port.
    pub port: String,
    /// Its columns.
    pub columns: Vec<ColumnDescription>,
}

pub(super) fn columns(schema: &Schema) -> Vec<ColumnDescription> {
    let column =
        |f: &millstream_types::Field| ColumnDescription { name: f.name.clone(), type_text: f.type_text() };
    schema.fields().iter().map(column).collect()
}

pub(super) fn output(port: &OutputPort) -> OutputDescription {
    OutputDescription { port: port.name.clone(), columns: columns(&port.schema) }
}

/// Columns that a function declares, with those of `schema` that stand for them.
pub(super) fn reads(declared: &[Column], bound: &[BoundColumn], schema: &Schema) -> Vec<ReadDescription> {
    let read = |(column, bound): (&Column, &BoundColumn)| {
        let found = &schema.fields()[bound.column];
        ReadDescription {
            name: column.name.clone(),
            type_text: column.to_field().type_text(),
            column: found.name.clone(),
            widened_from: bound.cast.map(|_| found.data_type.to_string()),
            reject_null: bound.reject_null,
        }
    };
    declared.iter().zip(bound).map(read).collect()
}

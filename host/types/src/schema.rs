//! The logical types of columns, and how each lies in Arrow.
//!
//! Text and bytes are view arrays, so that carrying or gathering a value moves 16 bytes whatever its length.

use std::{fmt, str::FromStr, sync::Arc};

use arrow_schema::{DataType as ArrowType, Field as ArrowField, Schema as ArrowSchema, TimeUnit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Column;

/// The logical type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// `true` or `false`.
    Boolean,
    /// 32-bit signed integer.
    Int32,
    /// 64-bit signed integer.
    Int64,
    /// 32-bit IEEE 754 number.
    Float32,
    /// 64-bit IEEE 754 number.
    Float64,
    /// Milliseconds since the Unix epoch, UTC.
    Timestamp,
    /// Days since the Unix epoch.
    Date,
    /// Unicode text.
    Utf8,
    /// Bytes.
    Binary,
}

impl DataType {
    /// Every type, in the order in which messages list them.
    pub const ALL: [DataType; 9] = [
        DataType::Boolean,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Timestamp,
        DataType::Date,
        DataType::Utf8,
        DataType::Binary,
    ];

    /// The name that job files and manifests use.
    pub fn name(self) -> &'static str {
        match self {
            DataType::Boolean => "boolean",
            DataType::Int32 => "int32",
            DataType::Int64 => "int64",
            DataType::Float32 => "float32",
            DataType::Float64 => "float64",
            DataType::Timestamp => "timestamp",
            DataType::Date => "date",
            DataType::Utf8 => "utf8",
            DataType::Binary => "binary",
        }
    }

    /// The Arrow type that holds it in the host.
    pub fn to_arrow(self) -> ArrowType {
        match self {
            DataType::Boolean => ArrowType::Boolean,
            DataType::Int32 => ArrowType::Int32,
            DataType::Int64 => ArrowType::Int64,
            DataType::Float32 => ArrowType::Float32,
            DataType::Float64 => ArrowType::Float64,
            DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            DataType::Date => ArrowType::Date32,
            DataType::Utf8 => ArrowType::Utf8View,
            DataType::Binary => ArrowType::BinaryView,
        }
    }

    /// The logical type of an Arrow column of the host, if it is one of ours.
    pub fn from_arrow(arrow: &ArrowType) -> Option<DataType> {
        DataType::ALL.into_iter().find(|t| t.to_arrow() == *arrow)
    }

    /// Whether the host turns a column of this type into `wanted` without loss when a function asks for it.
    pub fn widens_to(self, wanted: DataType) -> bool {
        self == wanted
            || matches!(
                (self, wanted),
                (DataType::Int32, DataType::Int64) | (DataType::Float32, DataType::Float64)
            )
    }

    /// Bytes a value takes, or `None` where values differ in length.
    pub fn fixed_width(self) -> Option<usize> {
        match self {
            DataType::Boolean => Some(1),
            DataType::Int32 | DataType::Float32 | DataType::Date => Some(4),
            DataType::Int64 | DataType::Float64 | DataType::Timestamp => Some(8),
            DataType::Utf8 | DataType::Binary => None,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A type name that is none of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown type `{found}`: expected one of boolean, int32, int64, float32, float64, timestamp, date, utf8, binary (with `?` behind it if null is allowed)"
)]
pub struct ParseTypeError {
    /// What stood there.
    pub found: String,
}

impl FromStr for DataType {
    type Err = ParseTypeError;

    fn from_str(text: &str) -> Result<Self, ParseTypeError> {
        let found = DataType::ALL.into_iter().find(|t| t.name() == text);
        found.ok_or_else(|| ParseTypeError { found: text.to_owned() })
    }
}

/// A named column of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The column's name, unique in its schema.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether a row may have no value in it.
    pub nullable: bool,
}

impl Field {
    /// A column that has a value in every row.
    pub fn new(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, nullable: false }
    }

    /// A column in which values may be missing.
    pub fn nullable(name: impl Into<String>, data_type: DataType) -> Self {
        Self { name: name.into(), data_type, nullable: true }
    }

    /// Reads a type as job files write it: `float64` or `float64?`.
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self, ParseTypeError> {
        let (text, nullable) = text.strip_suffix('?').map_or((text, false), |t| (t, true));
        Ok(Self { name: name.into(), data_type: text.parse()?, nullable })
    }

    /// The type as job files write it.
    pub fn type_text(&self) -> String {
        format!("{}{}", self.data_type, if self.nullable { "?" } else { "" })
    }

    /// The same column in Arrow.
    pub fn to_arrow(&self) -> ArrowField {
        ArrowField::new(&self.name, self.data_type.to_arrow(), self.nullable)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.type_text())
    }
}

/// The columns of a stream, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    fields: Arc<[Field]>,
    arrow: Arc<ArrowSchema>,
}

impl Schema {
    /// A schema of these columns. Names have to be unique, which whoever reads them from a user checks.
    pub fn new(fields: impl Into<Arc<[Field]>>) -> Self {
        let fields = fields.into();
        let arrow = ArrowSchema::new(fields.iter().map(Field::to_arrow).collect::<Vec<_>>());
        Self { fields, arrow: Arc::new(arrow) }
    }

    /// A schema without columns.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// The columns in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The position of a column.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|f| f.name == name)
    }

    /// The same columns in Arrow.
    pub fn arrow(&self) -> &Arc<ArrowSchema> {
        &self.arrow
    }

    /// The columns as stored state names them.
    pub fn columns(&self) -> Vec<Column> {
        let column = |field: &Field| Column {
            name: field.name.clone(),
            data_type: field.data_type,
            nullable: field.nullable,
        };
        self.fields.iter().map(column).collect()
    }

    /// The names in order, for messages.
    pub fn names(&self) -> String {
        self.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_as_they_are_written() {
        for data_type in DataType::ALL {
            assert_eq!(data_type.name().parse(), Ok(data_type));
            assert_eq!(DataType::from_arrow(&data_type.to_arrow()), Some(data_type));
        }
        let field = Field::parse("delay", "float64?").expect("known type");
        assert_eq!(field, Field::nullable("delay", DataType::Float64));
        assert_eq!(field.to_string(), "delay float64?");
        assert_eq!(Field::parse("x", "int").expect_err("unknown").found, "int");
    }

    #[test]
    fn only_lossless_widening() {
        assert!(DataType::Int32.widens_to(DataType::Int64));
        assert!(DataType::Float32.widens_to(DataType::Float64));
        assert!(!DataType::Int64.widens_to(DataType::Int32));
        assert!(!DataType::Int64.widens_to(DataType::Float64));
    }
}

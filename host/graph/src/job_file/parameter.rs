//! `parameters` of operators: values as the job file has them, for functions that take text.

use millstream_types::DataType;

use crate::{
    document::{Spanned, Text, Value},
    table_reader::TableReader,
};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Text { text: String, substituted: bool },
    Integer(i64),
    Float(f64),
    Boolean(bool),
}

impl Scalar {
    /// The text in which the value travels, if it is one of this type.
    pub(crate) fn to_text(&self, data_type: DataType) -> Option<String> {
        match (data_type, self) {
            (DataType::Utf8 | DataType::Binary, Scalar::Text { text, .. }) => Some(text.clone()),
            (_, Scalar::Text { text, substituted: true }) => {
                is_of_type(text.trim(), data_type).then(|| text.trim().to_owned())
            }
            (DataType::Boolean, Scalar::Boolean(boolean)) => Some(boolean.to_string()),
            (DataType::Int32 | DataType::Date, Scalar::Integer(n)) => {
                i32::try_from(*n).ok().map(|n| n.to_string())
            }
            (DataType::Int64 | DataType::Timestamp, Scalar::Integer(n)) => Some(n.to_string()),
            (DataType::Float32 | DataType::Float64, Scalar::Integer(n)) => Some(n.to_string()),
            (DataType::Float32 | DataType::Float64, Scalar::Float(n)) => Some(n.to_string()),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Scalar::Text { text, .. } => format!("the string \"{text}\""),
            Scalar::Integer(n) => format!("the integer {n}"),
            Scalar::Float(n) => format!("the number {n}"),
            Scalar::Boolean(b) => format!("the boolean {b}"),
        }
    }
}

/// What a value of a type looks like in a job file.
pub(crate) fn expected(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "true or false",
        DataType::Int32 => "an integer of 32 bits",
        DataType::Int64 => "an integer",
        DataType::Float32 | DataType::Float64 => "a number",
        DataType::Timestamp => "an integer, milliseconds since the epoch",
        DataType::Date => "an integer, days since the epoch",
        DataType::Utf8 | DataType::Binary => "a string",
    }
}

/// The values by name; a value that could not be read is none.
pub(crate) fn read(table: &mut TableReader<'_>) -> Vec<(Spanned<String>, Option<Spanned<Scalar>>)> {
    let entries = table.free_table("parameters").unwrap_or_default();
    let value = |entry: &crate::document::Entry| {
        let scalar = match &entry.node.value {
            Value::String(Text { text, substituted }) => {
                Scalar::Text { text: text.clone(), substituted: *substituted }
            }
            Value::Integer(n) => Scalar::Integer(*n),
            Value::Float(n) => Scalar::Float(*n),
            Value::Boolean(b) => Scalar::Boolean(*b),
            Value::Date(text) => Scalar::Text { text: text.clone(), substituted: false },
            Value::Array(_) | Value::Table(_) | Value::Broken => {
                table.wrong_type(&entry.key, &entry.node, "a string, a number, true or false");
                return None;
            }
        };
        Some(Spanned::new(scalar, &entry.node.span))
    };
    let named = |e: &crate::document::Entry| (Spanned::new(e.key.clone(), &e.key_span), value(e));
    entries.iter().map(named).collect()
}

fn is_of_type(text: &str, data_type: DataType) -> bool {
    match data_type {
        DataType::Boolean => text.parse::<bool>().is_ok(),
        DataType::Int32 | DataType::Date => text.parse::<i32>().is_ok(),
        DataType::Int64 | DataType::Timestamp => text.parse::<i64>().is_ok(),
        DataType::Float32 | DataType::Float64 => text.parse::<f64>().is_ok(),
        DataType::Utf8 | DataType::Binary => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_the_parameters_type() {
        let text = |text: &str, substituted| Scalar::Text { text: text.to_owned(), substituted };
        assert_eq!(Scalar::Integer(7).to_text(DataType::Float64), Some("7".to_owned()));
        assert_eq!(Scalar::Integer(1 << 40).to_text(DataType::Int32), None);
        assert_eq!(Scalar::Float(0.5).to_text(DataType::Int64), None);
        assert_eq!(text("7", false).to_text(DataType::Int64), None, "a string is no number");
        assert_eq!(text(" 7", true).to_text(DataType::Int64), Some("7".to_owned()), "but a variable may be");
        assert_eq!(text("x", true).to_text(DataType::Int64), None);
        assert_eq!(Scalar::Boolean(true).to_text(DataType::Utf8), None);
    }
}

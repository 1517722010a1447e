//! Single rows as JSON, in the form that files of JSON lines have them: for fixtures and other tools.

use std::string::FromUtf8Error;

use arrow_json::LineDelimitedWriter;
use arrow_schema::ArrowError;
use millstream_types::{Batch, BatchError, NO_TIME, Schema};

use crate::{
    file::{JsonDecoder, RecordDecoder, parse_timestamp},
    text::printable,
};

/// A row that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JsonRowError {
    /// The text is no row of the schema.
    #[error("{0}")]
    Value(String),
    /// The columns do not fit.
    #[error(transparent)]
    Columns(#[from] BatchError),
    /// Arrow refuses.
    #[error("rows cannot be written as JSON: {0}")]
    Arrow(#[from] ArrowError),
    /// The writer made something else than text.
    #[error("rows cannot be written as JSON: {0}")]
    Text(#[from] FromUtf8Error),
}

/// The rows of `lines`, each a JSON object on one line, without event times. Keys that are no column are left out; the
/// error is about the first line that is no row, whose position comes with it.
pub fn read_json_rows(schema: &Schema, lines: &[&str]) -> Result<Batch, (usize, JsonRowError)> {
    let mut decoder = JsonDecoder::new(schema);
    let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    let value = |line, reason| (line, JsonRowError::Value(reason));
    let decoded = decoder.decode(text.as_bytes(), lines.len()).map_err(|reason| {
        // What breaks the text as a whole is found by reading its lines by themselves.
        let mut alone = |line: &str| decoder.decode(format!("{line}\n").as_bytes(), 1).err();
        let first = lines.iter().enumerate().find_map(|(at, line)| Some((at, alone(line)?)));
        let (line, reason) = first.unwrap_or((0, reason));
        value(line, reason)
    })?;
    if let Some((line, reason)) = decoded.bad.into_iter().next() {
        return Err(value(line, reason));
    }
    let times = vec![NO_TIME; decoded.rows].into();
    Batch::new(schema, decoded.columns, times).map_err(|error| (0, error.into()))
}

/// The rows of a batch, each a JSON object on one line; a column without a value is left out.
pub fn write_json_rows(batch: &Batch) -> Result<Vec<String>, JsonRowError> {
    let mut writer = LineDelimitedWriter::new(Vec::new());
    writer.write(&printable(batch.records())?)?;
    writer.finish()?;
    Ok(String::from_utf8(writer.into_inner())?.lines().map(str::to_owned).collect())
}

/// A time as text has it: RFC 3339, or milliseconds since 1970 in digits; the years 1 to 9999.
pub fn read_timestamp(text: &str) -> Option<i64> {
    parse_timestamp(text)
}

#[cfg(test)]
mod tests {
    use millstream_types::{DataType, Field};

    use super::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("t", DataType::Timestamp), Field::nullable("x", DataType::Int64)])
    }

    #[test]
    fn rows_are_written_as_they_are_read() {
        let lines = [r#"{"t":"2013-01-01T10:00:00Z","x":1}"#, r#"{"t":"2013-01-01T11:00:00Z"}"#];
        let batch = read_json_rows(&schema(), &lines).expect("two rows");
        assert_eq!(write_json_rows(&batch).expect("written"), lines);
        assert_eq!(write_json_rows(&batch.slice(0, 0)).expect("written"), Vec::<String>::new());
    }

    #[test]
    fn the_first_line_that_is_no_row_is_named() {
        let good = r#"{"t":0}"#;
        let (line, error) =
            read_json_rows(&schema(), &[good, r#"{"t":0,"x":"one"}"#]).expect_err("no number");
        assert_eq!((line, error.to_string().as_str()), (1, "column `x`: found `\"one\"`, expected int64"));
        let (line, error) = read_json_rows(&schema(), &[good, good, "[1]"]).expect_err("no object");
        assert_eq!(line, 2);
        assert!(error.to_string().contains("expected an object"), "{error}");
    }
}

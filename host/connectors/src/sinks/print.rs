//! The `print` sink: rows as JSON lines on standard output.

use std::io::{self, Write};

use arrow_json::LineDelimitedWriter;
use async_trait::async_trait;
use millstream_operator::{ConnectorError, OperatorContext, Sink, SinkWriter};
use millstream_types::{Batch, Schema};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    options::{OptionsError, parse},
    text::printable,
};

/// Prints rows; with `1> ` and so on before them where there are several subtasks.
pub(crate) struct PrintSink;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintOptions {}

impl PrintSink {
    pub(crate) fn new(options: &Value) -> Result<Self, OptionsError> {
        parse::<PrintOptions>("print", options).map(|PrintOptions {}| Self)
    }
}

impl Sink for PrintSink {
    fn accepts(&self, _schema: &Schema) -> Result<(), String> {
        Ok(())
    }

    fn writer(&self, _schema: &Schema, ctx: &OperatorContext) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let prefix = if ctx.parallelism > 1 { format!("{}> ", ctx.subtask) } else { String::new() };
        Ok(Box::new(PrintWriter { prefix, output: io::stdout() }))
    }
}

struct PrintWriter<W> {
    prefix: String,
    output: W,
}

#[async_trait(?Send)]
impl<W: Write> SinkWriter for PrintWriter<W> {
    /// One write a batch, so that lines of different subtasks do not mix.
    async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError> {
        let lines = lines(&batch, &self.prefix)
            .map_err(|e| ConnectorError::external(format!("rows cannot be printed: {e}"), e))?;
        self.output
            .write_all(&lines)
            .and_then(|()| self.output.flush())
            .map_err(|e| ConnectorError::external(format!("standard output cannot be written: {e}"), e))
    }

    async fn finish(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}

/// The rows of a batch, each on a line behind the prefix.
fn lines(batch: &Batch, prefix: &str) -> Result<Vec<u8>, arrow_schema::ArrowError> {
    let mut writer = LineDelimitedWriter::new(Vec::new());
    writer.write(&printable(batch.records())?)?;
    writer.finish()?;
    let text = writer.into_inner();
    if prefix.is_empty() {
        return Ok(text);
    }
    // JSON has no line break within a value.
    Ok(text
        .split_inclusive(|b| *b == b'\n')
        .flat_map(|line| [prefix.as_bytes(), line])
        .flatten()
        .copied()
        .collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{RecordBatch, StringViewArray, TimestampMillisecondArray};

    use super::*;

    #[test]
    fn a_row_a_line() {
        let time = TimestampMillisecondArray::from(vec![Some(1_357_034_400_000), None]).with_timezone("UTC");
        let text = StringViewArray::from(vec!["a\nb", "c"]);
        let records = RecordBatch::try_from_iter([("t", Arc::new(time) as _), ("x", Arc::new(text) as _)])
            .expect("two columns");
        let batch = Batch::without_times(records);
        let text = |prefix| String::from_utf8(lines(&batch, prefix).expect("printed")).expect("text");
        assert_eq!(text(""), "{\"t\":\"2013-01-01T10:00:00Z\",\"x\":\"a\\nb\"}\n{\"x\":\"c\"}\n");
        assert_eq!(text("1> "), "1> {\"t\":\"2013-01-01T10:00:00Z\",\"x\":\"a\\nb\"}\n1> {\"x\":\"c\"}\n");
    }
}

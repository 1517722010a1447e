//! What comes to a sink, and what is expected there, as lines of a fixture in one form, so that they can be compared
//! and put into each other's place.

use millstream_connectors::{JsonRowError, read_json_rows, write_json_rows};
use millstream_types::{Batch, NO_TIME, Schema};
use serde_json::{Map, Value, json};

use super::{function_job::TIME_COLUMN, line::ExpectedRow, line::Time};

/// The form of the rows of one sink.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// How a fixture names the sink: by port, by name, or not at all.
    pub(super) port: Option<String>,
    pub(super) sink: Option<String>,
    /// Whether the sink gets the rows that a function refuses.
    pub(super) rejected: bool,
    /// Whether event times belong to it.
    pub(super) times: bool,
    /// The columns of the rows, each of which a row may lack.
    schema: Schema,
    /// Positions of those columns in batches.
    columns: Vec<usize>,
}

impl Form {
    /// Rows of `schema`. The column with the times of a fixture's rows is none of theirs.
    pub(super) fn new(schema: &Schema) -> Self {
        let visible = schema.fields().iter().enumerate().filter(|(_, field)| field.name != TIME_COLUMN);
        let (columns, fields): (Vec<_>, Vec<_>) = visible.map(|(at, field)| (at, field.clone())).unzip();
        let nullable = fields.into_iter().map(|field| millstream_types::Field { nullable: true, ..field });
        let schema = Schema::new(nullable.collect::<Vec<_>>());
        Self { port: None, sink: None, rejected: false, times: false, schema, columns }
    }

    /// Rows that have come, a line each.
    pub(super) fn found(&self, batch: &Batch) -> Result<Vec<String>, JsonRowError> {
        let columns = self.columns.iter().map(|&column| batch.column(column).clone()).collect();
        let visible = Batch::new(&self.schema, columns, batch.times().clone())?;
        let rows = write_json_rows(&visible)?.into_iter().zip(batch.times().iter());
        Ok(rows
            .map(|(row, time)| if self.rejected { rejected(&row) } else { self.line(row_of(&row), *time) })
            .collect())
    }

    /// An expected row in the form of those that come; as it stands where it has other columns or types, since then
    /// none can be like it.
    pub(super) fn expected(&self, row: &ExpectedRow) -> String {
        let known = row.expect.keys().all(|name| self.schema.index_of(name).is_some());
        let text = Value::Object(row.expect.clone()).to_string();
        let batch = if known { read_json_rows(&self.schema, &[&text]).ok() } else { None };
        let written =
            batch.and_then(|batch| write_json_rows(&batch).ok()).and_then(|rows| rows.into_iter().next());
        let time = row.time.as_ref().and_then(Time::of).map_or(NO_TIME, |time| time.0);
        self.line(row_of(&written.unwrap_or(text)), time)
    }

    fn line(&self, expect: Map<String, Value>, time: i64) -> String {
        let time = self.times.then(|| time_text(time));
        let line = ExpectedRow { expect, port: self.port.clone(), sink: self.sink.clone(), time };
        serde_json::to_string(&line).unwrap_or_default()
    }
}

fn row_of(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The line of a row that was refused: of its dead letter the reason counts.
fn rejected(dead_letter: &str) -> String {
    json!({ "expect-rejected": row_of(dead_letter).get("reason") }).to_string()
}

/// A time as fixtures have it; null for none.
fn time_text(time: i64) -> Value {
    if time == NO_TIME {
        return Value::Null;
    }
    let shown = arrow_array::temporal_conversions::timestamp_ms_to_datetime(time);
    shown.map_or(time.into(), |shown| format!("{}Z", shown.format("%Y-%m-%dT%H:%M:%S%.f")).into())
}

#[cfg(test)]
mod tests {
    use millstream_types::{DataType, Field};

    use super::*;

    fn form(times: bool) -> Form {
        let fields = [
            Field::new("at", DataType::Timestamp),
            Field::new(TIME_COLUMN, DataType::Timestamp),
            Field::new("x", DataType::Float64),
        ];
        Form { times, ..Form::new(&Schema::new(fields.to_vec())) }
    }

    fn expected(form: &Form, row: Value, time: Option<Value>) -> String {
        let expect = row.as_object().expect("an object").clone();
        form.expected(&ExpectedRow { expect, port: None, sink: None, time })
    }

    #[test]
    fn rows_compare_by_value_and_not_by_how_they_are_written() {
        let form = form(false);
        let schema = Schema::new(
            [("at", DataType::Timestamp), (TIME_COLUMN, DataType::Timestamp), ("x", DataType::Float64)]
                .map(|(name, data_type)| Field::new(name, data_type))
                .to_vec(),
        );
        let batch = read_json_rows(&schema, &[r#"{"at":1000,"@time":5,"x":2}"#]).expect("a row");
        let found = form.found(&batch).expect("it can be written");
        assert_eq!(found, [r#"{"expect":{"at":"1970-01-01T00:00:01Z","x":2.0}}"#]);
        assert_eq!(expected(&form, json!({"x": 2, "at": "1970-01-01T01:00:01+01:00"}), None), found[0]);
        assert_ne!(expected(&form, json!({"x": 3, "at": 1000}), None), found[0]);
        assert_ne!(expected(&form, json!({"x": 2, "at": 1000, "y": 1}), None), found[0]);
    }

    #[test]
    fn a_row_that_cannot_be_stays_as_it_stands() {
        assert_eq!(expected(&form(false), json!({"x": "two"}), None), r#"{"expect":{"x":"two"}}"#);
        assert_eq!(expected(&form(false), json!({"x": null}), None), r#"{"expect":{}}"#);
    }

    #[test]
    fn times_belong_to_it_where_they_are_asked_for() {
        let line = expected(&form(true), json!({"x": 1}), Some(1500.into()));
        assert_eq!(line, r#"{"expect":{"x":1.0},"time":"1970-01-01T00:00:01.500Z"}"#);
        assert_eq!(expected(&form(true), json!({"x": 1}), None), r#"{"expect":{"x":1.0},"time":null}"#);
    }
}

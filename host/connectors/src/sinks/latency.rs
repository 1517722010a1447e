//! The `latency` sink: how long the records of `bench-latency` took.

use arrow_array::cast::AsArray;
use async_trait::async_trait;
use millstream_operator::{ConnectorError, OperatorContext, Sink, SinkWriter};
use millstream_types::{Batch, DataType, Schema};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    clock::nanos,
    options::{OptionsError, TextDuration, parse},
    results::{Latencies, SinkResults},
};

/// Measures records that carry two times: bytes 8 to 15 when they were made, 16 to 23 when they were due.
pub(crate) struct LatencySink {
    options: LatencyOptions,
    results: SinkResults,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LatencyOptions {
    /// The column of bytes.
    #[serde(default = "default_column")]
    column: String,
    /// How long after the first record the measurement starts.
    warm_up: Option<TextDuration>,
    /// The name of the result.
    #[serde(default = "default_name")]
    name: String,
}

fn default_column() -> String {
    "record".to_owned()
}

fn default_name() -> String {
    "latency".to_owned()
}

impl LatencySink {
    pub(crate) fn new(options: &Value, results: &SinkResults) -> Result<Self, OptionsError> {
        Ok(Self { options: parse("latency", options)?, results: results.clone() })
    }

    fn column(&self, schema: &Schema) -> Result<usize, String> {
        let name = &self.options.column;
        let found = schema.index_of(name).filter(|i| schema.fields()[*i].data_type == DataType::Binary);
        found.ok_or_else(|| {
            format!("a column `{name}` of type binary is expected; the input has {}", schema.names())
        })
    }
}

impl Sink for LatencySink {
    fn accepts(&self, schema: &Schema) -> Result<(), String> {
        self.column(schema).map(drop)
    }

    fn writer(&self, schema: &Schema, _ctx: &OperatorContext) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(LatencyWriter {
            column: self.column(schema).map_err(ConnectorError::user)?,
            warm_up: self.options.warm_up.map_or(0, |time| time.0.as_nanos() as u64),
            name: self.options.name.clone(),
            results: self.results.clone(),
            from: None,
            found: Latencies::default(),
        }))
    }
}

struct LatencyWriter {
    column: usize,
    warm_up: u64,
    name: String,
    results: SinkResults,
    /// From when on records count.
    from: Option<u64>,
    found: Latencies,
}

#[async_trait(?Send)]
impl SinkWriter for LatencyWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError> {
        for record in batch.column(self.column).as_binary_view().iter().flatten() {
            let (Some(emitted), Some(due)) = (time(record, 8), time(record, 16)) else {
                let length = record.len();
                return Err(ConnectorError::user(format!(
                    "the latency sink found a record of {length} bytes, expected those of the generator's `bench-latency`, which have 100"
                )));
            };
            let now = nanos();
            if now >= *self.from.get_or_insert(now + self.warm_up) {
                self.found.from_emission.record(now.saturating_sub(emitted));
                self.found.from_schedule.record(now.saturating_sub(due));
            }
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), ConnectorError> {
        self.results.add_latencies(&self.name, &self.found);
        Ok(())
    }
}

fn time(record: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(record.get(at..at + 8)?.try_into().ok()?))
}

//! The `checksum` sink: a sum over the rows that does not depend on their order, as the benchmarks define it: of
//! `mix(fnv1a64(text))`, wrapping.

use async_trait::async_trait;
use millstream_operator::{ConnectorError, OperatorContext, Sink, SinkWriter};
use millstream_types::{Batch, Schema};
use serde::Deserialize;
use serde_json::Value;

use super::form::Form;
use crate::{
    mix::{fnv1a64, mix},
    options::{OptionsError, parse},
    results::{Checksum, SinkResults},
};

/// Adds rows up.
pub(crate) struct ChecksumSink {
    options: ChecksumOptions,
    results: SinkResults,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ChecksumOptions {
    /// The text of a row, columns in braces. Without it a single column's value, or `({a},{b},{c})` for several.
    form: Option<String>,
    /// The name of the result.
    #[serde(default = "default_name")]
    name: String,
}

fn default_name() -> String {
    "checksum".to_owned()
}

impl ChecksumSink {
    pub(crate) fn new(options: &Value, results: &SinkResults) -> Result<Self, OptionsError> {
        Ok(Self { options: parse("checksum", options)?, results: results.clone() })
    }

    fn form(&self, schema: &Schema) -> Result<Form, String> {
        self.options
            .form
            .as_ref()
            .map_or_else(|| Ok(Form::plain(schema)), |template| Form::parse(template, schema))
    }
}

impl Sink for ChecksumSink {
    fn accepts(&self, schema: &Schema) -> Result<(), String> {
        self.form(schema).map(drop)
    }

    fn writer(&self, schema: &Schema, _ctx: &OperatorContext) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(ChecksumWriter {
            form: self.form(schema).map_err(ConnectorError::user)?,
            name: self.options.name.clone(),
            results: self.results.clone(),
            found: Checksum::default(),
            text: Vec::new(),
        }))
    }
}

struct ChecksumWriter {
    form: Form,
    name: String,
    results: SinkResults,
    found: Checksum,
    text: Vec<u8>,
}

#[async_trait(?Send)]
impl SinkWriter for ChecksumWriter {
    async fn write(&mut self, batch: Batch) -> Result<(), ConnectorError> {
        for row in 0..batch.rows() {
            self.text.clear();
            self.form.write(batch.records(), row, &mut self.text);
            self.found.sum = self.found.sum.wrapping_add(mix(fnv1a64(&self.text)));
        }
        self.found.rows += batch.rows() as u64;
        Ok(())
    }

    async fn prepare(&mut self, _checkpoint: u64) -> Result<Vec<Vec<u8>>, ConnectorError> {
        Ok(vec![[self.found.rows.to_le_bytes(), self.found.sum.to_le_bytes()].concat()])
    }

    async fn restore(&mut self, prepared: Vec<Vec<u8>>) -> Result<(), ConnectorError> {
        for bytes in prepared {
            let number =
                |at: usize| bytes.get(at..).and_then(|b| b.first_chunk()).map(|b| u64::from_le_bytes(*b));
            let (Some(rows), Some(sum)) = (number(0), number(8)) else {
                let problem = "the snapshot was not written by a checksum sink";
                return Err(ConnectorError::user(problem));
            };
            self.found.rows += rows;
            self.found.sum = self.found.sum.wrapping_add(sum);
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), ConnectorError> {
        let Checksum { rows, sum } = self.found;
        tracing::info!(name = self.name, rows, sum = format!("{sum:x}"), "checksum of a subtask's rows");
        self.results.add_checksum(&self.name, self.found);
        Ok(())
    }
}

//! What a job file says of generated records.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Kind, fields::Fields, nexmark::Nexmark, payload::Payload, pooled, pooled::Pooled, triples::Triples,
};
use crate::options::{OptionsError, parse};

/// Options of the `generator` source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct GeneratorOptions {
    /// A kind of the benchmarks. Either this or `fields`.
    kind: Option<KindName>,
    /// Columns with the distributions of their values.
    fields: Option<Map<String, Value>>,
    /// How many records all subtasks make; without it they go on until they are stopped.
    pub(crate) records: Option<u64>,
    /// How long they go on, in seconds of wall time.
    pub(crate) seconds: Option<f64>,
    /// Records a second of all subtasks; without it as fast as they are taken.
    pub(crate) rate: Option<f64>,
    /// Other records for another seed; for `fields`.
    #[serde(default)]
    seed: u64,
    /// Different keys, for the kinds that have keys.
    keys: Option<u64>,
    /// Different words, for `bench-wordcount`.
    vocabulary: Option<u64>,
    /// Records to a second of event time.
    events_per_second: Option<u64>,
}

/// Kinds of the benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum KindName {
    #[serde(rename = "bench-map")]
    Map,
    #[serde(rename = "bench-shuffle")]
    Shuffle,
    #[serde(rename = "bench-wordcount")]
    Wordcount,
    #[serde(rename = "bench-window")]
    Window,
    #[serde(rename = "bench-process")]
    Process,
    #[serde(rename = "bench-latency")]
    Latency,
    #[serde(rename = "bench-nexmark", alias = "nexmark")]
    Nexmark,
}

impl GeneratorOptions {
    pub(crate) fn parse(options: &Value) -> Result<Self, OptionsError> {
        let parsed: Self = parse("generator", options)?;
        let positive = |key: &str, value: Option<f64>| match value {
            Some(value) if !(value.is_finite() && value > 0.0) => {
                Err(OptionsError::at(key, format!("found `{value}`, expected a number above 0")))
            }
            _ => Ok(()),
        };
        positive("seconds", parsed.seconds)?;
        positive("rate", parsed.rate)?;
        within("keys", parsed.keys, 1, 1 << 32)?;
        within("events-per-second", parsed.events_per_second, 1, 1_000_000_000)?;
        within("vocabulary", parsed.vocabulary, *pooled::VOCABULARY.start(), *pooled::VOCABULARY.end())?;
        Ok(parsed)
    }

    /// The kind of records.
    pub(crate) fn make_kind(&self) -> Result<Box<dyn Kind>, OptionsError> {
        let kind = match (self.kind, &self.fields) {
            (Some(kind), None) => kind,
            (None, Some(fields)) => return Ok(Box::new(Fields::new(fields, self.seed)?)),
            (Some(_), Some(_)) => {
                return Err(OptionsError::at(
                    "fields",
                    "a `kind` has its own columns: give `kind` or `fields`, not both",
                ));
            }
            (None, None) => {
                let message = "what is to be generated? Give `fields = { name = { kind = \"sequence\" } }` or a `kind` such as \"bench-nexmark\"";
                return Err(OptionsError::at("fields", message));
            }
        };
        let events_per_second = self.events_per_second.unwrap_or(100_000);
        let keys = |usual| self.keys.unwrap_or(usual);
        Ok(match kind {
            KindName::Map => Box::new(Pooled::map()),
            KindName::Wordcount => Box::new(Pooled::wordcount(self.vocabulary.unwrap_or(10_000))),
            KindName::Shuffle => Box::new(Payload::new(keys(1_000_000), false)),
            KindName::Latency => Box::new(Payload::new(keys(1_000_000), true)),
            KindName::Window => Box::new(Triples::new(keys(100_000), events_per_second)),
            KindName::Process => Box::new(Triples::new(keys(1_000_000), events_per_second)),
            KindName::Nexmark => Box::new(Nexmark::new(events_per_second)),
        })
    }
}

fn within(key: &str, value: Option<u64>, least: u64, most: u64) -> Result<(), OptionsError> {
    match value {
        Some(value) if !(least..=most).contains(&value) => {
            Err(OptionsError::at(key, format!("found `{value}`, expected a number from {least} to {most}")))
        }
        _ => Ok(()),
    }
}

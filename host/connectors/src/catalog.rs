//! The connectors there are, by the names that job files use.

use std::{path::Path, sync::Arc};

use millstream_operator::{Sink, Source};
use millstream_types::Schema;
use serde_json::Value;

use crate::{
    file::{FileSink, FileSource},
    generator::GeneratorSource,
    options::{OptionsError, suggestion},
    results::SinkResults,
    sinks::{BlackholeSink, ChecksumSink, LatencySink, PrintSink},
};

/// Makes sources and sinks out of what a job file says of them.
#[derive(Clone, Debug)]
pub struct Connectors {
    results: SinkResults,
}

const SOURCES: [&str; 2] = ["file", "generator"];
const SINKS: [&str; 5] = ["file", "print", "blackhole", "checksum", "latency"];

impl Connectors {
    /// Those that come with Millstream.
    pub fn builtin() -> Self {
        Self { results: SinkResults::default() }
    }

    /// The connectors that can be sources.
    pub fn source_names(&self) -> &'static [&'static str] {
        &SOURCES
    }

    /// The connectors that can be sinks.
    pub fn sink_names(&self) -> &'static [&'static str] {
        &SINKS
    }

    /// A source. `options` is a table of the connector's own options, without those that every source has;
    /// `schema` is what the job file says of its columns; relative paths start at `base`.
    pub fn source(
        &self,
        connector: &str,
        options: &Value,
        schema: Option<Schema>,
        base: &Path,
    ) -> Result<Arc<dyn Source>, OptionsError> {
        Ok(match connector {
            "file" => Arc::new(FileSource::new(options, schema, base)?),
            "generator" => Arc::new(GeneratorSource::new(options, schema)?),
            _ => return Err(unknown("source", connector, &SOURCES)),
        })
    }

    /// A sink. `options` is a table of the connector's own options; relative paths start at `base`.
    pub fn sink(&self, connector: &str, options: &Value, base: &Path) -> Result<Arc<dyn Sink>, OptionsError> {
        Ok(match connector {
            "file" => Arc::new(FileSink::new(options, base)?),
            "print" => Arc::new(PrintSink::new(options)?),
            "blackhole" => Arc::new(BlackholeSink::new(options)?),
            "checksum" => Arc::new(ChecksumSink::new(options, &self.results)?),
            "latency" => Arc::new(LatencySink::new(options, &self.results)?),
            _ => return Err(unknown("sink", connector, &SINKS)),
        })
    }

    /// What the sinks made here have found out, as far as they have finished.
    pub fn results(&self) -> &SinkResults {
        &self.results
    }
}

fn unknown(what: &str, connector: &str, known: &[&str]) -> OptionsError {
    let suggestion = suggestion(connector, known.iter().copied());
    OptionsError::at("connector", format!("there is no {what} `{connector}`{suggestion}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_name_is_known_and_no_other() {
        let connectors = Connectors::builtin();
        let source = |name: &str| {
            connectors.source(name, &json!({}), None, Path::new("")).err().map(|e| e.to_string())
        };
        let sink =
            |name: &str| connectors.sink(name, &json!({"x": 1}), Path::new("")).err().map(|e| e.to_string());
        for name in SOURCES {
            assert!(!source(name).is_some_and(|message| message.contains("there is no source")), "{name}");
        }
        for name in SINKS {
            assert!(!sink(name).is_some_and(|message| message.contains("there is no sink")), "{name}");
        }
        assert_eq!(source("fil").as_deref(), Some("there is no source `fil`: did you mean `file`?"));
        assert_eq!(
            sink("kafka").as_deref(),
            Some("there is no sink `kafka`: known are file, print, blackhole, checksum, latency")
        );
    }
}

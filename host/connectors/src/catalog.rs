//! The connectors there are, by the names that job files use.

use std::{path::Path, sync::Arc};

use millstream_operator::{Sink, Source};
use millstream_types::Schema;
use serde_json::Value;

use crate::{
    file::{FileSink, FileSource},
    options::{OptionsError, suggestion},
};

/// Makes sources and sinks out of what a job file says of them.
#[derive(Clone, Copy, Debug)]
pub struct Connectors {
    sources: &'static [(&'static str, MakeSource)],
    sinks: &'static [(&'static str, MakeSink)],
}

type MakeSource = fn(&Value, Option<Schema>, &Path) -> Result<Arc<dyn Source>, OptionsError>;
type MakeSink = fn(&Value, &Path) -> Result<Arc<dyn Sink>, OptionsError>;

const SOURCES: &[(&str, MakeSource)] =
    &[("file", |options, schema, base| Ok(Arc::new(FileSource::new(options, schema, base)?)))];

const SINKS: &[(&str, MakeSink)] = &[("file", |options, base| Ok(Arc::new(FileSink::new(options, base)?)))];

impl Connectors {
    /// Those that come with Millstream.
    pub fn builtin() -> Self {
        Self { sources: SOURCES, sinks: SINKS }
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
        find(self.sources, "source", connector)?(options, schema, base)
    }

    /// A sink. `options` is a table of the connector's own options; relative paths start at `base`.
    pub fn sink(&self, connector: &str, options: &Value, base: &Path) -> Result<Arc<dyn Sink>, OptionsError> {
        find(self.sinks, "sink", connector)?(options, base)
    }
}

fn find<T: Copy>(known: &[(&str, T)], what: &str, connector: &str) -> Result<T, OptionsError> {
    let found = known.iter().find(|(name, _)| *name == connector);
    found.map(|(_, make)| *make).ok_or_else(|| {
        let suggestion = suggestion(connector, known.iter().map(|(name, _)| *name));
        OptionsError::at("connector", format!("there is no {what} `{connector}`{suggestion}"))
    })
}

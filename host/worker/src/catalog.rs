//! The connectors, as planning and building ask for them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_connectors::{Connectors, OptionsError, SinkResults};
use millstream_graph::{ConnectorCatalog, ConnectorProblem, Options};
use millstream_operator::{Sink, Source};
use millstream_types::Schema;
use serde_json::Value;

/// The built-in connectors for a job file in a folder, from which relative paths start.
#[derive(Clone, Debug)]
pub struct Catalog {
    connectors: Connectors,
    folder: PathBuf,
}

impl Catalog {
    /// The connectors for a job file in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { connectors: Connectors::builtin(), folder: folder.into() }
    }

    /// What sinks made here have found out, as far as they have finished.
    pub fn results(&self) -> &SinkResults {
        self.connectors.results()
    }

    pub(crate) fn source(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<Arc<dyn Source>, OptionsError> {
        self.connectors.source(connector, &Value::Object(options.clone()), schema.cloned(), self.folder())
    }

    pub(crate) fn sink(&self, connector: &str, options: &Options) -> Result<Arc<dyn Sink>, OptionsError> {
        self.connectors.sink(connector, &Value::Object(options.clone()), self.folder())
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

impl ConnectorCatalog for Catalog {
    fn sources(&self) -> Vec<&str> {
        self.connectors.source_names().to_vec()
    }

    fn sinks(&self) -> Vec<&str> {
        self.connectors.sink_names().to_vec()
    }

    fn source_outputs(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<Vec<(String, Schema)>, Vec<ConnectorProblem>> {
        self.source(connector, options, schema).map(|source| source.outputs()).map_err(problem)
    }

    fn sink_accepts(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<(), Vec<ConnectorProblem>> {
        let sink = self.sink(connector, options).map_err(problem)?;
        match schema.map(|schema| sink.accepts(schema)) {
            Some(Err(reason)) => Err(vec![ConnectorProblem::general(reason)]),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

fn problem(error: OptionsError) -> Vec<ConnectorProblem> {
    vec![ConnectorProblem { key: error.key, message: error.message, help: None }]
}

//! What planning asks of its surroundings: what is in a module, and what a connector makes of its options. Both are
//! passed in, so that a plan can be made without a disk or a sandbox.

use std::{path::Path, sync::Arc};

use millstream_types::{Manifest, Schema};

/// A connector's options as the job file has them, in its order. A TOML date is its text.
pub type Options = serde_json::Map<String, serde_json::Value>;

/// Finds modules.
pub trait ModuleResolver {
    /// The manifest of the module at `path`, which is relative to the folder of the job file if that was. The error
    /// says what was found and what was expected; the plan adds where it was asked for.
    fn resolve(&self, path: &Path) -> Result<Arc<Manifest>, String>;

    /// The same for the module that the job file calls `name`, for whoever has modules by name.
    fn resolve_named(&self, _name: &str, path: &Path) -> Result<Arc<Manifest>, String> {
        self.resolve(path)
    }
}

impl<F: Fn(&Path) -> Result<Arc<Manifest>, String>> ModuleResolver for F {
    fn resolve(&self, path: &Path) -> Result<Arc<Manifest>, String> {
        self(path)
    }
}

/// Knows the connectors.
pub trait ConnectorCatalog {
    /// The connectors that can be sources, for messages.
    fn sources(&self) -> Vec<&str>;

    /// The connectors that can be sinks, for messages.
    fn sinks(&self) -> Vec<&str>;

    /// The output ports of a source with these options and, if the job file has one, this schema: name and columns,
    /// the main port first. `connector` is one of [`ConnectorCatalog::sources`].
    fn source_outputs(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<Vec<(String, Schema)>, Vec<ConnectorProblem>>;

    /// Whether a sink with these options takes rows of `schema`, which is unknown where its input has errors of its
    /// own. `connector` is one of [`ConnectorCatalog::sinks`].
    fn sink_accepts(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<(), Vec<ConnectorProblem>>;
}

/// Something wrong in a connector's options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectorProblem {
    /// The option, with dots for nested ones, such as `format.csv.null`; none if one is missing or none is to blame.
    pub key: Option<String>,
    /// What was found and what was expected.
    pub message: String,
    /// What to do, if that is not plain.
    pub help: Option<String>,
}

impl ConnectorProblem {
    /// A problem with an option.
    pub fn at(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: Some(key.into()), message: message.into(), help: None }
    }

    /// A problem that no one option has.
    pub fn general(message: impl Into<String>) -> Self {
        Self { key: None, message: message.into(), help: None }
    }
}

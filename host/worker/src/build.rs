//! Builds subtasks: from the nodes of a plan to operators, gates and outgoing edges.
//!
//! What all subtasks of a node share (compiled functions, configured connectors) is made once, in a [`Blueprint`].
//! The rest is made on the thread that runs it.

mod alignment;
mod folders;
mod function;
mod state;
mod subtask;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_connectors::OptionsError;
use millstream_graph::{LogicalNode, NodeBody, NodeIndex, Plan};
use millstream_operator::{FunctionFactory, Sink, Source};
use millstream_operators::AlignmentGroup;

use crate::{Catalog, Modules, StartError};

pub(crate) use state::StateBackend;
pub(crate) use subtask::SubtaskBuilder;

/// A node that cannot be built, though its plan was checked.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The connector refuses what it accepted before.
    #[error("`{node}`: {message}")]
    Connector {
        /// The node's name in the job file.
        node: String,
        /// What the connector says.
        message: String,
    },
    /// Two sinks would take each other's rows away.
    #[error("the sinks `{first}` and `{second}` both write into {}: give each a folder of its own", folder.display())]
    SharedFolder {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// Their folder.
        folder: PathBuf,
    },
    /// A sink would take the input away.
    #[error("the source `{source_node}` reads from {}, into which the sink `{sink}` writes: give the sink another folder", folder.display())]
    ReadsOwnOutput {
        /// The source.
        source_node: String,
        /// The sink.
        sink: String,
        /// The sink's folder.
        folder: PathBuf,
    },
    /// There is no place for state on disk.
    #[error("there is no place for state in {}", dir.display())]
    StateFolder {
        /// Where it was to be.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What the subtasks of a job share.
pub(crate) struct Blueprint {
    parts: Vec<Part>,
    state: StateBackend,
}

/// What the subtasks of a node share.
enum Part {
    Source(Arc<dyn Source>, Option<AlignmentGroup>),
    Function(Arc<dyn FunctionFactory>),
    Sink(Arc<dyn Sink>),
    Plain,
}

impl Blueprint {
    /// What a job needs; state on disk goes into a folder in `state_dir`.
    pub(crate) fn new(
        plan: &Plan,
        modules: &Modules,
        catalog: &Catalog,
        state_dir: &Path,
    ) -> Result<Self, StartError> {
        let mut aligned = alignment::groups(&plan.logical);
        let part = |(index, node): (NodeIndex, &LogicalNode)| -> Result<Part, StartError> {
            let refused =
                |e: OptionsError| BuildError::Connector { node: node.name.clone(), message: e.to_string() };
            Ok(match &node.body {
                NodeBody::Source(s) => {
                    let source = catalog.source(&s.connector, &s.options, s.schema.as_ref());
                    let source = source.map_err(refused)?;
                    let alignment = match aligned.remove(&index) {
                        None => alignment::usual(s, &*source, node.parallelism),
                        declared => declared,
                    };
                    Part::Source(source, alignment)
                }
                NodeBody::Sink(s) => Part::Sink(catalog.sink(&s.connector, &s.options).map_err(refused)?),
                NodeBody::Function(f) => {
                    Part::Function(modules.function(&plan.logical.modules[f.module], f)?)
                }
                NodeBody::Union | NodeBody::Watermark(_) => Part::Plain,
            })
        };
        let parts = plan.logical.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        folders::check(plan, &parts)?;
        Ok(Self { parts, state: StateBackend::new(plan, state_dir)? })
    }

    /// The same without connectors, for a job whose sources and sinks are played by somebody else; state is in memory.
    pub(crate) fn of_functions(plan: &Plan, modules: &Modules) -> Result<Self, StartError> {
        let part = |node: &LogicalNode| match node.function() {
            Some(f) => Ok(Part::Function(modules.function(&plan.logical.modules[f.module], f)?)),
            None => Ok(Part::Plain),
        };
        let parts = plan.logical.nodes.iter().map(part).collect::<Result<_, StartError>>()?;
        Ok(Self { parts, state: StateBackend::Memory })
    }

    /// Where keyed state is kept.
    pub(crate) fn state(&self) -> &StateBackend {
        &self.state
    }

    /// The source of a node, if it is one.
    pub(crate) fn source(&self, node: NodeIndex) -> Option<&dyn Source> {
        match &self.parts[node.0] {
            Part::Source(source, _) => Some(&**source),
            _ => None,
        }
    }

    /// The sink of a node, if it is one.
    pub(crate) fn sink(&self, node: NodeIndex) -> Option<&dyn Sink> {
        match &self.parts[node.0] {
            Part::Sink(sink) => Some(&**sink),
            _ => None,
        }
    }

    /// The group in which the subtasks of a source are aligned, if they are.
    pub(crate) fn alignment(&self, node: NodeIndex) -> Option<&AlignmentGroup> {
        match &self.parts[node.0] {
            Part::Source(_, alignment) => alignment.as_ref(),
            _ => None,
        }
    }
}

//! Where the keyed state of a job's operators is kept.

use std::path::{Path, PathBuf};

use millstream_graph::{NodeBody, Plan, StateSpec};
use millstream_state::{CacheOptions, CachedBackend, KeyedContext};
use millstream_state_rocksdb::{RocksMemory, RocksStore, StateFolder};
use millstream_types::{FunctionKind, MaxParallelism, State};

use super::BuildError;

/// What the subtasks of a job share to keep their state.
pub(crate) enum StateBackend {
    Memory,
    RocksDb {
        folder: StateFolder,
        memory: RocksMemory,
        /// Memory for the cache of one subtask.
        cache: usize,
        max: MaxParallelism,
    },
}

impl StateBackend {
    /// What the job file asks for; state on disk goes into a folder in `dir`. The memory is divided evenly: half of it is
    /// for caches, one a subtask, and half for RocksDB, which has one for all.
    pub(super) fn new(plan: &Plan, dir: &Path) -> Result<Self, BuildError> {
        let instances = instances(plan);
        let StateSpec::RocksDb { memory, .. } = plan.logical.job.state else { return Ok(Self::Memory) };
        if instances == 0 {
            return Ok(Self::Memory);
        }
        let failed = |source| BuildError::StateFolder { dir: dir.to_owned(), source };
        let half = usize::try_from(memory).unwrap_or(usize::MAX) / 2;
        Ok(Self::RocksDb {
            folder: StateFolder::create(dir).map_err(failed)?,
            memory: RocksMemory::new(half, instances),
            cache: half / instances,
            max: plan.logical.job.max_parallelism,
        })
    }

    /// Whether state goes to disk where it does not fit into memory.
    pub(crate) fn is_on_disk(&self) -> bool {
        matches!(self, Self::RocksDb { .. })
    }

    /// A path for a folder that goes with the job, if it keeps state on disk.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Memory => None,
            Self::RocksDb { folder, .. } => Some(folder.next()),
        }
    }

    /// The state of one subtask of an operator that declares these states.
    pub(super) fn keyed(&self, states: &[State]) -> KeyedContext {
        match self {
            Self::Memory => KeyedContext::in_memory(states),
            Self::RocksDb { folder, memory, cache, max } => {
                let store = RocksStore::new(folder.next(), states, memory);
                let options = CacheOptions { max: *max, memory: *cache };
                KeyedContext::new(states, Box::new(CachedBackend::new(states, Box::new(store), options)))
            }
        }
    }
}

/// How many subtasks keep state by key.
fn instances(plan: &Plan) -> usize {
    let keyed = plan.logical.nodes.iter().filter(|node| match &node.body {
        NodeBody::Function(f) => f.declaration.kind == FunctionKind::Process,
        _ => false,
    });
    keyed.map(|node| node.parallelism as usize).sum()
}

//! Where the keyed state, the windows and the sessions of a job's operators are kept.

use std::path::{Path, PathBuf};

use millstream_graph::{FunctionNode, LogicalNode, NodeBody, Plan, StateSpec, Trigger};
use millstream_state::{CacheOptions, CachedBackend, KeyedContext, Overflow};
use millstream_state_rocksdb::{RocksMemory, RocksStore, StateFolder};
use millstream_types::{FunctionKind, MaxParallelism, State};

use super::BuildError;

/// What the subtasks of a job share to keep their state.
pub(crate) enum StateBackend {
    Memory,
    RocksDb {
        folder: StateFolder,
        memory: RocksMemory,
        /// Memory for one instance: the cache of a subtask's keyed state, its windows, or its sessions.
        cache: usize,
        max: MaxParallelism,
    },
}

impl StateBackend {
    /// What the job file asks for; state on disk goes into a folder in `dir`. The memory is divided evenly: half of it is
    /// for what is kept in memory, a part for each instance, and half for RocksDB, which has one for all.
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

    /// A place for what one subtask has in windows or sessions and cannot keep in memory; none if it keeps all there.
    pub(super) fn overflow(&self) -> Option<Overflow> {
        match self {
            Self::Memory => None,
            Self::RocksDb { folder, memory, cache, max } => {
                let store = RocksStore::new(folder.next(), &[], memory);
                Some(Overflow::new(Box::new(store), CacheOptions { max: *max, memory: *cache }))
            }
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

/// How many instances of state there are, each of one subtask.
fn instances(plan: &Plan) -> usize {
    let of_node = |node: &LogicalNode| match &node.body {
        NodeBody::Function(function) => of_function(function) * node.parallelism as usize,
        _ => 0,
    };
    plan.logical.nodes.iter().map(of_node).sum()
}

/// How many a subtask of a function has.
fn of_function(function: &FunctionNode) -> usize {
    match function.declaration.kind {
        FunctionKind::Map | FunctionKind::Async => 0,
        FunctionKind::Process => 1,
        FunctionKind::Aggregate | FunctionKind::Window => {
            let window = function.window.as_ref();
            // What a count trigger has counted is kept beside the windows.
            1 + usize::from(window.is_some_and(|window| matches!(window.trigger, Trigger::Count(_))))
        }
    }
}

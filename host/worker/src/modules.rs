//! The modules of a job: read, compiled once, asked for their manifests, and turned into functions.
//!
//! Those of a job that is restored from a savepoint alone come out of that, by name, whatever paths the job file has.

use std::{
    collections::HashMap,
    env, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use millstream_graph::{FunctionNode, Grant, LogicalModule, ModuleResolver};
use millstream_operator::{FunctionError, FunctionFactory};
use millstream_types::Manifest;
use millstream_wasm::{FunctionLimits, Module, WasmEngine};

/// The modules that job files name by path.
pub struct Modules {
    engine: Arc<WasmEngine>,
    /// Modules that are not read from disk, by their names in the job file.
    provided: HashMap<String, Arc<[u8]>>,
    compiled: Mutex<HashMap<PathBuf, Loaded>>,
}

/// A module that has been read.
#[derive(Clone)]
struct Loaded {
    module: Module,
    bytes: Arc<[u8]>,
}

impl Modules {
    /// Modules that `engine` runs.
    pub fn new(engine: Arc<WasmEngine>) -> Self {
        Self { engine, provided: HashMap::new(), compiled: Mutex::default() }
    }

    /// The same, but these modules have these bytes, by their names in the job file.
    #[must_use]
    pub fn with_provided(self, provided: HashMap<String, Arc<[u8]>>) -> Self {
        Self { provided, ..self }
    }

    /// The module at a path, compiled at its first use.
    pub fn module(&self, path: &Path) -> Result<Module, FunctionError> {
        let read = || {
            let unreadable = |e| FunctionError::Module {
                module: path.display().to_string(),
                problem: format!("it cannot be read: {e}"),
            };
            fs::read(path).map(Arc::from).map_err(unreadable)
        };
        Ok(self.load(path, read)?.module)
    }

    /// The bytes of the module that a job file names so.
    pub fn bytes(&self, name: &str, path: &Path) -> Result<Arc<[u8]>, FunctionError> {
        match self.provided.get(name) {
            Some(bytes) => Ok(bytes.clone()),
            None => {
                self.module(path)?;
                let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(compiled[path].bytes.clone())
            }
        }
    }

    /// The module that a job file names so: one that was provided, or the one at the path.
    fn named(&self, name: &str, path: &Path) -> Result<Module, FunctionError> {
        match self.provided.get(name) {
            Some(bytes) => Ok(self.load(&Path::new(PROVIDED).join(name), || Ok(bytes.clone()))?.module),
            None => self.module(path),
        }
    }

    /// The module of a path, read and compiled at its first use.
    fn load(
        &self,
        path: &Path,
        read: impl FnOnce() -> Result<Arc<[u8]>, FunctionError>,
    ) -> Result<Loaded, FunctionError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = compiled.get(path) {
            return Ok(loaded.clone());
        }
        let bytes = read()?;
        let module = self.engine.compile(&path.display().to_string(), &bytes)?;
        let loaded = Loaded { module, bytes };
        compiled.insert(path.to_owned(), loaded.clone());
        Ok(loaded)
    }

    /// What makes the function of a node for each subtask.
    pub(crate) fn function(
        &self,
        module: &LogicalModule,
        plan: &FunctionNode,
    ) -> Result<Arc<dyn FunctionFactory>, FunctionError> {
        let module = self.named(&module.name, &module.path)?;
        let environment = environment(&plan.allow)
            .map_err(|problem| FunctionError::Module { module: module.name().to_owned(), problem })?;
        let factory = module.function(&plan.declaration.name, limits(plan))?;
        Ok(Arc::new(factory.with_environment(environment)))
    }
}

impl ModuleResolver for Modules {
    fn resolve(&self, path: &Path) -> Result<Arc<Manifest>, String> {
        self.module(path).and_then(|module| module.manifest()).map_err(problem)
    }

    fn resolve_named(&self, name: &str, path: &Path) -> Result<Arc<Manifest>, String> {
        self.named(name, path).and_then(|module| module.manifest()).map_err(problem)
    }
}

/// What is wrong with a module. The plan names it itself.
fn problem(error: FunctionError) -> String {
    match error {
        FunctionError::Module { problem, .. } => problem,
        other => other.to_string(),
    }
}

/// Where messages say that a module is that was not read from disk.
const PROVIDED: &str = "<savepoint>";

/// The job's budgets where it sets them, else the host's.
fn limits(plan: &FunctionNode) -> FunctionLimits {
    let default = FunctionLimits::default();
    let bytes =
        |set: Option<u64>, default: usize| set.map_or(default, |b| usize::try_from(b).unwrap_or(usize::MAX));
    FunctionLimits {
        memory_bytes: bytes(plan.limits.memory, default.memory_bytes),
        call_time: plan.limits.call_timeout.unwrap_or(default.call_time),
        call_bytes: bytes(plan.limits.output, default.call_bytes),
        recycle_memory_bytes: plan.limits.recycle_memory.map(|b| bytes(Some(b), usize::MAX)),
    }
}

/// The granted variables as they are where the function runs, which need not be where the job was planned.
fn environment(grants: &[Grant]) -> Result<Vec<(String, String)>, String> {
    let variable = |grant: &Grant| match grant {
        Grant::Environment(name) => match env::var(name) {
            Ok(value) => Ok((name.clone(), value)),
            Err(error) => {
                Err(format!("`{grant}` is granted, but here the variable `{name}` cannot be had: {error}"))
            }
        },
    };
    grants.iter().map(variable).collect()
}

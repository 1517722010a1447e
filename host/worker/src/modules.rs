//! The modules of a job: read, compiled once, asked for their manifests, and turned into functions.

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
    compiled: Mutex<HashMap<PathBuf, Module>>,
}

impl Modules {
    /// Modules that `engine` runs.
    pub fn new(engine: Arc<WasmEngine>) -> Self {
        Self { engine, compiled: Mutex::default() }
    }

    /// The module at a path, compiled at its first use.
    pub fn module(&self, path: &Path) -> Result<Module, FunctionError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = compiled.get(path) {
            return Ok(module.clone());
        }
        let name = path.display().to_string();
        let unreadable =
            |e| FunctionError::Module { module: name.clone(), problem: format!("it cannot be read: {e}") };
        let module = self.engine.compile(&name, &fs::read(path).map_err(unreadable)?)?;
        compiled.insert(path.to_owned(), module.clone());
        Ok(module)
    }

    /// What makes the function of a node for each subtask.
    pub(crate) fn function(
        &self,
        module: &LogicalModule,
        plan: &FunctionNode,
    ) -> Result<Arc<dyn FunctionFactory>, FunctionError> {
        let module = self.module(&module.path)?;
        let environment = environment(&plan.allow)
            .map_err(|problem| FunctionError::Module { module: module.name().to_owned(), problem })?;
        let factory = module.function(&plan.declaration.name, limits(plan))?;
        Ok(Arc::new(factory.with_environment(environment)))
    }
}

impl ModuleResolver for Modules {
    fn resolve(&self, path: &Path) -> Result<Arc<Manifest>, String> {
        // The plan names the module itself.
        let problem = |error| match error {
            FunctionError::Module { problem, .. } => problem,
            other => other.to_string(),
        };
        self.module(path).and_then(|module| module.manifest()).map_err(problem)
    }
}

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

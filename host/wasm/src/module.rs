//! A compiled module: checked against what this host calls and serves, ready to be instantiated.

use std::{fmt, sync::Arc};

use millstream_operator::FunctionError;
use millstream_types::{Function, Manifest};
use parking_lot::Mutex;
use wasmtime::component::InstancePre;

use crate::{
    engine::Shared, executor, factory::WasmFunctionFactory, imports::Guest, instance, interfaces::Interfaces,
    options::FunctionLimits,
};

/// A compiled module. Cloning shares it.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    name: String,
    interfaces: Interfaces,
    pre: InstancePre<Guest>,
    engine: Arc<Shared>,
    manifest: Mutex<Option<Arc<Manifest>>>,
}

impl Module {
    pub(crate) fn new(
        name: &str,
        interfaces: Interfaces,
        pre: InstancePre<Guest>,
        engine: Arc<Shared>,
    ) -> Self {
        let name = name.to_owned();
        Self(Arc::new(Inner { name, interfaces, pre, engine, manifest: Mutex::default() }))
    }

    /// What the module says that is in it: asked once, under the engine's default limits.
    ///
    /// # Errors
    /// If it traps or runs out of a budget, if what it says is no manifest, or if a function's kind has no export.
    pub fn manifest(&self) -> Result<Arc<Manifest>, FunctionError> {
        let mut known = self.0.manifest.lock();
        if let Some(manifest) = &*known {
            return Ok(manifest.clone());
        }
        let json = executor::block_on(instance::describe(self))?;
        let manifest = Manifest::parse(&json).map_err(|e| self.error(e.to_string()))?;
        for function in &manifest.functions {
            let missing = |e| {
                self.error(format!("function `{}` is of kind {:?}, but {e}", function.name, function.kind))
            };
            self.0.interfaces.for_kind(function.kind).map_err(missing)?;
        }
        Ok(known.insert(Arc::new(manifest)).clone())
    }

    /// Makes the function of this name for subtasks.
    ///
    /// # Errors
    /// If the module has no such function, or its manifest cannot be had.
    pub fn function(&self, name: &str, limits: FunctionLimits) -> Result<WasmFunctionFactory, FunctionError> {
        let manifest = self.manifest()?;
        let Some(function) = manifest.function(name) else {
            let names =
                manifest.functions.iter().map(|f: &Function| f.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(self.error(format!("has no function `{name}`, it has {names}")));
        };
        Ok(WasmFunctionFactory::new(self.clone(), Arc::new(function.clone()), Arc::new(limits)))
    }

    /// The name under which it was compiled.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn interfaces(&self) -> &Interfaces {
        &self.0.interfaces
    }

    pub(crate) fn pre(&self) -> &InstancePre<Guest> {
        &self.0.pre
    }

    pub(crate) fn default_limits(&self) -> &Arc<FunctionLimits> {
        &self.0.engine.limits
    }

    pub(crate) fn stack_bytes(&self) -> usize {
        self.0.engine.stack_bytes
    }

    /// The computing time of a call in ticks of the engine.
    pub(crate) fn ticks(&self, limits: &FunctionLimits) -> u64 {
        let ticks = limits.call_time.as_nanos().div_ceil(self.0.engine.tick.as_nanos().max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX).max(1)
    }

    /// An error that says what is wrong with this module.
    pub(crate) fn error(&self, problem: String) -> FunctionError {
        FunctionError::Module { module: self.0.name.clone(), problem }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("name", &self.0.name).field("interfaces", &self.0.interfaces).finish()
    }
}

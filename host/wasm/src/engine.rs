//! The engine: compiles modules and holds what their instances share.

use std::{path::Path, sync::Arc, time::Duration};

use millstream_operator::{FunctionError, ModuleInspector};
use millstream_types::Manifest;
use parking_lot::Mutex;
use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig,
    component::{Component, Linker},
};

use crate::{
    cache::CompileCache,
    imports::{self, Guest},
    interfaces::Interfaces,
    limiter::MAX_TABLE_ELEMENTS,
    module::Module,
    options::{FunctionLimits, WasmOptions},
    ticker::Ticker,
};

/// Compiles modules. One is enough for a process: instances are pooled in it, and its thread moves the clock of all
/// budgets on.
pub struct WasmEngine {
    shared: Arc<Shared>,
    linker: Linker<Guest>,
    cache: Option<CompileCache>,
    recent: Mutex<Vec<(blake3::Hash, Module)>>,
}

/// What modules need of their engine for as long as they live.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) limits: Arc<FunctionLimits>,
    pub(crate) stack_bytes: usize,
    pub(crate) tick: Duration,
    _ticker: Ticker,
}

/// An engine that cannot be set up on this machine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The settings do not work here, most often for want of address space.
    #[error(
        "the Wasm engine cannot be set up: {reason}; fewer instances (now {instances}) need less address space"
    )]
    Setup {
        /// What the engine said.
        reason: String,
        /// How many instances were asked for.
        instances: u32,
    },
    /// The thread of the clock could not be started.
    #[error("the thread for the clock of the Wasm engine cannot be started")]
    Ticker(#[source] std::io::Error),
}

impl WasmEngine {
    /// Sets an engine up.
    pub fn new(options: WasmOptions) -> Result<Self, EngineError> {
        let setup = |e: wasmtime::Error| EngineError::Setup {
            reason: format!("{e:#}"),
            instances: options.instances,
        };
        let engine = Engine::new(&config(&options)).map_err(setup)?;
        let mut linker = Linker::new(&engine);
        imports::add_to_linker(&mut linker).map_err(setup)?;
        let cache = options.cache_dir.as_deref().and_then(|dir| open_cache(dir, &engine));
        let ticker = Ticker::start(&engine, options.tick).map_err(EngineError::Ticker)?;
        let shared = Shared {
            engine,
            limits: Arc::new(options.limits),
            stack_bytes: options.stack_bytes,
            tick: options.tick,
            _ticker: ticker,
        };
        Ok(Self { shared: Arc::new(shared), linker, cache, recent: Mutex::default() })
    }

    /// Compiles and checks a module; `name` is for messages. The last few modules are remembered by their bytes.
    ///
    /// # Errors
    /// If the bytes are no component, or one that exports or imports what this host does not know.
    pub fn compile(&self, name: &str, bytes: &[u8]) -> Result<Module, FunctionError> {
        let digest = blake3::hash(bytes);
        let known = |(of, module): &&(blake3::Hash, Module)| *of == digest && module.name() == name;
        if let Some((_, module)) = self.recent.lock().iter().find(known) {
            return Ok(module.clone());
        }
        let error = |problem: String| FunctionError::Module { module: name.to_owned(), problem };
        check_kind(bytes).map_err(error)?;
        let component = self.component(&digest, bytes).map_err(|e| error(format!("{e:#}")))?;
        let interfaces = Interfaces::of(&self.shared.engine, &component, imports::serves).map_err(error)?;
        let linked = imports::linker_for(&self.linker, &component)
            .and_then(|linker| linker.instantiate_pre(&component));
        let pre = linked.map_err(|e| error(format!("{e:#}")))?;
        let module = Module::new(name, interfaces, pre, self.shared.clone());
        self.remember(digest, &module);
        Ok(module)
    }

    /// The code of a module, from the cache if it is there.
    fn component(&self, digest: &blake3::Hash, bytes: &[u8]) -> wasmtime::Result<Component> {
        let engine = &self.shared.engine;
        if let Some(component) = self.cache.as_ref().and_then(|cache| cache.load(engine, digest)) {
            return Ok(component);
        }
        let component = Component::from_binary(engine, bytes)?;
        if let Some(cache) = &self.cache {
            cache.store(digest, &component);
        }
        Ok(component)
    }

    fn remember(&self, digest: blake3::Hash, module: &Module) {
        let mut recent = self.recent.lock();
        if recent.len() >= RECENT_MODULES {
            recent.remove(0);
        }
        recent.push((digest, module.clone()));
    }
}

impl ModuleInspector for WasmEngine {
    fn inspect(&self, name: &str, bytes: &[u8]) -> Result<Arc<Manifest>, FunctionError> {
        self.compile(name, bytes)?.manifest()
    }
}

/// A cache is a convenience: without one the engine works all the same.
fn open_cache(dir: &Path, engine: &Engine) -> Option<CompileCache> {
    let opened = CompileCache::open(dir, engine);
    opened
        .inspect_err(|error| tracing::warn!(dir = %dir.display(), %error, "no cache of compiled modules"))
        .ok()
}

/// Says what bytes are that are no component.
fn check_kind(bytes: &[u8]) -> Result<(), String> {
    if wasmparser::Parser::is_component(bytes) {
        return Ok(());
    }
    if wasmparser::Parser::is_core_wasm(bytes) {
        return Err("not a component but a core module: build it with `millstream build`".to_owned());
    }
    let start = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
    Err(match bytes.len() {
        0 => "the file is empty: expected a WebAssembly component".to_owned(),
        _ => format!("not WebAssembly: it starts with {start}, a component with 00 61 73 6d 0d 00 01 00"),
    })
}

/// Everything here that changes compiled code or its results is part of the key of the compile cache.
fn config(options: &WasmOptions) -> Config {
    let mut config = Config::new();
    config
        // Asynchronous calls of guests that are not async themselves: they yield to the slot's executor.
        .concurrency_support(false)
        .epoch_interruption(true)
        // The same input gives the same output, on every machine.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .max_wasm_stack(options.stack_bytes)
        .async_stack_size(options.stack_bytes + HOST_STACK_BYTES)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options.instances)));
    config
}

fn pool(instances: u32) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_stacks(instances)
        .total_memories(instances)
        // The adapters of a component are core modules too, with a table each.
        .total_core_instances(instances.saturating_mul(4))
        .total_tables(instances.saturating_mul(4))
        .table_elements(MAX_TABLE_ELEMENTS);
    pool
}

/// Stack that the host's own functions get below a guest's.
const HOST_STACK_BYTES: usize = 1 << 20;
const RECENT_MODULES: usize = 16;

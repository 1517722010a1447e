//! The Wasm host: the only crate that names wasmtime.
//!
//! [`WasmEngine`] compiles a component to a [`Module`] after it has checked what it exports and imports; the module
//! tells its manifest and makes a factory for one of its functions; the factory makes a
//! [`UserFunction`](millstream_operator::UserFunction) for each subtask, which is an instance in a store of its own.
//!
//! A call goes through `function.rs`: columns are lowered (`boundary/lower.rs`), the operator's context is lent to the
//! instance, the export runs and may call back (`imports/`), and what comes out is checked and lifted
//! (`boundary/lift.rs`, `boundary/outcome.rs`). A guest can do nothing that it was not granted: memory, computing time
//! and bytes handed over have a budget each, and going over one costs it the instance and nothing else.

mod bindings;
mod boundary;
mod cache;
mod engine;
mod executor;
mod exports;
mod factory;
mod fault;
mod function;
mod imports;
mod instance;
mod interfaces;
mod limiter;
mod module;
mod options;
mod stop;
#[cfg(test)]
mod tests;
mod ticker;
mod trusted;

pub use engine::{EngineError, WasmEngine};
pub use factory::WasmFunctionFactory;
pub use module::Module;
pub use options::{FunctionLimits, WasmOptions};

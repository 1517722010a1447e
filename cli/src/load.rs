//! From a job file to a plan with everything that its start needs.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_wasm::{EngineOptions, WasmEngine};
use millstream_worker::{Catalog, Modules, Plan};

use crate::exit::Failure;

/// What a job file finds around it.
pub(crate) struct Environment {
    engine: Arc<WasmEngine>,
}

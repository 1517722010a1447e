//! From a job file to a checked plan, with the modules and connectors that its start needs.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_graph::{JobFile, JobFormat, Plan, SourceText};
use millstream_wasm::{WasmEngine, WasmOptions};
use millstream_worker::{Catalog, JobFileText, Modules};

use crate::{exit::Failure, printer::Printer};

/// A job, ready to start.
pub(crate) struct LoadedJob {
    pub(crate) plan: Plan,
    pub(crate) modules: Modules,
    pub(crate) catalog: Catalog,
    /// What it was read from.
    pub(crate) job_file: JobFileText,
}

/// Reads and checks a job file. Warnings are printed; errors end it.
pub(crate) fn load(path: &Path, parallelism: Option<u32>, printer: &Printer) -> Result<LoadedJob, Failure> {
    let text = fs::read_to_string(path);
    let text =
        text.map_err(|e| Failure::environment(miette::miette!("{}: cannot be read: {e}", path.display())))?;
    let job_file =
        JobFileText { path: path.display().to_string(), format: JobFormat::of_path(path), text: text.into() };
    plan(job_file, Modules::new(engine()?), parallelism, printer)
}

/// Plans a job file with these modules. Its relative paths start at its folder.
pub(crate) fn plan(
    job_file: JobFileText,
    modules: Modules,
    parallelism: Option<u32>,
    printer: &Printer,
) -> Result<LoadedJob, Failure> {
    let source = SourceText::new(&job_file.path, job_file.text.clone());
    let catalog = Catalog::new(Path::new(&job_file.path).parent().unwrap_or(Path::new("")));
    let mut file = JobFile::read(source, job_file.format, &|name| env::var(name).ok());
    if let Some(parallelism) = parallelism {
        file.set_parallelism(parallelism);
    }
    let plan = Plan::new(file, &modules, &catalog).map_err(|error| {
        printer.report(&error.0);
        Failure::reported()
    })?;
    printer.report(&plan.warnings);
    Ok(LoadedJob { plan, modules, catalog, job_file })
}

/// The Wasm engine of this process, which keeps what it compiles for the next start.
pub(crate) fn engine() -> Result<Arc<WasmEngine>, Failure> {
    let options = WasmOptions { cache_dir: cache_dir(), ..WasmOptions::default() };
    let engine = WasmEngine::new(options).map_err(|e| Failure::environment(miette::miette!("{e}")))?;
    Ok(Arc::new(engine))
}

/// `MILLSTREAM_CACHE`, or the user's cache folder; none if there is no home, and then modules are compiled each time.
fn cache_dir() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let user = || set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    set("MILLSTREAM_CACHE")
        .or_else(|| user().map(|cache| cache.join("millstream")))
        .map(|c| c.join("modules"))
}

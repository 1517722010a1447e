//! A job that was handed over as text and modules: planned here as it was planned there.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    sync::Arc,
};

use millstream_control::{JobText, ModuleDigest};
use millstream_graph::{JobFile, JobFormat, Plan, PlanError, SourceText};
use millstream_wasm::WasmEngine;

use crate::{Catalog, JobFileText, Modules};

/// A job that has been planned, with what its start needs.
pub struct PlannedJob {
    /// The plan.
    pub plan: Plan,
    /// Its modules.
    pub modules: Modules,
    /// The connectors, for its folder.
    pub catalog: Catalog,
    /// What it was read from.
    pub job_file: JobFileText,
}

impl PlannedJob {
    /// Plans a job with these modules, by the names that its job file gives them. Compiling takes its time.
    pub fn new(
        job: &JobText,
        modules: HashMap<String, Arc<[u8]>>,
        engine: &Arc<WasmEngine>,
    ) -> Result<Self, PlanError> {
        let format = if job.json { JobFormat::Json } else { JobFormat::Toml };
        let job_file = JobFileText { path: job.path.clone(), format, text: job.text.as_str().into() };
        let variable = |name: &str| {
            let found = job.variables.iter().find(|(variable, _)| variable == name);
            found.map(|(_, value)| value.clone())
        };
        let source = SourceText::new(&job_file.path, job_file.text.clone());
        let mut file = JobFile::read(source, format, &variable);
        if let Some(parallelism) = job.parallelism {
            file.set_parallelism(parallelism);
        }
        let modules = Modules::new(engine.clone()).with_provided(modules);
        let catalog = Catalog::new(Path::new(&job.path).parent().unwrap_or(Path::new("")));
        let plan = Plan::new(file, &modules, &catalog)?;
        Ok(Self { plan, modules, catalog, job_file })
    }

    /// What the plan comes to: another number if those who made it would run something else. Only builds of one version
    /// agree.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.plan)
    }
}

/// What a plan comes to.
pub fn fingerprint(plan: &Plan) -> u64 {
    let mut hasher = DefaultHasher::new();
    plan.describe().to_string().hash(&mut hasher);
    format!("{:?}", plan.execution.channels).hash(&mut hasher);
    hasher.finish()
}

/// What a module is called by its bytes.
pub fn module_digest(bytes: &[u8]) -> ModuleDigest {
    ModuleDigest(*blake3::hash(bytes).as_bytes())
}

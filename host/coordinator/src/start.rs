//! A job from its record to its start: planned, its checkpoints claimed, its subtasks deployed.

use std::{collections::HashMap, path::Path, sync::Arc};

use millstream_control::JobText;
use millstream_graph::CheckpointSpec;
use millstream_storage::{
    ClusterStore, JobStore, Latest, RunLock, RunStore, Storage, StorageError, StoredSnapshot,
};
use millstream_types::{Attempt, RunId};
use millstream_wasm::WasmEngine;
use millstream_worker::{
    CheckpointOptions, Job, JobOptions, PlannedJob, StartError, in_full, restart_strategy, restore_report,
    usual_on_cluster,
};
use parking_lot::Mutex;

use crate::{record::JobRecord, runner::ClusterRunner, workers::Workers};

/// A job that has been started, with the hold on its run.
pub(crate) struct Started {
    pub(crate) job: Job,
    pub(crate) lock: Option<RunLock>,
    /// Where its checkpoints go.
    pub(crate) run: Option<String>,
}

/// A job that cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartProblem {
    #[error("the job file cannot run:{0}")]
    Plan(String),
    #[error("module `{0}` is not there any more")]
    Module(String),
    #[error("the job runs already: somebody else has {0}")]
    Held(String),
    #[error("a job that is to go on from a snapshot of its own needs a place for checkpoints")]
    NoPlace,
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("{}", in_full(.0))]
    Start(#[from] StartError),
}

impl StartProblem {
    /// Whether the job itself is at fault.
    pub(crate) fn is_invalid(&self) -> bool {
        match self {
            Self::Plan(_) | Self::NoPlace | Self::Held(_) => true,
            Self::Start(error) => {
                matches!(error, StartError::Build(_) | StartError::Function(_) | StartError::Restore(_))
            }
            Self::Module(_) | Self::Storage(_) => false,
        }
    }
}

/// Plans a job beside everything else: compiling takes its time.
pub(crate) async fn plan(
    job: JobText,
    modules: HashMap<String, Arc<[u8]>>,
    engine: Arc<WasmEngine>,
) -> Result<PlannedJob, StartProblem> {
    let planned = tokio::task::spawn_blocking(move || PlannedJob::new(&job, modules, &engine)).await;
    let planned = planned.map_err(|e| StartProblem::Plan(format!(" planning has failed: {e}")))?;
    planned.map_err(|e| StartProblem::Plan(format!("\n{}", e.0.render(false))))
}

/// Checks that a job can go on from a snapshot, before it is accepted.
pub(crate) async fn check_restore(
    planned: &PlannedJob,
    from: &str,
    allow_dropped_state: bool,
) -> Result<(), StartProblem> {
    let snapshot = JobStore::open(from).await?;
    let report = restore_report(&snapshot, &planned.plan).map_err(StartError::from)?;
    match report.is_refused(allow_dropped_state) {
        true => Err(StartError::from(millstream_worker::RestoreError::Refused(report)).into()),
        false => Ok(()),
    }
}

/// Starts a job where it stands: at its newest checkpoint if a coordinator has started it before.
pub(crate) async fn start(
    kept: &Arc<Mutex<JobRecord>>,
    store: &ClusterStore,
    workers: &Workers,
    engine: Arc<WasmEngine>,
) -> Result<Started, StartProblem> {
    let record = kept.lock().clone();
    let mut modules = HashMap::new();
    for module in &record.program.modules {
        let bytes = store.module(&module.digest.to_string()).await?;
        let bytes = bytes.ok_or_else(|| StartProblem::Module(module.name.clone()))?;
        modules.insert(module.name.clone(), Arc::from(&bytes[..]));
    }
    let planned = plan(record.program.job.clone(), modules, engine).await?;
    let settings = &planned.plan.logical.job;
    let spec = settings.checkpoint.clone();
    let spec = spec.or_else(|| record.checkpoint_dir.as_ref().map(|_| CheckpointSpec::default()));
    let (checkpoints, restore, lock) = match &spec {
        None => (None, open(record.from.as_deref()).await?, None),
        Some(spec) => {
            let (run, restore) = run(&record, &planned, spec).await?;
            let Some(lock) = run.lock().await? else { return Err(StartProblem::Held(run.name())) };
            (Some(CheckpointOptions::new(spec, run, planned.job_file.clone())), restore, Some(lock))
        }
    };
    let run = checkpoints.as_ref().map(|checkpoints| checkpoints.run.name());
    let options = JobOptions {
        checkpoints,
        restore,
        allow_dropped_state: record.allow_dropped_state,
        restart: settings.restart.map_or_else(|| usual_on_cluster(spec.is_some()), restart_strategy),
        run: RunId(record.run),
        first_attempt: Attempt(record.attempts),
        ..JobOptions::default()
    };
    let runner = ClusterRunner {
        workers: workers.clone(),
        store: store.clone(),
        record: kept.clone(),
        program: record.program.clone(),
        allow_dropped_state: record.allow_dropped_state,
    };
    let PlannedJob { plan, modules, catalog, .. } = planned;
    let started = Job::start_on(Arc::new(runner), plan, &modules, &catalog, &options).await;
    match started {
        Ok(job) => Ok(Started { job, lock, run }),
        Err(error) => {
            if let Some(lock) = lock {
                lock.release().await;
            }
            Err(error.into())
        }
    }
}

async fn open(from: Option<&str>) -> Result<Option<Arc<StoredSnapshot>>, StorageError> {
    match from {
        None => Ok(None),
        Some(location) => Ok(Some(Arc::new(JobStore::open(location).await?))),
    }
}

/// The run of a job and what it goes on from: another run for one that is started for the first time.
async fn run(
    record: &JobRecord,
    planned: &PlannedJob,
    spec: &CheckpointSpec,
) -> Result<(RunStore, Option<Arc<StoredSnapshot>>), StartProblem> {
    let base = Path::new(&record.program.job.path).parent().unwrap_or(Path::new(""));
    let storage = match (&record.checkpoint_dir, &spec.dir) {
        (Some(dir), _) => Storage::open(dir, Path::new(""))?,
        (None, Some(dir)) => Storage::open(dir, base)?,
        (None, None) => return Err(StartProblem::NoPlace),
    };
    // Jobs of one name have nothing to do with each other in a cluster.
    let store = JobStore::new(storage, &format!("{}-{}", planned.plan.logical.job.name, record.id));
    if let Some(Latest { run, snapshot, ended: false }) = store.latest().await? {
        return Ok((run, snapshot.map(Arc::new)));
    }
    let restore = open(record.from.as_deref()).await?;
    let origin = restore.as_ref().map(|found| found.name());
    Ok((store.begin_run(origin.as_deref()).await?, restore))
}

//! Where a run stores its checkpoints, and what it goes on from.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_graph::{CheckpointSpec, JobFormat, RestartSpec};
use millstream_snapshot::{JobFileForm, SnapshotKind};
use millstream_storage::{JobStore, Latest, RunStore, Storage, StorageError, StoredSnapshot};
use millstream_worker::{
    CheckpointOptions, CheckpointSettings, JobFileText, JobOptions, Modules, RestartStrategy,
};

use crate::{
    args,
    exit::Failure,
    load::{self, LoadedJob},
    printer::Printer,
    summary::JobFailed,
};

/// The options of a run as its arguments and its job file have them.
pub(super) async fn options(
    args: &args::Run,
    loaded: &LoadedJob,
    printer: &Printer,
) -> Result<JobOptions, Failure> {
    let job = &loaded.plan.logical.job;
    let spec =
        job.checkpoint.clone().or_else(|| args.checkpoint_dir.as_ref().map(|_| CheckpointSpec::default()));
    let Some(spec) = spec else {
        let restore = match args.from.as_deref() {
            None => None,
            Some(LATEST) => return Err(no_place("`--from latest`")),
            Some(path) => Some(open(path, printer).await?),
        };
        return Ok(JobOptions { restore, restart: restart(job.restart), ..JobOptions::default() });
    };
    let store = JobStore::new(storage(args, &spec)?, job.name.as_str());
    let (run, restore) = match args.from.as_deref() {
        None => (begin_run(&store, None).await?, None),
        Some(LATEST) => latest(&store, printer).await?,
        Some(path) => {
            let found = open(path, printer).await?;
            (begin_run(&store, Some(&found.name())).await?, Some(found))
        }
    };
    let checkpoints = Some(checkpoints(&spec, run, loaded.job_file.clone()));
    Ok(JobOptions { checkpoints, restore, restart: restart(job.restart), ..JobOptions::default() })
}

/// The job of the savepoint that the arguments name: its job file, with the modules that it has.
pub(super) async fn load_savepoint(args: &args::Run, printer: &Printer) -> Result<LoadedJob, Failure> {
    let found = match args.from.as_deref() {
        None | Some(LATEST) => {
            return Err(no_job_file("`--from latest` says which checkpoint, but not of which job"));
        }
        Some(path) => JobStore::open(&absolute(path)).await.map_err(failed)?,
    };
    let Some(program) = &found.metadata.program else {
        let name = found.name();
        return Err(no_job_file(&format!(
            "{name} is a checkpoint, and only savepoints have a job file in them"
        )));
    };
    let mut modules = HashMap::new();
    for module in &program.modules {
        let bytes = found.read_module(module).await.map_err(failed)?;
        modules.insert(module.name.clone(), Arc::from(&bytes[..]));
    }
    let format = match program.form {
        JobFileForm::Toml => JobFormat::Toml,
        JobFileForm::Json => JobFormat::Json,
    };
    // Where it was means nothing here: relative paths start at the current folder.
    let path = Path::new(&program.job_file).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let job_file = JobFileText { path, format, text: program.text.as_str().into() };
    load::plan(job_file, Modules::new(load::engine()?).with_provided(modules), args.parallelism, printer)
}

fn checkpoints(spec: &CheckpointSpec, run: RunStore, job_file: JobFileText) -> CheckpointOptions {
    let settings = CheckpointSettings {
        interval: spec.interval,
        min_pause: spec.min_pause,
        timeout: spec.timeout,
        max_concurrent: spec.max_concurrent,
        tolerable_failures: spec.tolerable_failures,
    };
    CheckpointOptions { settings, alignment: spec.alignment, retain: spec.retain, run, job_file }
}

fn restart(spec: RestartSpec) -> RestartStrategy {
    match spec {
        RestartSpec::None => RestartStrategy::None,
        RestartSpec::FixedDelay { attempts, delay } => RestartStrategy::FixedDelay { attempts, delay },
        RestartSpec::ExponentialDelay { initial, max, reset_after } => {
            RestartStrategy::ExponentialDelay { initial, max, multiplier: 1.5, reset_after }
        }
        RestartSpec::FailureRate { failures, interval, delay } => {
            RestartStrategy::FailureRate { failures, interval, delay }
        }
    }
}

fn storage(args: &args::Run, spec: &CheckpointSpec) -> Result<Storage, Failure> {
    let base = args.job.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let opened = match (&args.checkpoint_dir, &spec.dir) {
        (Some(dir), _) => Storage::folder(dir),
        (None, Some(dir)) => Storage::open(dir, base),
        (None, None) => return Err(no_place("`checkpoint` of [job]")),
    };
    opened.map_err(failed)
}

/// The newest checkpoint of the newest run, which goes on; a new run if there is none.
async fn latest(
    store: &JobStore,
    printer: &Printer,
) -> Result<(RunStore, Option<Arc<StoredSnapshot>>), Failure> {
    match store.latest().await.map_err(failed)? {
        Some(Latest { run, snapshot: Some(found), ended }) => {
            say(&found, printer);
            let next = if ended { begin_run(store, Some(&found.name())).await? } else { run };
            Ok((next, Some(Arc::new(found))))
        }
        Some(Latest { run, .. }) => {
            printer.note("there is no checkpoint yet: starting from the beginning");
            Ok((run, None))
        }
        None => {
            printer.note("there is no checkpoint yet: starting from the beginning");
            Ok((begin_run(store, None).await?, None))
        }
    }
}

async fn begin_run(store: &JobStore, origin: Option<&str>) -> Result<RunStore, Failure> {
    store.begin_run(origin).await.map_err(failed)
}

async fn open(path: &str, printer: &Printer) -> Result<Arc<StoredSnapshot>, Failure> {
    let found = JobStore::open(&absolute(path)).await.map_err(failed)?;
    say(&found, printer);
    Ok(Arc::new(found))
}

/// A path that means the same in a later run.
fn absolute(path: &str) -> PathBuf {
    Path::new(path).canonicalize().unwrap_or_else(|_| PathBuf::from(path))
}

fn no_job_file(problem: &str) -> Failure {
    Failure::invalid(miette::miette!(
        help = "name the job file: `millstream run JOB.toml --from ...`",
        "{problem}"
    ))
}

fn say(found: &StoredSnapshot, printer: &Printer) {
    let kind = match found.metadata.kind {
        SnapshotKind::Checkpoint => "checkpoint",
        SnapshotKind::Savepoint => "savepoint",
    };
    printer.note(&format!("going on from {kind} {} in {}", found.metadata.checkpoint, found.name()));
}

/// Runs what a command has to do, on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| Failure::environment(miette::miette!("no event loop: {e}")))?.block_on(work)
}

/// A place for snapshots that cannot be used.
pub(crate) fn failed(error: StorageError) -> Failure {
    Failure::environment(JobFailed::new(error))
}

fn no_place(what: &str) -> Failure {
    Failure::invalid(miette::miette!(
        help = "name a folder with `--checkpoint-dir DIR` or `checkpoint = {{ dir = \"DIR\" }}` in [job]",
        "{what} needs a place for checkpoints"
    ))
}

const LATEST: &str = "latest";

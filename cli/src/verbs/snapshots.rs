//! Where a run stores its checkpoints, and what it goes on from.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use millstream_graph::{CheckpointSpec, JobSettings, RestartSpec};
use millstream_storage::{JobStore, RunStore, Storage, StorageError, StoredSnapshot};
use millstream_worker::{CheckpointOptions, CheckpointSettings, JobOptions, RestartStrategy};

use crate::{args, exit::Failure, printer::Printer, summary::JobFailed};

/// The options of a run as its arguments and its job file have them.
pub(super) async fn options(
    args: &args::Run,
    job: &JobSettings,
    printer: &Printer,
) -> Result<JobOptions, Failure> {
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
        None => (store.begin_run(None).await.map_err(failed)?, None),
        Some(LATEST) => latest(&store, printer).await?,
        Some(path) => {
            let found = open(path, printer).await?;
            (store.begin_run(Some(&found.name())).await.map_err(failed)?, Some(found))
        }
    };
    let checkpoints = Some(checkpoints(&spec, run));
    Ok(JobOptions { checkpoints, restore, restart: restart(job.restart), ..JobOptions::default() })
}

fn checkpoints(spec: &CheckpointSpec, run: RunStore) -> CheckpointOptions {
    let settings = CheckpointSettings {
        interval: spec.interval,
        min_pause: spec.min_pause,
        timeout: spec.timeout,
        max_concurrent: spec.max_concurrent,
        tolerable_failures: spec.tolerable_failures,
    };
    CheckpointOptions { settings, alignment: spec.alignment, retain: spec.retain, run }
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
    let base = args.job.parent().unwrap_or(Path::new(""));
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
        Some((run, Some(found))) => {
            say(&found, printer);
            Ok((run, Some(Arc::new(found))))
        }
        Some((run, None)) => {
            printer.note("there is no checkpoint yet: starting from the beginning");
            Ok((run, None))
        }
        None => {
            printer.note("there is no checkpoint yet: starting from the beginning");
            Ok((store.begin_run(None).await.map_err(failed)?, None))
        }
    }
}

async fn open(path: &str, printer: &Printer) -> Result<Arc<StoredSnapshot>, Failure> {
    // In a later run the path has to mean the same.
    let folder = Path::new(path).canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    let found = JobStore::open(&folder).await.map_err(failed)?;
    say(&found, printer);
    Ok(Arc::new(found))
}

fn say(found: &StoredSnapshot, printer: &Printer) {
    printer.note(&format!("going on from checkpoint {} in {}", found.metadata.checkpoint, found.name()));
}

fn failed(error: StorageError) -> Failure {
    Failure::environment(JobFailed::new(error))
}

fn no_place(what: &str) -> Failure {
    Failure::invalid(miette::miette!(
        help = "name a folder with `--checkpoint-dir DIR` or `checkpoint = {{ dir = \"DIR\" }}` in [job]",
        "{what} needs a place for checkpoints"
    ))
}

const LATEST: &str = "latest";

//! Where a run stores its checkpoints, and what it goes on from.

use std::{collections::HashMap, path::Path, sync::Arc};

use comfy_table::{Table, presets};
use millstream_graph::{CheckpointSpec, JobFormat, JobSettings, StateSpec};
use millstream_snapshot::{JobFileForm, RestoreReport, SnapshotKind, StateVerdict};
use millstream_storage::{JobStore, Latest, RunStore, Storage, StorageError, StoredSnapshot};
use millstream_worker::{
    CheckpointOptions, JobFileText, JobOptions, Modules, RestartStrategy, RestoreError, restart_strategy,
    restore_report,
};
use serde_json::json;

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
        check(restore.as_deref(), args, loaded, printer)?;
        return Ok(job_options(args, job, None, restore));
    };
    let store = JobStore::new(storage(args, &spec)?, job.name.as_str());
    let (run, restore) = match args.from.as_deref() {
        None => (None, None),
        Some(LATEST) => latest(&store, printer).await?,
        Some(path) => (None, Some(open(path, printer).await?)),
    };
    // Nothing is begun that will not go on.
    check(restore.as_deref(), args, loaded, printer)?;
    let run = match run {
        Some(run) => run,
        None => {
            let origin = restore.as_ref().map(|found| found.name());
            store.begin_run(origin.as_deref()).await.map_err(failed)?
        }
    };
    let checkpoints = CheckpointOptions::new(&spec, run, loaded.job_file.clone());
    Ok(job_options(args, job, Some(checkpoints), restore))
}

fn job_options(
    args: &args::Run,
    job: &JobSettings,
    checkpoints: Option<CheckpointOptions>,
    restore: Option<Arc<StoredSnapshot>>,
) -> JobOptions {
    let allow_dropped_state = args.allow_dropped_state;
    let restart = job.restart.map_or(RestartStrategy::None, restart_strategy);
    let mut options =
        JobOptions { checkpoints, restore, allow_dropped_state, restart, ..JobOptions::default() };
    if let StateSpec::RocksDb { dir: Some(dir), .. } = &job.state {
        options.state_dir = base(args).join(dir);
    }
    options
}

/// Says what becomes of the state of a snapshot, if there is anything to say, and whether the job can go on from it.
fn check(
    snapshot: Option<&StoredSnapshot>,
    args: &args::Run,
    loaded: &LoadedJob,
    printer: &Printer,
) -> Result<(), Failure> {
    let Some(snapshot) = snapshot else { return Ok(()) };
    let report = restore_report(snapshot, &loaded.plan).map_err(|e| Failure::invalid(JobFailed::new(e)))?;
    if !report.is_plain() {
        printer.note(&if printer.json() { verdicts_json(&report) } else { verdicts(&report) });
    }
    match report.is_refused(args.allow_dropped_state) {
        true => Err(Failure::invalid(JobFailed::new(RestoreError::Refused(report)))),
        false => Ok(()),
    }
}

/// The verdicts as a document.
fn verdicts_json(report: &RestoreReport) -> String {
    let verdict = |v: &StateVerdict| {
        let verdict = v.verdict.to_string();
        json!({ "operator": v.operator, "state": v.state, "found": v.found, "wanted": v.wanted, "verdict": verdict })
    };
    json!({ "restore": report.verdicts.iter().map(verdict).collect::<Vec<_>>() }).to_string()
}

/// The verdicts as a table.
fn verdicts(report: &RestoreReport) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["operator", "state", "found", "wanted", "verdict"]);
    for v in &report.verdicts {
        let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
        let (operator, state) = (v.operator.clone(), v.state.clone());
        table.add_row([operator, state, text(&v.found), text(&v.wanted), v.verdict.to_string()]);
    }
    table.trim_fmt()
}

/// The job of the savepoint that the arguments name: its job file, with the modules that it has.
pub(super) async fn load_savepoint(args: &args::Run, printer: &Printer) -> Result<LoadedJob, Failure> {
    let found = match args.from.as_deref() {
        None | Some(LATEST) => {
            return Err(no_job_file("`--from latest` says which checkpoint, but not of which job"));
        }
        Some(path) => JobStore::open(path).await.map_err(failed)?,
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

/// Where relative paths of the job file start.
fn base(args: &args::Run) -> &Path {
    args.job.as_deref().and_then(Path::parent).unwrap_or(Path::new(""))
}

fn storage(args: &args::Run, spec: &CheckpointSpec) -> Result<Storage, Failure> {
    let base = base(args);
    let opened = match (&args.checkpoint_dir, &spec.dir) {
        (Some(dir), _) => Storage::open(dir, Path::new("")),
        (None, Some(dir)) => Storage::open(dir, base),
        (None, None) => return Err(no_place("`checkpoint` of [job]")),
    };
    opened.map_err(failed)
}

/// What the newest run goes on from, and the run itself, unless it is another one that goes on.
async fn latest(
    store: &JobStore,
    printer: &Printer,
) -> Result<(Option<RunStore>, Option<Arc<StoredSnapshot>>), Failure> {
    match store.latest().await.map_err(failed)? {
        Some(Latest { run, snapshot: Some(found), ended }) => {
            say(&found, printer);
            Ok(((!ended).then_some(run), Some(Arc::new(found))))
        }
        other => {
            printer.note("there is no checkpoint yet: starting from the beginning");
            Ok((other.map(|latest| latest.run), None))
        }
    }
}

async fn open(path: &str, printer: &Printer) -> Result<Arc<StoredSnapshot>, Failure> {
    let found = JobStore::open(path).await.map_err(failed)?;
    say(&found, printer);
    Ok(Arc::new(found))
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
        help = "name a folder with `--checkpoint-dir DIR` or `checkpoint = { dir = \"DIR\" }` in [job]",
        "{what} needs a place for checkpoints"
    ))
}

const LATEST: &str = "latest";

//! `millstream job`: jobs of a cluster.

use std::{
    collections::BTreeSet,
    env,
    hash::{BuildHasher, RandomState},
    path::Path,
    sync::Mutex,
    time::Duration,
};

use comfy_table::{Table, presets};
use millstream_control::{JobId, JobInfo, JobState, JobText, Reply, Request, SnapshotOf};
use millstream_graph::{JobFile, JobFormat, SourceText};
use millstream_storage::Storage;
use serde_json::json;

use super::snapshots::block_on;
use crate::{
    args::{self, JobVerb},
    cluster::{ask, failed},
    exit::{Exit, Failure},
    load::{LoadedJob, load},
    printer::Printer,
};

pub(super) fn run(verb: JobVerb, printer: &Printer) -> Result<Exit, Failure> {
    match verb {
        JobVerb::Submit(args) => submit(&args, printer),
        JobVerb::List(cluster) => list(&cluster, printer),
        JobVerb::Show(named) => show(&named, printer),
        JobVerb::Cancel(named) => done(
            block_on(ask(&named.cluster, Request::Cancel(named.job.clone())))?,
            "the job is given up",
            printer,
        ),
        JobVerb::Savepoint(args) => snapshot(&args.named, SnapshotOf::Savepoint, args.to.as_deref(), printer),
        JobVerb::Stop(args) => {
            let of = match (args.at.savepoint, args.at.drain) {
                (true, false) => SnapshotOf::StopSavepoint,
                (true, true) => SnapshotOf::DrainSavepoint,
                (false, false) => SnapshotOf::StopCheckpoint,
                (false, true) => SnapshotOf::Drain,
            };
            snapshot(&args.named, of, args.at.to.as_deref(), printer)
        }
    }
}

/// Checks a job here, where its author is, and hands it in with its modules.
fn submit(args: &args::JobSubmit, printer: &Printer) -> Result<Exit, Failure> {
    let loaded = load(&args.job, args.parallelism, printer)?;
    let id = args.id.unwrap_or_else(draw);
    let absolute =
        |location: &Option<String>| location.as_deref().map(Storage::absolute).transpose().map_err(failed);
    let request = Request::Submit {
        id,
        job: job_text(&loaded, args)?,
        modules: modules(&loaded)?,
        from: absolute(&args.from)?,
        allow_dropped_state: args.allow_dropped_state,
        checkpoint_dir: absolute(&args.checkpoint_dir)?,
    };
    block_on(async {
        match ask(&args.cluster, request).await? {
            Reply::Submitted(id) => printer.result(&json!({ "id": id.to_string() }), || id.to_string()),
            reply => return Err(unexpected(reply)),
        }
        if args.wait { wait(&args.cluster, id, printer).await } else { Ok(Exit::Success) }
    })
}

/// The job file, with the variables that it names.
fn job_text(loaded: &LoadedJob, args: &args::JobSubmit) -> Result<JobText, Failure> {
    let file = &loaded.job_file;
    let named = Mutex::new(BTreeSet::new());
    let look = |name: &str| {
        named.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(name.to_owned());
        env::var(name).ok()
    };
    drop(JobFile::read(SourceText::new(&file.path, file.text.clone()), file.format, &look));
    let named = named.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = std::path::absolute(Path::new(&file.path)).map_err(failed)?;
    Ok(JobText {
        path: path.display().to_string(),
        json: file.format == JobFormat::Json,
        text: file.text.to_string(),
        variables: named
            .into_iter()
            .filter_map(|name| env::var(&name).ok().map(|value| (name, value)))
            .collect(),
        parallelism: args.parallelism,
    })
}

fn modules(loaded: &LoadedJob) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let bytes = |module: &millstream_graph::LogicalModule| {
        let bytes = loaded.modules.bytes(&module.name, &module.path).map_err(failed)?;
        Ok((module.name.clone(), bytes.to_vec()))
    };
    loaded.plan.logical.modules.iter().map(bytes).collect()
}

/// A number that nobody else has drawn.
fn draw() -> JobId {
    // The standard library seeds each of these from the system.
    let half = |n: u64| u128::from(RandomState::new().hash_one(n));
    JobId(half(0) << 64 | half(1))
}

/// Waits for a job's end, which is the command's.
async fn wait(cluster: &args::Cluster, id: JobId, printer: &Printer) -> Result<Exit, Failure> {
    let mut lost = 0;
    loop {
        let reply = match ask(cluster, Request::Job(id.to_string())).await {
            Ok(reply) => reply,
            // A coordinator that has gone is replaced in a while.
            Err(error) if lost == PATIENCE => return Err(error),
            Err(_) => {
                lost += 1;
                tokio::time::sleep(LOOK).await;
                continue;
            }
        };
        lost = 0;
        let Reply::Job(job, figures) = reply else { return Err(unexpected(reply)) };
        match job.state {
            JobState::Starting | JobState::Running | JobState::Restarting => tokio::time::sleep(LOOK).await,
            JobState::Finished | JobState::Stopped => {
                printer.result(&document(&job, &figures), || text(&job, &figures));
                return Ok(Exit::Success);
            }
            JobState::Cancelled => return Ok(Exit::Cancelled),
            JobState::Failed => {
                let problem = job.problem.unwrap_or_default();
                return Err(Failure::failed(miette::miette!("the job has failed: {problem}")));
            }
        }
    }
}

fn list(cluster: &args::Cluster, printer: &Printer) -> Result<Exit, Failure> {
    let reply = block_on(ask(cluster, Request::Jobs))?;
    let Reply::Jobs(jobs) = reply else { return Err(unexpected(reply)) };
    printer.result(&jobs, || {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["job", "name", "state", "slots", "attempts", "problem"]);
        for job in &jobs {
            let problem = job.problem.clone().unwrap_or_default();
            let (slots, attempts) = (job.slots.to_string(), job.attempts.to_string());
            table.add_row([
                job.id[..8].to_owned(),
                job.name.clone(),
                state(job.state).to_owned(),
                slots,
                attempts,
                problem,
            ]);
        }
        table.trim_fmt()
    });
    Ok(Exit::Success)
}

fn show(named: &args::JobNamed, printer: &Printer) -> Result<Exit, Failure> {
    let reply = block_on(ask(&named.cluster, Request::Job(named.job.clone())))?;
    let Reply::Job(job, figures) = reply else { return Err(unexpected(reply)) };
    printer.result(&document(&job, &figures), || text(&job, &figures));
    Ok(Exit::Success)
}

/// A job with its figures as a document.
fn document(job: &JobInfo, figures: &str) -> serde_json::Value {
    let figures: serde_json::Value = serde_json::from_str(figures).unwrap_or_default();
    json!({ "job": job, "figures": figures })
}

/// A job with its figures for people.
fn text(job: &JobInfo, figures: &str) -> String {
    let figures: serde_json::Value = serde_json::from_str(figures).unwrap_or_default();
    let mut lines = vec![format!("{} {}: {}", job.name, job.id, state(job.state))];
    lines.extend(job.problem.iter().map(|problem| format!("  {problem}")));
    lines.extend(job.checkpoints.iter().map(|folder| format!("  checkpoints in {folder}")));
    if let Some(operators) = figures["operators"].as_array() {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["  operator", "subtasks", "rows in", "rows out", "late", "rejected"]);
        for operator in operators {
            let figure = |name: &str| operator[name].to_string();
            let name = format!("  {}", operator["name"].as_str().unwrap_or_default());
            let row = ["parallelism", "records-in", "records-out", "late", "rejected"].map(figure);
            table.add_row(std::iter::once(name).chain(row));
        }
        lines.push(table.trim_fmt());
    }
    if let Some(last) = figures["checkpoints"]["last"].as_object() {
        lines.push(format!(
            "  last checkpoint {}, {} bytes, {} ms",
            last["id"], last["bytes"], last["took-ms"]
        ));
    }
    lines.join("\n")
}

fn snapshot(
    named: &args::JobNamed,
    of: SnapshotOf,
    to: Option<&str>,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let to = to.map(Storage::absolute).transpose().map_err(failed)?;
    let reply = block_on(ask(&named.cluster, Request::Snapshot { job: named.job.clone(), of, to }))?;
    match reply {
        Reply::Snapshot(taken) => {
            printer.result(&taken, || taken.path.clone());
            Ok(Exit::Success)
        }
        reply => done(reply, "the job's input ends here", printer),
    }
}

fn done(reply: Reply, what: &str, printer: &Printer) -> Result<Exit, Failure> {
    match reply {
        Reply::Done => {
            if printer.json() {
                printer.data(&json!({ "done": what }).to_string())
            } else {
                printer.note(what)
            }
            Ok(Exit::Success)
        }
        reply => Err(unexpected(reply)),
    }
}

/// An answer that is a refusal, or none to what was asked.
pub(super) fn unexpected(reply: Reply) -> Failure {
    match reply {
        Reply::Refused { reason, invalid: true } => Failure::invalid(miette::miette!("{reason}")),
        Reply::Refused { reason, invalid: false } => Failure::environment(miette::miette!("{reason}")),
        other => Failure::environment(miette::miette!(
            "the coordinator has given another answer than was asked for: {other:?}"
        )),
    }
}

fn state(state: JobState) -> &'static str {
    match state {
        JobState::Starting => "starting",
        JobState::Running => "running",
        JobState::Restarting => "restarting",
        JobState::Finished => "finished",
        JobState::Stopped => "stopped",
        JobState::Cancelled => "cancelled",
        JobState::Failed => "failed",
    }
}

/// How often a job that is waited for is looked at, and how often without a coordinator.
const LOOK: Duration = Duration::from_millis(200);
const PATIENCE: u32 = 150;

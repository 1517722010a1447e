//! `millstream run`: a job in this process.
//!
//! The first Ctrl-C stops the job. One with checkpoints takes a last one and ends there: no window fires, and `--from
//! latest` goes on as if nothing had happened. One without has nothing to go on from, so what has been read is processed
//! to the end, windows fire, and outputs are completed. The second Ctrl-C cancels the job at once. SIGTERM counts as
//! Ctrl-C, so that a service is stopped cleanly.

use std::time::Duration;

use millstream_connectors::SinkResults;
use millstream_operator::Whose;
use millstream_task::TaskError;
use millstream_worker::{Job, JobControl, JobEnd, SnapshotError, StartError};
use tokio::sync::oneshot;

use super::{
    serving::Signals,
    snapshots::{self, block_on},
};
use crate::{
    args,
    control::{Claimed, ControlError, Serving},
    exit::{Exit, Failure},
    load::load,
    printer::Printer,
    progress::ProgressView,
    summary,
};

/// How often the progress view is drawn.
const REFRESH: Duration = Duration::from_millis(250);
/// How long a cancelled job may take to end.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &args::Run, printer: &Printer) -> Result<Exit, Failure> {
    let loaded = match &args.job {
        Some(job) => load(job, args.parallelism, printer)?,
        None => block_on(snapshots::load_savepoint(args, printer))?,
    };
    if args.explain {
        let explanation = loaded.plan.describe();
        printer.result(&explanation, || explanation.to_string());
        return Ok(Exit::Success);
    }
    block_on(async {
        let options = snapshots::options(args, &loaded, printer).await?;
        let claimed = match &options.checkpoints {
            Some(checkpoints) => Some(Claimed::claim(checkpoints.run.clone()).await.map_err(not_claimed)?),
            None => None,
        };
        let job = match Job::start(loaded.plan, &loaded.modules, &loaded.catalog, &options).await {
            Ok(job) => job,
            Err(error) => {
                if let Some(claimed) = claimed {
                    claimed.release().await;
                }
                return Err(not_started(error));
            }
        };
        let mut serving = claimed.map(|claimed| claimed.serve(job.control().clone()));
        let end = watch(job, serving.as_mut(), loaded.catalog.results(), args.quiet, printer).await;
        if let Some(serving) = serving {
            serving.close().await;
        }
        match end {
            Ended::Exit(exit) => exit,
            Ended::Failed(error) => {
                let older = match (&error, &options.checkpoints) {
                    (TaskError::Restore { .. } | TaskError::Restart { .. }, Some(checkpoints)) => {
                        // What cannot be looked at either is no help.
                        checkpoints.run.good_before_newest().await.ok().flatten()
                    }
                    _ => None,
                };
                Err(job_failed(error, older))
            }
        }
    })
}

/// How a job has ended, as far as the command is concerned.
enum Ended {
    /// The command is over.
    Exit(Result<Exit, Failure>),
    /// The job has failed.
    Failed(TaskError),
}

async fn watch(
    mut job: Job,
    mut serving: Option<&mut Serving>,
    results: &SinkResults,
    quiet: bool,
    printer: &Printer,
) -> Ended {
    let mut view = ProgressView::new(printer, quiet);
    let mut refresh = tokio::time::interval(REFRESH);
    let mut interrupts = 0;
    let mut refused = None;
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(failure) => return Ended::Exit(Err(failure)),
    };
    let end = loop {
        tokio::select! {
            biased;
            end = job.wait() => break end,
            () = signals.next() => {
                interrupts += 1;
                if interrupts == 1 {
                    refused = stop(&job, printer);
                } else {
                    job.control().cancel();
                    // A thread that hangs in the system, as in a write that nobody reads, ends with the process.
                    if tokio::time::timeout(GRACE, job.wait()).await.is_err() {
                        return Ended::Exit(Ok(Exit::Cancelled));
                    }
                    break JobEnd::Cancelled;
                }
            }
            why = refusal(&mut refused) => {
                printer.note(&format!("{why}; press Ctrl-C again to cancel the job"));
            }
            why = lost(&mut serving) => {
                // What it would go on to write is somebody else's.
                job.control().cancel();
                drop(tokio::time::timeout(GRACE, job.wait()).await);
                return Ended::Exit(Err(Failure::environment(miette::miette!("the job has lost its run: {why}"))));
            }
            _ = refresh.tick() => view.show(&job.status()),
        }
    };
    let status = job.status();
    view.finish();
    let stopped = match end {
        JobEnd::Finished => None,
        JobEnd::Stopped(at) => Some(at),
        JobEnd::Cancelled => return Ended::Exit(Ok(Exit::Cancelled)),
        JobEnd::Failed(error) => return Ended::Failed(error),
    };
    let end =
        if interrupts > 0 || stopped.is_some() { summary::End::Stopped } else { summary::End::Finished };
    let summary = summary::Summary::new(status, results, end, stopped);
    printer.result(&summary, || summary.to_string());
    Ended::Exit(Ok(Exit::Success))
}

/// Stops a job as its user expects it; says so later if that was not to be.
fn stop(job: &Job, printer: &Printer) -> Option<oneshot::Receiver<SnapshotError>> {
    if !job.takes_checkpoints() {
        printer.note("stopping: what has been read is processed to the end; press Ctrl-C again to cancel");
        job.control().drain();
        return None;
    }
    printer.note("stopping at a last checkpoint; press Ctrl-C again to cancel");
    let (refused, why) = oneshot::channel();
    tokio::spawn(stop_at_checkpoint(job.control().clone(), refused));
    Some(why)
}

async fn stop_at_checkpoint(job: JobControl, refused: oneshot::Sender<SnapshotError>) {
    if let Err(error) = job.stop_at_checkpoint().await {
        // Nobody listens any more if the job has come to its end meanwhile.
        refused.send(error).ok();
    }
}

/// Waits until the run is another process's; for ever if there is none.
async fn lost(serving: &mut Option<&mut Serving>) -> String {
    match serving {
        Some(serving) => serving.lost().await,
        None => std::future::pending().await,
    }
}

/// Waits until a stop is refused; for ever if it is not. Cancel-safe.
async fn refusal(refused: &mut Option<oneshot::Receiver<SnapshotError>>) -> SnapshotError {
    if let Some(why) = refused
        && let Ok(why) = why.await
    {
        *refused = None;
        return why;
    }
    std::future::pending().await
}

/// A run that somebody else has, or that cannot be had.
fn not_claimed(error: ControlError) -> Failure {
    let help = "stop it with `millstream stop`, or start without `--from latest`, which begins another run";
    match error {
        ControlError::Running { .. } => Failure::invalid(miette::miette!(help = help, "{error}")),
        error => Failure::environment(summary::JobFailed::new(error)),
    }
}

/// A job that could not be started: what was asked for cannot be, or something around it is missing.
fn not_started(error: StartError) -> Failure {
    let failure = match &error {
        StartError::Build(_) | StartError::Function(_) | StartError::Restore(_) => Failure::invalid,
        StartError::Source { source, .. } | StartError::Sink { source, .. }
            if source.whose != Whose::External =>
        {
            Failure::invalid
        }
        StartError::Source { .. }
        | StartError::Sink { .. }
        | StartError::Storage(_)
        | StartError::Slot { .. } => Failure::environment,
    };
    failure(summary::JobFailed::new(error))
}

/// A job that failed while it ran, by its own fault or that of a disk or file; and the checkpoint before the one that it
/// could not go on from, if there is a good one.
fn job_failed(error: TaskError, older: Option<String>) -> Failure {
    let failure = if error.is_external() { Failure::environment } else { Failure::failed };
    failure(summary::JobFailed::new(error).with_help(
        older.map(|older| format!("a checkpoint before it is good: restore it with `--from {older}`")),
    ))
}

//! `millstream run`: a job in this process.
//!
//! The first Ctrl-C stops the sources: what has been read is processed to the end, windows fire, outputs are
//! completed. The second one cancels the job at once. SIGTERM counts as Ctrl-C, so that a service is stopped cleanly.

use std::time::Duration;

use millstream_connectors::SinkResults;
use millstream_operator::Whose;
use millstream_task::TaskError;
use millstream_worker::{Job, JobEnd, StartError};

use super::snapshots;
use crate::{
    args,
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
    let loaded = load(&args.job, args.parallelism, printer)?;
    if args.explain {
        let explanation = loaded.plan.describe();
        printer.result(&explanation, || explanation.to_string());
        return Ok(Exit::Success);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::environment(miette::miette!("no event loop: {e}")))?;
    runtime.block_on(async {
        let options = snapshots::options(args, &loaded.plan.logical.job, printer).await?;
        let job = Job::start(loaded.plan, &loaded.modules, &loaded.catalog, &options).await;
        let job = job.map_err(not_started)?;
        watch(job, loaded.catalog.results(), args.quiet, printer).await
    })
}

async fn watch(mut job: Job, results: &SinkResults, quiet: bool, printer: &Printer) -> Result<Exit, Failure> {
    let mut view = ProgressView::new(printer, quiet);
    let mut refresh = tokio::time::interval(REFRESH);
    let mut interrupts = 0;
    let mut signals = Signals::listen()
        .map_err(|e| Failure::environment(miette::miette!("signals cannot be listened for: {e}")))?;
    let end = loop {
        tokio::select! {
            biased;
            end = job.wait() => break end,
            () = signals.next() => {
                interrupts += 1;
                if interrupts == 1 {
                    printer.note("stopping: what has been read is processed to the end; press Ctrl-C again to cancel");
                    job.stop();
                } else {
                    job.cancel();
                    // A thread that hangs in the system, as in a write that nobody reads, ends with the process.
                    if tokio::time::timeout(GRACE, job.wait()).await.is_err() {
                        return Ok(Exit::Cancelled);
                    }
                    break JobEnd::Cancelled;
                }
            }
            _ = refresh.tick() => view.show(&job.status()),
        }
    };
    let status = job.status();
    view.finish();
    match end {
        JobEnd::Finished => {
            let summary = summary::Summary::new(status, results, interrupts > 0);
            printer.result(&summary, || summary.to_string());
            Ok(Exit::Success)
        }
        JobEnd::Cancelled => Ok(Exit::Cancelled),
        JobEnd::Failed(error) => Err(job_failed(error)),
    }
}

/// A job that could not be started: what was asked for cannot be, or something around it is missing.
fn not_started(error: StartError) -> Failure {
    let failure = match &error {
        StartError::Build(_) | StartError::Function(_) | StartError::Restore(_) => Failure::invalid,
        StartError::Source { source, .. } if source.whose != Whose::External => Failure::invalid,
        StartError::Source { .. } | StartError::Storage(_) | StartError::Slot { .. } => Failure::environment,
    };
    failure(summary::JobFailed::new(error))
}

/// A job that failed while it ran, by its own fault or that of a disk or file.
fn job_failed(error: TaskError) -> Failure {
    let external = match &error {
        TaskError::Operator { source, .. } => source.whose() == Whose::External,
        TaskError::Restore { .. } | TaskError::Checkpoint { .. } => true,
        _ => false,
    };
    let failure = if external { Failure::environment } else { Failure::failed };
    failure(summary::JobFailed::new(error))
}

/// What asks a process to end. It listens all the time, so that none is missed while the job is looked at.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for the next signal. Cancel-safe.
    #[cfg(not(unix))]
    async fn next(&mut self) {
        drop(tokio::signal::ctrl_c().await);
    }
}

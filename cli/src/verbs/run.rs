//! `millstream run`: a job in this process.
//!
//! The first Ctrl-C stops the sources: what has been read is processed to the end, windows fire, outputs are
//! completed. The second one cancels the job at once.

use std::time::Duration;

use millstream_connectors::SinkResults;
use millstream_worker::{Job, JobEnd, JobOptions};

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
        let options = JobOptions::default();
        let job = Job::start(loaded.plan, &loaded.modules, &loaded.catalog, &options);
        let job = job.map_err(|e| Failure::failed(summary::JobFailed::new(e)))?;
        watch(job, loaded.catalog.results(), args.quiet, printer).await
    })
}

async fn watch(mut job: Job, results: &SinkResults, quiet: bool, printer: &Printer) -> Result<Exit, Failure> {
    let mut view = ProgressView::new(printer, quiet);
    let mut refresh = tokio::time::interval(REFRESH);
    let mut interrupts = 0;
    let end = loop {
        tokio::select! {
            biased;
            end = job.wait() => break end,
            interrupt = tokio::signal::ctrl_c() => {
                interrupt.map_err(|e| Failure::environment(miette::miette!("Ctrl-C cannot be listened for: {e}")))?;
                interrupts += 1;
                if interrupts == 1 {
                    printer.note("stopping: what has been read is processed to the end; press Ctrl-C again to cancel");
                    job.stop();
                } else {
                    job.cancel();
                }
            }
            _ = refresh.tick() => view.show(&job.status()),
        }
    };
    let status = job.status();
    view.finish();
    job.join();
    match end {
        JobEnd::Finished => {
            let summary = summary::Summary::new(status, results, interrupts > 0);
            printer.result(&summary, || summary.to_string());
            Ok(Exit::Success)
        }
        JobEnd::Cancelled => Ok(Exit::Cancelled),
        JobEnd::Failed(error) => Err(Failure::failed(summary::JobFailed::new(error))),
    }
}

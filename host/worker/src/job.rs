//! A running job: its slots, its subtasks and its end.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use millstream_graph::{NodeBody, NodeIndex, Plan, Subtask};
use millstream_net::LocalTransport;
use millstream_operator::{Clock, ConnectorError, FunctionError, OperatorMetrics, SystemClock};
use millstream_task::{Mail, Mailbox, Slot, SplitService, SubtaskEnd, TaskError};
use tokio::sync::{mpsc, watch};

use crate::{
    BuildError, Catalog, JobStatus, Modules, OperatorStatus,
    build::{Blueprint, SubtaskBuilder},
};

/// How a job is run.
#[derive(Clone)]
pub struct JobOptions {
    /// Processing time.
    pub clock: Arc<dyn Clock>,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock) }
    }
}

/// A job that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A node could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A module could not be compiled.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// A source could not be opened.
    #[error("the source `{name}` cannot be opened")]
    Source {
        /// The source's name in the job file.
        name: String,
        /// Why.
        source: ConnectorError,
    },
    /// The system gave no thread.
    #[error("slot {slot} cannot be started")]
    Slot {
        /// The slot.
        slot: u32,
        /// What the system said.
        source: io::Error,
    },
}

/// How a job has ended.
#[derive(Debug)]
pub enum JobEnd {
    /// All its input has been processed.
    Finished,
    /// It was cancelled.
    Cancelled,
    /// A subtask failed; the others were cancelled.
    Failed(TaskError),
}

/// A running job. Dropping it cancels it.
pub struct Job {
    plan: Arc<Plan>,
    metrics: Vec<Vec<Arc<OperatorMetrics>>>,
    mails: Vec<mpsc::UnboundedSender<Mail>>,
    cancel: watch::Sender<bool>,
    ends: Ends,
    slots: Vec<Slot>,
    services: tokio::task::JoinSet<()>,
    started: Instant,
}

impl Job {
    /// Starts all subtasks of a plan. Has to be called within a tokio runtime, which runs what the coordinator will:
    /// the enumerators of the sources.
    pub fn start(
        plan: Plan,
        modules: &Modules,
        catalog: &Catalog,
        options: &JobOptions,
    ) -> Result<Self, StartError> {
        let plan = Arc::new(plan);
        let blueprint = Arc::new(Blueprint::new(&plan, modules, catalog)?);
        let (splits, services) = start_enumerators(&plan, &blueprint)?;
        let metrics = make_metrics(&plan);
        let open = |slot| Slot::open(slot).map_err(|source| StartError::Slot { slot, source });
        let slots = (0..plan.execution.slots).map(open).collect::<Result<Vec<_>, _>>()?;
        let transport = Arc::new(LocalTransport::new());
        let (cancel, cancelled) = watch::channel(false);
        let (report, ends) = mpsc::unbounded_channel();
        let mut mails = Vec::new();
        for subtask in &plan.execution.subtasks {
            let (mail, mailbox) = Mailbox::new();
            mails.push(mail);
            let builder = SubtaskBuilder {
                plan: plan.clone(),
                blueprint: blueprint.clone(),
                subtask: subtask.clone(),
                metrics: subtask_metrics(&plan, &metrics, subtask),
                splits: splits.iter().find(|(v, _)| *v == subtask.vertex.0).map(|(_, s)| s.clone()),
                transport: transport.clone(),
                clock: options.clock.clone(),
            };
            let (report, cancelled) = (report.clone(), cancelled.clone());
            let run = move || async move {
                let end = match builder.build(mailbox) {
                    Ok(subtask) => subtask.run(cancelled).await,
                    Err(error) => SubtaskEnd::Failed(error),
                };
                // Nobody listens any more only if the job has been dropped, and with it cancelled.
                drop(report.send(end));
            };
            // A slot just opened is closed by nobody but its owner.
            slots[subtask.slot as usize].start(run).expect("the slot is open");
        }
        let started = Instant::now();
        let ends = Ends { reports: ends, end: JobEnd::Finished };
        Ok(Self { plan, metrics, mails, cancel, ends, slots, services, started })
    }

    /// Lets the sources read no further; what has been read is processed to the end, as if the input ended there.
    pub fn stop(&self) {
        for mail in &self.mails {
            // A subtask that has ended takes no mail.
            mail.send(Mail::Stop).ok();
        }
    }

    /// Gives up at once.
    pub fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    /// Waits for the end. Cancel-safe: called again it goes on waiting.
    pub async fn wait(&mut self) -> JobEnd {
        while self.ends.next().await {
            if !matches!(self.ends.end, JobEnd::Finished) {
                self.cancel();
            }
        }
        std::mem::replace(&mut self.ends.end, JobEnd::Finished)
    }

    /// Waits until the threads of the job have gone. Blocks; call it after [`Job::wait`].
    pub fn join(mut self) {
        self.services.abort_all();
        self.slots.drain(..).for_each(Slot::join);
    }

    /// Its figures now.
    pub fn status(&self) -> JobStatus {
        let elapsed = self.started.elapsed();
        let of = |(node, metrics): (usize, &Vec<Arc<OperatorMetrics>>)| {
            let node = self.plan.logical.node(NodeIndex(node));
            OperatorStatus::of(&node.name, kind(&node.body), metrics, elapsed)
        };
        JobStatus {
            job: self.plan.logical.job.name.to_string(),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            operators: self.metrics.iter().enumerate().map(of).collect(),
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// The ends of the subtasks, and what they mean for the job so far. Kept apart from the future that waits for them, as
/// that may be dropped between two of them.
struct Ends {
    reports: mpsc::UnboundedReceiver<SubtaskEnd>,
    end: JobEnd,
}

impl Ends {
    /// Takes the next end; false once all subtasks have ended. Cancel-safe.
    async fn next(&mut self) -> bool {
        let Some(next) = self.reports.recv().await else { return false };
        let end = std::mem::replace(&mut self.end, JobEnd::Finished);
        self.end = worse(end, next);
        true
    }
}

/// The more telling of two ends: a failure that is not another one's consequence, then any failure, then cancellation.
fn worse(end: JobEnd, next: SubtaskEnd) -> JobEnd {
    match (end, next) {
        (end, SubtaskEnd::Finished) => end,
        (JobEnd::Failed(first), SubtaskEnd::Failed(next))
            if first.is_consequence() && !next.is_consequence() =>
        {
            JobEnd::Failed(next)
        }
        (end @ JobEnd::Failed(_), _) => end,
        (_, SubtaskEnd::Failed(error)) => JobEnd::Failed(error),
        (_, SubtaskEnd::Cancelled) => JobEnd::Cancelled,
    }
}

fn kind(body: &NodeBody) -> &'static str {
    match body {
        NodeBody::Source(_) => "source",
        NodeBody::Sink(_) => "sink",
        NodeBody::Function(_) | NodeBody::Union | NodeBody::Watermark(_) => "operator",
    }
}

/// One set of figures a subtask, by node.
fn make_metrics(plan: &Plan) -> Vec<Vec<Arc<OperatorMetrics>>> {
    let of = |parallelism| (0..parallelism).map(|_| Arc::default()).collect();
    plan.logical.nodes.iter().map(|n| of(n.parallelism)).collect()
}

/// The figures of the chain of a subtask.
fn subtask_metrics(
    plan: &Plan,
    all: &[Vec<Arc<OperatorMetrics>>],
    subtask: &Subtask,
) -> Vec<Arc<OperatorMetrics>> {
    let chain = &plan.job.vertex(subtask.vertex).chain;
    chain.iter().map(|c| all[c.node.0][subtask.index.index()].clone()).collect()
}

type Splits = Vec<(usize, millstream_task::SplitRequests)>;

/// Starts the one that hands out splits for each source, by vertex.
fn start_enumerators(
    plan: &Plan,
    blueprint: &Blueprint,
) -> Result<(Splits, tokio::task::JoinSet<()>), StartError> {
    let mut services = tokio::task::JoinSet::new();
    let mut splits = Vec::new();
    for (vertex, v) in plan.job.vertices.iter().enumerate() {
        let Some(source) = blueprint.source(v.head()) else { continue };
        let name = &plan.logical.node(v.head()).name;
        let made = source.enumerator(v.parallelism);
        let enumerator = made.map_err(|source| StartError::Source { name: name.clone(), source })?;
        let (requests, service) = SplitService::new(enumerator);
        services.spawn(service.run());
        splits.push((vertex, requests));
    }
    Ok((splits, services))
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn failed(subtask: &str) -> SubtaskEnd {
        SubtaskEnd::Failed(TaskError::NoEnumerator { subtask: subtask.into() })
    }

    fn consequence() -> SubtaskEnd {
        let source = millstream_net::Disconnected(millstream_net::ChannelId { edge: 0, from: 0, to: 0 });
        SubtaskEnd::Failed(TaskError::Disconnected { subtask: "b[0]".into(), source })
    }

    fn ends(reports: Vec<SubtaskEnd>) -> JobEnd {
        reports.into_iter().fold(JobEnd::Finished, worse)
    }

    #[test]
    fn a_cause_counts_more_than_its_consequences() {
        let end = ends(vec![
            consequence(),
            SubtaskEnd::Cancelled,
            failed("a[0]"),
            failed("c[0]"),
            SubtaskEnd::Finished,
        ]);
        let JobEnd::Failed(TaskError::NoEnumerator { subtask }) = end else { panic!("{end:?}") };
        assert_eq!(subtask, "a[0]");
        assert!(matches!(ends(vec![SubtaskEnd::Finished, SubtaskEnd::Cancelled]), JobEnd::Cancelled));
        assert!(matches!(ends(Vec::new()), JobEnd::Finished));
    }

    #[test]
    fn what_was_reported_outlives_a_wait_that_is_given_up() {
        let (report, reports) = mpsc::unbounded_channel();
        let mut ends = Ends { reports, end: JobEnd::Finished };
        report.send(failed("a[0]")).expect("open");
        let wait = |ends: &mut Ends| {
            let all = async { while ends.next().await {} };
            pin!(all).poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        assert!(!wait(&mut ends), "one subtask is still running");
        report.send(SubtaskEnd::Finished).expect("open");
        drop(report);
        assert!(wait(&mut ends));
        assert!(matches!(ends.end, JobEnd::Failed(_)), "{:?}", ends.end);
    }
}

//! One execution of a job: its slots, its subtasks and their end. A job that is started again has another one.

use std::sync::Arc;

use millstream_graph::Plan;
use millstream_net::LocalTransport;
use millstream_operator::{OperatorMetrics, SplitEnumerator};
use millstream_storage::StoredSnapshot;
use millstream_task::{CheckpointLink, Mail, Mailbox, Slot, SplitRequests, SplitService, SubtaskEnd};
use millstream_types::Attempt;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    JobEnd, JobOptions, StartError,
    build::{Blueprint, SubtaskBuilder},
    checkpoint::{CheckpointService, Connections, Layout, Participant, ProgramContent},
    control::{SnapshotError, SnapshotOrder},
    edges::EdgeName,
    restore::{RestorePlan, key_of, windows_of},
    status::Board,
};

/// What all executions of a job have in common.
pub(crate) struct JobSpec {
    pub(crate) plan: Arc<Plan>,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) options: JobOptions,
    /// What savepoints have besides state, if there are checkpoints.
    pub(crate) program: Option<Arc<ProgramContent>>,
}

/// One execution. Dropping it cancels it.
pub(crate) struct Execution {
    mails: Vec<mpsc::UnboundedSender<Mail>>,
    cancel: watch::Sender<bool>,
    ends: Ends,
    slots: Vec<Slot>,
    services: JoinSet<()>,
    /// Takes orders for snapshots, if there are checkpoints.
    orders: Option<mpsc::UnboundedSender<SnapshotOrder>>,
}

impl Execution {
    /// Starts all subtasks, where the job begins or where a snapshot left it.
    pub(crate) async fn start(
        spec: &JobSpec,
        attempt: Attempt,
        restore: Option<Arc<StoredSnapshot>>,
        board: &Board,
    ) -> Result<Self, StartError> {
        let JobSpec { plan, blueprint, options, program } = spec;
        let of_run =
            |snapshot: &StoredSnapshot| options.checkpoints.as_ref().is_some_and(|c| c.run.has(snapshot));
        let is_base = restore.as_deref().is_some_and(of_run);
        let base = restore.as_ref().filter(|_| is_base).map(|snapshot| Arc::new(snapshot.metadata.clone()));
        let restore = restore
            .map(|snapshot| RestorePlan::new(snapshot, is_base, plan, options.allow_dropped_state))
            .transpose()?;
        let (reports, reported) = mpsc::unbounded_channel();
        let link = |participant| {
            options.checkpoints.as_ref().map(|_| CheckpointLink::new(participant, reports.clone()))
        };
        let enumerators = open_enumerators(plan, blueprint, restore.as_ref()).await?;
        let mut services = JoinSet::new();
        let splits = start_enumerators(plan, enumerators, link, &mut services);
        let metrics = make_metrics(plan);
        board.started(metrics.clone());
        let open = |slot| Slot::open(slot).map_err(|source| StartError::Slot { slot, source });
        let slots = (0..plan.execution.slots).map(open).collect::<Result<Vec<_>, _>>()?;
        let transport = Arc::new(LocalTransport::new());
        let (cancel, cancelled) = watch::channel(false);
        let (report, ends) = mpsc::unbounded_channel();
        let first = match &options.checkpoints {
            Some(checkpoints) => checkpoints.run.next_id().await?,
            None => 0,
        };
        let mut mails = Vec::new();
        for (participant, subtask) in plan.execution.subtasks.iter().enumerate() {
            let (mail, mailbox) = Mailbox::new();
            mails.push(mail);
            let builder = SubtaskBuilder {
                plan: plan.clone(),
                blueprint: blueprint.clone(),
                subtask: subtask.clone(),
                attempt,
                metrics: subtask_metrics(plan, &metrics, subtask),
                splits: splits.iter().find(|(v, _)| *v == subtask.vertex.0).map(|(_, s)| s.clone()),
                transport: transport.clone(),
                clock: options.clock.clone(),
                checkpoints: link(participant),
                restore: restore.clone(),
            };
            let (report, cancelled) = (report.clone(), cancelled.clone());
            let run = move || async move {
                let built = builder.build_restored(mailbox).await;
                // What it was restored from is not needed any more.
                drop(builder);
                let end = match built {
                    Ok(subtask) => subtask.run(cancelled).await,
                    Err(error) => SubtaskEnd::Failed(error),
                };
                // Nobody listens any more only if the job has been dropped, and with it cancelled.
                drop(report.send(end));
            };
            // A slot just opened is closed by nobody but its owner.
            slots[subtask.slot as usize].start(run).expect("the slot is open");
        }
        let mut orders = None;
        if let (Some(checkpoints), Some(program)) = (&options.checkpoints, program) {
            let (order, ordered) = mpsc::unbounded_channel();
            orders = Some(order);
            let connections = Connections {
                mails: mails.clone(),
                orders: ordered,
                reports: reported,
                ends: report,
                cancelled,
                board: board.clone(),
                clock: options.clock.clone(),
            };
            let layout = layout(plan, program, splits.len());
            let service = CheckpointService::new(checkpoints.clone(), layout, first, base, connections);
            services.spawn(service.run());
        }
        let ends = Ends { reports: ends, end: JobEnd::Finished };
        Ok(Self { mails, cancel, ends, slots, services, orders })
    }

    /// Passes an order on to whoever takes snapshots.
    pub(crate) fn order(&self, order: SnapshotOrder) {
        match &self.orders {
            // If nobody takes orders any more, whoever waits for the answer is told by its end.
            Some(orders) => drop(orders.send(order)),
            None => drop(order.reply.send(Err(SnapshotError::NoCheckpoints))),
        }
    }

    /// Lets the sources read no further.
    pub(crate) fn stop(&self) {
        for mail in &self.mails {
            // A subtask that has ended takes no mail.
            mail.send(Mail::Stop).ok();
        }
    }

    /// Gives up at once.
    pub(crate) fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    /// Waits for the end. Cancel-safe: called again it goes on waiting.
    pub(crate) async fn wait(&mut self) -> JobEnd {
        while self.ends.next().await {
            if !matches!(self.ends.end, JobEnd::Finished) {
                self.cancel();
            }
        }
        std::mem::replace(&mut self.ends.end, JobEnd::Finished)
    }

    /// Waits, after the end, until nothing of it is left: no thread, and nothing that is being stored.
    pub(crate) async fn close(mut self) {
        while self.services.join_next().await.is_some() {}
        let slots = std::mem::take(&mut self.slots);
        let joined = tokio::task::spawn_blocking(move || slots.into_iter().for_each(Slot::join));
        // Joining does not panic, and nobody cancels it.
        drop(joined.await);
    }
}

impl Drop for Execution {
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

/// One set of figures a subtask, by node.
fn make_metrics(plan: &Plan) -> Vec<Vec<Arc<OperatorMetrics>>> {
    let of = |parallelism| (0..parallelism).map(|_| Arc::default()).collect();
    plan.logical.nodes.iter().map(|n| of(n.parallelism)).collect()
}

/// The figures of the chain of a subtask.
fn subtask_metrics(
    plan: &Plan,
    all: &[Vec<Arc<OperatorMetrics>>],
    subtask: &millstream_graph::Subtask,
) -> Vec<Arc<OperatorMetrics>> {
    let chain = &plan.job.vertex(subtask.vertex).chain;
    chain.iter().map(|c| all[c.node.0][subtask.index.index()].clone()).collect()
}

/// The enumerators of the sources by vertex, where they begin or where a snapshot left them.
type Enumerators = Vec<(usize, Box<dyn SplitEnumerator>)>;

async fn open_enumerators(
    plan: &Plan,
    blueprint: &Blueprint,
    restore: Option<&RestorePlan>,
) -> Result<Enumerators, StartError> {
    let mut enumerators = Vec::new();
    for (vertex, v) in plan.job.vertices.iter().enumerate() {
        let Some(source) = blueprint.source(v.head()) else { continue };
        let node = plan.logical.node(v.head());
        let snapshot = match restore {
            Some(restore) => restore.source(&node.id).await?,
            None => None,
        };
        let made = match snapshot {
            Some(snapshot) => source.restore(v.parallelism, &snapshot),
            None => source.enumerator(v.parallelism),
        };
        let failed = |source| StartError::Source { name: node.name.clone(), source };
        enumerators.push((vertex, made.map_err(failed)?));
    }
    Ok(enumerators)
}

/// Starts the one that hands out splits for each source, by vertex. They take part in checkpoints behind the subtasks.
fn start_enumerators(
    plan: &Plan,
    enumerators: Enumerators,
    link: impl Fn(usize) -> Option<CheckpointLink>,
    services: &mut JoinSet<()>,
) -> Vec<(usize, SplitRequests)> {
    let subtasks = plan.execution.subtasks.len();
    let start = |(at, (vertex, enumerator)): (usize, (usize, Box<dyn SplitEnumerator>))| {
        let v = &plan.job.vertices[vertex];
        let (requests, mut service) = SplitService::new(enumerator, v.parallelism);
        if let Some(link) = link(subtasks + at) {
            service = service.with_checkpoints(link, plan.logical.node(v.head()).id.clone());
        }
        services.spawn(service.run());
        (vertex, requests)
    };
    enumerators.into_iter().enumerate().map(start).collect()
}

/// Who takes part in the checkpoints of a job with so many sources.
fn layout(plan: &Plan, program: &Arc<ProgramContent>, sources: usize) -> Layout {
    let nodes = plan.logical.nodes.iter();
    let keys = nodes.clone().map(|node| (node.id.to_string(), key_of(node)));
    let windows = nodes.map(|node| (node.id.to_string(), windows_of(node)));
    let subtasks = plan.execution.subtasks.iter().map(|s| Participant::Subtask(s.index.index()));
    Layout {
        job: plan.logical.job.name.to_string(),
        max_parallelism: plan.logical.job.max_parallelism,
        keys: keys.collect(),
        windows: windows.collect(),
        edges: EdgeName::of_exchanges(plan),
        program: program.clone(),
        participants: subtasks.chain(std::iter::repeat_n(Participant::Enumerator, sources)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use millstream_task::TaskError;

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

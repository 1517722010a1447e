//! One execution of a job: its subtasks, what coordinates them, and their end. A job that is started again has another one.

use std::sync::Arc;

use millstream_graph::Plan;
use millstream_operator::{Beginning, OperatorMetrics, SplitEnumerator};
use millstream_storage::StoredSnapshot;
use millstream_task::{CheckpointLink, CheckpointReport, SplitRequests, SplitService, SubtaskEnd};
use millstream_types::{Attempt, RunId};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    DeployedTasks, Deployment, JobEnd, JobOptions, Notice, StartError, Wires,
    build::Blueprint,
    checkpoint::{
        CheckpointService, Connections, Layout, Participant, ParticipantGroup, ProgramContent,
        StoredSnapshots,
    },
    control::{SnapshotError, SnapshotOrder},
    edges::EdgeName,
    restore::{RestorePlan, key_of, windows_of},
    status::Board,
    tasks::{JobParts, TaskRunner},
};

/// What all executions of a job have in common.
pub(crate) struct JobSpec {
    pub(crate) parts: Arc<JobParts>,
    pub(crate) options: JobOptions,
    /// What savepoints have besides state, if there are checkpoints.
    pub(crate) program: Option<Arc<ProgramContent>>,
    pub(crate) runner: Arc<dyn TaskRunner>,
}

/// One execution. Dropping it cancels it.
pub(crate) struct Execution {
    notices: Vec<mpsc::UnboundedSender<Notice>>,
    cancel: watch::Sender<bool>,
    ends: Ends,
    running: JoinSet<()>,
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
        let JobSpec { parts, options, program, runner } = spec;
        let JobParts { plan, blueprint, clock } = &**parts;
        let of_run =
            |snapshot: &StoredSnapshot| options.checkpoints.as_ref().is_some_and(|c| c.run.has(snapshot));
        let is_base = restore.as_deref().is_some_and(of_run);
        let base = restore.as_ref().filter(|_| is_base).map(|snapshot| Arc::new(snapshot.metadata.clone()));
        let restore = restore
            .map(|snapshot| RestorePlan::new(snapshot, is_base, plan, options.allow_dropped_state))
            .transpose()?;
        let first = match &options.checkpoints {
            Some(checkpoints) => checkpoints.run.next_id().await?,
            None => 0,
        };
        let enumerators = open_enumerators(plan, blueprint, restore.as_ref()).await?;
        begin_sinks(plan, blueprint, restore.as_ref(), (options.run, attempt))?;
        let layout = options.checkpoints.as_ref().map(|_| Arc::new(layout(plan, enumerators.len())));
        let (participation, participated) = mpsc::unbounded_channel();
        let (cancel, cancelled) = watch::channel(false);
        let (report, ends) = mpsc::unbounded_channel();
        let (mut services, mut notices) = (JoinSet::new(), Vec::new());
        let (reports, reported) = mpsc::unbounded_channel();
        let splits = start_enumerators(plan, enumerators, layout.as_ref().map(|_| &reports), &mut services);
        if let Some(layout) = &layout {
            let (notice, noticed) = mpsc::unbounded_channel();
            notices.push(notice);
            let group = ParticipantGroup {
                layout: Some(layout.clone()),
                mails: Vec::new(),
                notices: noticed,
                reports: reported,
                participation: participation.clone(),
                cancelled: cancelled.clone(),
                stored: StoredSnapshots::new(),
            };
            services.spawn(group.run());
        }
        let metrics = make_metrics(plan);
        let wires = Wires {
            participation,
            ends: report.clone(),
            splits,
            cancelled: cancelled.clone(),
            metrics: metrics.clone(),
        };
        let deployment = Deployment {
            parts: parts.clone(),
            run: options.run,
            attempt,
            restore,
            layout: layout.clone(),
            wires,
        };
        let deployed = runner.deploy(&deployment).await;
        drop(deployment);
        let DeployedTasks { notices: of_tasks, running } = match deployed {
            Ok(deployed) => deployed,
            Err(error) => {
                // What has been started here ends, and what it has begun to store with it.
                cancel.send_replace(true);
                while services.join_next().await.is_some() {}
                return Err(error);
            }
        };
        notices.extend(of_tasks);
        board.started(metrics);
        let mut orders = None;
        if let (Some(checkpoints), Some(program), Some(layout)) = (&options.checkpoints, program, layout) {
            let (order, ordered) = mpsc::unbounded_channel();
            orders = Some(order);
            let connections = Connections {
                notices: notices.clone(),
                orders: ordered,
                participation: participated,
                ends: report,
                cancelled,
                board: board.clone(),
                clock: clock.clone(),
            };
            let service = CheckpointService::new(
                checkpoints.clone(),
                layout,
                program.clone(),
                first,
                base,
                connections,
            );
            services.spawn(service.run());
        }
        let ends = Ends { reports: ends, end: JobEnd::Finished };
        Ok(Self { notices, cancel, ends, running, services, orders })
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
        // Those that have ended hear nothing.
        self.notices.iter().for_each(|to| drop(to.send(Notice::Stop)));
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
        // Those who are told nothing any more end.
        self.notices.clear();
        while self.services.join_next().await.is_some() {}
        while self.running.join_next().await.is_some() {}
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
pub(crate) fn make_metrics(plan: &Plan) -> Vec<Vec<Arc<OperatorMetrics>>> {
    let of = |parallelism| (0..parallelism).map(|_| Arc::default()).collect();
    plan.logical.nodes.iter().map(|n| of(n.parallelism)).collect()
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

/// Has sinks ready the places that they write to.
fn begin_sinks(
    plan: &Plan,
    blueprint: &Blueprint,
    restore: Option<&RestorePlan>,
    (run, attempt): (RunId, Attempt),
) -> Result<(), StartError> {
    for (index, node) in plan.logical.iter() {
        let Some(sink) = blueprint.sink(index) else { continue };
        let restored = restore.is_some_and(|restore| restore.has(&node.id));
        let begun = sink.begin(&Beginning { run, attempt, restored });
        begun.map_err(|source| StartError::Sink { name: node.name.clone(), source })?;
    }
    Ok(())
}

/// Starts the one that hands out splits for each source, by vertex. They take part in checkpoints behind the subtasks.
fn start_enumerators(
    plan: &Plan,
    enumerators: Enumerators,
    reports: Option<&mpsc::UnboundedSender<(usize, CheckpointReport)>>,
    services: &mut JoinSet<()>,
) -> Vec<(usize, SplitRequests)> {
    let subtasks = plan.execution.subtasks.len();
    let start = |(at, (vertex, enumerator)): (usize, (usize, Box<dyn SplitEnumerator>))| {
        let v = &plan.job.vertices[vertex];
        let (requests, mut service) = SplitService::new(enumerator, v.parallelism);
        if let Some(reports) = reports {
            let link = CheckpointLink::new(subtasks + at, reports.clone());
            service = service.with_checkpoints(link, plan.logical.node(v.head()).id.clone());
        }
        services.spawn(service.run());
        (vertex, requests)
    };
    enumerators.into_iter().enumerate().map(start).collect()
}

/// Who takes part in the checkpoints of a job with so many sources.
pub(crate) fn layout(plan: &Plan, sources: usize) -> Layout {
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
        let source = millstream_net::Disconnected::new(millstream_net::ChannelId { edge: 0, from: 0, to: 0 });
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

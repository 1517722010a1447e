//! The subtasks of one execution in a worker: started from a deployment, connected by messages.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use millstream_control::{
    ExecutionId, FromWorker, NoticeMessage, OperatorOfSubtask, TaskDeployment, TaskEvent, TaskFailure,
    TaskOrder,
};
use millstream_graph::Plan;
use millstream_net::{ChannelId, Endpoint, ExecutionKey, NodeId, Place, Route, Transport};
use millstream_operator::{Assignment, ConnectorError, Figures, OperatorMetrics, SystemClock};
use millstream_storage::JobStore;
use millstream_task::{SplitRequest, SplitRequests, SubtaskEnd};
use millstream_types::{Attempt, MaxParallelism, RunId};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

use super::{Shared, alignment::AlignedSources};
use crate::{
    Deployment, Notice, Participation, PlannedJob, Wires,
    build::Blueprint,
    edges::EdgeName,
    execution::{layout, make_metrics},
    remote,
    restore::RestorePlan,
    status::in_full,
    tasks::{JobParts, start_tasks},
};

/// Says what becomes of an execution to whoever coordinates it.
#[derive(Clone)]
pub(super) struct Events {
    execution: ExecutionId,
    outbox: mpsc::UnboundedSender<FromWorker>,
}

impl Events {
    pub(super) fn new(execution: ExecutionId, outbox: mpsc::UnboundedSender<FromWorker>) -> Self {
        Self { execution, outbox }
    }

    fn send(&self, event: TaskEvent) {
        // A coordinator that has been lost starts the job again without asking.
        self.outbox.send(FromWorker::Task(self.execution, event)).ok();
    }

    /// Nothing is left of it.
    pub(super) fn gone(&self) {
        self.send(TaskEvent::Gone);
    }
}

/// Runs the subtasks of a deployment to their end. All that they come to goes to `events`.
pub(super) async fn execute(
    shared: &Shared,
    coordinator: SocketAddr,
    deployment: TaskDeployment,
    mut orders: mpsc::UnboundedReceiver<TaskOrder>,
    events: &Events,
) {
    let mut early = Vec::new();
    let started = tokio::select! {
        biased;
        () = given_up(&mut orders, &mut early) => return events.send(TaskEvent::Ended(Err(TaskFailure::Cancelled))),
        started = start(shared, coordinator, deployment) => started,
    };
    match started {
        Ok(running) => {
            events.send(TaskEvent::Started);
            running.run(early, orders, events).await;
        }
        Err(message) => {
            let failure = TaskFailure::Failed { message, consequence: false, external: false };
            events.send(TaskEvent::Ended(Err(failure)));
        }
    }
}

/// Waits until the execution is given up before it has been started. What else is ordered then, as a checkpoint, is for when
/// it has been.
async fn given_up(orders: &mut mpsc::UnboundedReceiver<TaskOrder>, early: &mut Vec<TaskOrder>) {
    loop {
        match orders.recv().await {
            None | Some(TaskOrder::Cancel | TaskOrder::Close) => return,
            Some(order) => early.push(order),
        }
    }
}

/// Subtasks that run here.
struct Running {
    /// Peers may open channels for as long as it is there.
    _transport: Arc<dyn Transport>,
    notices: mpsc::UnboundedSender<Notice>,
    tasks: JoinSet<()>,
    participation: mpsc::UnboundedReceiver<(usize, Participation)>,
    ends: mpsc::UnboundedReceiver<SubtaskEnd>,
    splits: SplitsAsked,
    cancel: watch::Sender<bool>,
    metrics: Metrics,
    aligned: AlignedSources,
    max_parallelism: MaxParallelism,
}

/// The figures of the operators that are here, with what has been said of them.
type Metrics = Vec<(OperatorOfSubtask, Arc<OperatorMetrics>, Figures)>;

/// Plans the job, reads what it goes on from, and starts the subtasks that are this worker's. The error says what is in the
/// way.
async fn start(
    shared: &Shared,
    coordinator: SocketAddr,
    deployment: TaskDeployment,
) -> Result<Running, String> {
    let mut modules = HashMap::new();
    for module in &deployment.program.modules {
        let bytes = shared.modules.get(module.digest, &shared.endpoint, coordinator).await;
        modules.insert(module.name.clone(), bytes.map_err(|e| in_full(&e))?);
    }
    let (job, engine) = (deployment.program.job.clone(), shared.engine.clone());
    let planned = tokio::task::spawn_blocking(move || PlannedJob::new(&job, modules, &engine)).await;
    let planned = planned.map_err(|e| format!("planning has failed: {e}"))?;
    let planned =
        planned.map_err(|e| format!("the job cannot be planned on this worker:\n{}", e.0.render(false)))?;
    if planned.fingerprint() != deployment.plan {
        return Err("the job's plan is another one on this worker than on the coordinator: both have to have the same \
                    files and be of the same version"
            .to_owned());
    }
    let PlannedJob { plan, modules, catalog, .. } = planned;
    let blueprint = Blueprint::new(&plan, &modules, &catalog, &shared.dir).map_err(|e| in_full(&e))?;
    let plan = Arc::new(plan);
    let restore = match &deployment.restore {
        None => None,
        Some(from) => {
            let found = JobStore::open(&from.location).await.map_err(|e| e.in_full())?;
            let restore = RestorePlan::new(Arc::new(found), from.is_base, &plan, from.allow_dropped_state);
            Some(restore.map_err(|e| in_full(&e))?)
        }
    };
    let slots = deployment.slots.iter().enumerate();
    let here = slots.filter(|(_, place)| place.node == shared.endpoint.node().0);
    let here: Vec<u32> = here.map(|(slot, _)| slot as u32).collect();
    let transport = transport(&shared.endpoint, &deployment, &plan);
    let metrics = make_metrics(&plan);
    let aligned = AlignedSources::new(&plan, &blueprint, &here);
    let own = own_metrics(&plan, &here, &metrics);
    let (participation, participated) = mpsc::unbounded_channel();
    let (end, ends) = mpsc::unbounded_channel();
    let (cancel, cancelled) = watch::channel(false);
    let (splits, requests) = forward_splits(&plan, &blueprint);
    let max_parallelism = plan.logical.job.max_parallelism;
    let sources = splits.len();
    let layout = deployment.checkpoints.then(|| Arc::new(layout(&plan, sources)));
    let parts = Arc::new(JobParts { plan, blueprint: Arc::new(blueprint), clock: Arc::new(SystemClock) });
    let wires = Wires { participation, ends: end, splits, cancelled, metrics };
    let attempt = Attempt(deployment.execution.attempt);
    let local = Deployment { parts, run: RunId(deployment.run), attempt, restore, layout, wires };
    let (notices, tasks) = start_tasks(&local, &here, transport.clone()).map_err(|e| in_full(&e))?;
    Ok(Running {
        _transport: transport,
        notices,
        tasks,
        participation: participated,
        ends,
        splits: requests,
        cancel,
        metrics: own,
        aligned,
        max_parallelism,
    })
}

/// Channels within this process and to the others of the execution.
fn transport(endpoint: &Endpoint, deployment: &TaskDeployment, plan: &Plan) -> Arc<dyn Transport> {
    let ExecutionId { job, attempt } = deployment.execution;
    let edges = EdgeName::of_exchanges(plan);
    let places = deployment.slots.iter();
    let places: Vec<_> = places.map(|at| Place { node: NodeId(at.node), address: at.address }).collect();
    // Subtask i of every vertex is in slot i.
    let route = move |channel: ChannelId| Route {
        from: places[channel.from as usize],
        to: places[channel.to as usize],
        schema: edges[channel.edge as usize].schema.clone(),
    };
    Arc::new(endpoint.transport(ExecutionKey { job: job.0, attempt }, route))
}

/// The figures of operators in these slots.
fn own_metrics(plan: &Plan, here: &[u32], all: &[Vec<Arc<OperatorMetrics>>]) -> Metrics {
    let here = plan.execution.subtasks.iter().filter(|subtask| here.contains(&subtask.slot));
    let of_subtask = |subtask: &millstream_graph::Subtask| {
        let index = subtask.index;
        let chain = plan.job.vertex(subtask.vertex).chain.iter();
        let of = move |node: usize| {
            let of = OperatorOfSubtask { node: node as u32, subtask: index.0 };
            (of, all[node][index.index()].clone(), Figures::default())
        };
        chain.map(move |chained| of(chained.node.0)).collect::<Vec<_>>()
    };
    here.flat_map(of_subtask).collect()
}

/// What the readers of sources ask for, by the vertex of each.
type SplitsAsked = mpsc::UnboundedReceiver<(usize, SplitRequest)>;

/// What readers ask for splits with, by vertex, and what they ask.
fn forward_splits(plan: &Plan, blueprint: &Blueprint) -> (Vec<(usize, SplitRequests)>, SplitsAsked) {
    let (all, requests) = mpsc::unbounded_channel();
    let sources = plan.job.vertices.iter().enumerate().filter(|(_, v)| blueprint.source(v.head()).is_some());
    let of_source = |(vertex, _): (usize, _)| {
        let (splits, mut asked) = SplitRequests::forwarded();
        let all = all.clone();
        tokio::spawn(async move {
            while let Some(request) = asked.recv().await {
                all.send((vertex, request)).ok();
            }
        });
        (vertex, splits)
    };
    (sources.map(of_source).collect(), requests)
}

impl Running {
    /// Brings messages to and fro until nothing is left of the subtasks.
    async fn run(
        mut self,
        early: Vec<TaskOrder>,
        mut orders: mpsc::UnboundedReceiver<TaskOrder>,
        events: &Events,
    ) {
        for order in early {
            match order {
                TaskOrder::Notice(message) => self.notice(message, events),
                TaskOrder::Watermarks(watermarks) => self.aligned.set(watermarks),
                // Nobody has asked for a split yet.
                TaskOrder::Split { .. } | TaskOrder::Cancel | TaskOrder::Close => {}
            }
        }
        let mut replies: HashMap<u64, oneshot::Sender<Result<Assignment, ConnectorError>>> = HashMap::new();
        let (mut next_request, mut ended, mut ordered) = (0, false, true);
        let mut figures = tokio::time::interval(FIGURES);
        figures.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut watermarks = tokio::time::interval(WATERMARKS);
        watermarks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !ended {
            tokio::select! {
                order = orders.recv(), if ordered => match order {
                    Some(TaskOrder::Notice(message)) => self.notice(message, events),
                    Some(TaskOrder::Split { request, answer }) => {
                        // Of one that is not answered the reader is told that nobody is there.
                        if let (Some(reply), Some(answer)) = (replies.remove(&request), remote::assignment(answer)) {
                            reply.send(answer).ok();
                        }
                    }
                    Some(TaskOrder::Watermarks(watermarks)) => self.aligned.set(watermarks),
                    Some(TaskOrder::Cancel | TaskOrder::Close) | None => {
                        ordered = false;
                        self.cancel.send_replace(true);
                    }
                },
                Some((participant, participation)) = self.participation.recv() => {
                    self.participated(participant, &participation, events);
                }
                end = self.ends.recv() => match end {
                    Some(end) => events.send(TaskEvent::Ended(remote::end_message(end))),
                    None => ended = true,
                },
                Some((vertex, request)) = self.splits.recv() => match request {
                    SplitRequest::Next { subtask, reply } => {
                        next_request += 1;
                        replies.insert(next_request, reply);
                        let vertex = vertex as u32;
                        events.send(TaskEvent::SplitWanted { vertex, subtask, request: next_request });
                    }
                    SplitRequest::Passed { subtask, checkpoint } => {
                        events.send(TaskEvent::ReaderPassed { vertex: vertex as u32, subtask, checkpoint });
                    }
                },
                _ = figures.tick() => self.send_figures(events),
                _ = watermarks.tick() => self.send_watermarks(events),
            }
        }
        self.close(events).await;
    }

    /// Waits until nothing runs any more and nothing is being stored.
    async fn close(mut self, events: &Events) {
        let (closed, _) = mpsc::unbounded_channel();
        drop(std::mem::replace(&mut self.notices, closed));
        while self.tasks.join_next().await.is_some() {}
        while let Ok((participant, participation)) = self.participation.try_recv() {
            self.participated(participant, &participation, events);
        }
        // Nobody waits for sources that have ended.
        self.send_watermarks(events);
        self.send_figures(events);
    }

    fn notice(&self, message: NoticeMessage, events: &Events) {
        let checkpoint = match &message {
            NoticeMessage::Triggered(barrier, _) => barrier.id,
            _ => 0,
        };
        match remote::notice(message) {
            // Those that have ended hear nothing.
            Ok(notice) => drop(self.notices.send(notice)),
            Err(error) => {
                let participation = Participation::Declined { checkpoint, reason: error.in_full() };
                self.participated(0, &participation, events);
            }
        }
    }

    fn participated(&self, participant: usize, participation: &Participation, events: &Events) {
        let message = remote::participation_message(participation, self.max_parallelism);
        events.send(TaskEvent::Participation(participant as u32, message));
    }

    /// Says how far event time is, for those elsewhere that wait for it.
    fn send_watermarks(&mut self, events: &Events) {
        let changed = self.aligned.changed();
        if !changed.is_empty() {
            events.send(TaskEvent::Watermarks(changed));
        }
    }

    /// Says what has changed.
    fn send_figures(&mut self, events: &Events) {
        let mut changed = Vec::new();
        for (of, metrics, said) in &mut self.metrics {
            let now = metrics.figures();
            if now != *said {
                changed.push((*of, now.clone()));
                *said = now;
            }
        }
        if !changed.is_empty() {
            events.send(TaskEvent::Figures(changed));
        }
    }
}

/// How often others are told how far event time is here: much more often than the rows that a source may be ahead take.
const WATERMARKS: Duration = Duration::from_millis(50);
/// How often figures are sent.
const FIGURES: Duration = Duration::from_millis(500);

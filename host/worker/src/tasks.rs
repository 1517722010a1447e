//! The subtasks of an execution: who runs them, and those that run in this process.

use std::sync::Arc;

use async_trait::async_trait;
use millstream_graph::{Plan, Subtask};
use millstream_net::{LocalTransport, Transport};
use millstream_operator::{Clock, OperatorMetrics};
use millstream_storage::StoredSnapshot;
use millstream_task::{CheckpointLink, Mailbox, Slot, SplitRequests, SubtaskEnd};
use millstream_types::{Attempt, RunId};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use crate::{
    StartError,
    build::{Blueprint, SubtaskBuilder},
    checkpoint::{Layout, Notice, ParticipantGroup, Participation, StoredSnapshots},
    restore::RestorePlan,
};

/// Runs the subtasks of executions.
#[async_trait]
pub trait TaskRunner: Send + Sync {
    /// Has all subtasks of an execution run. From then on each of them reports its end by the deployment's wires, whatever
    /// comes; who runs them ends once all have.
    async fn deploy(&self, deployment: &Deployment) -> Result<DeployedTasks, StartError>;
}

/// An execution whose subtasks are to run.
pub struct Deployment {
    pub(crate) parts: Arc<JobParts>,
    /// The run of the job.
    pub run: RunId,
    /// How often it has been started before.
    pub attempt: Attempt,
    pub(crate) restore: Option<RestorePlan>,
    /// Who takes part in checkpoints, if the job takes any.
    pub(crate) layout: Option<Arc<Layout>>,
    pub(crate) wires: Wires,
}

impl Deployment {
    /// What runs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.parts.plan
    }

    /// What the job goes on from, if it does, and whether checkpoints may build on it.
    pub fn restore(&self) -> Option<(&StoredSnapshot, bool)> {
        self.restore.as_ref().map(|restore| (restore.snapshot(), restore.is_base()))
    }

    /// Whether the job takes checkpoints.
    pub fn takes_checkpoints(&self) -> bool {
        self.layout.is_some()
    }

    /// What subtasks are connected with.
    pub fn wires(&self) -> &Wires {
        &self.wires
    }
}

/// What connects the subtasks of an execution with whoever coordinates it.
#[derive(Clone)]
pub struct Wires {
    /// What participants of checkpoints come to, by their number.
    pub participation: mpsc::UnboundedSender<(usize, Participation)>,
    /// How subtasks end. The execution is over when nobody has it any more.
    pub ends: mpsc::UnboundedSender<SubtaskEnd>,
    /// Who hands out splits, by the vertex of the source.
    pub splits: Vec<(usize, SplitRequests)>,
    /// Becomes true when the execution is given up.
    pub cancelled: watch::Receiver<bool>,
    /// One set of figures a subtask, by node.
    pub metrics: Vec<Vec<Arc<OperatorMetrics>>>,
}

/// Subtasks that have been deployed.
pub struct DeployedTasks {
    /// To all of them, in as many processes as they are in. Whoever runs them goes on until this is closed.
    pub notices: Vec<mpsc::UnboundedSender<Notice>>,
    /// Ends when nothing is left of them.
    pub running: JoinSet<()>,
}

/// What all executions of a job have in common in one process.
pub(crate) struct JobParts {
    pub(crate) plan: Arc<Plan>,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Runs all subtasks in this process.
pub(crate) struct LocalRunner;

#[async_trait]
impl TaskRunner for LocalRunner {
    async fn deploy(&self, deployment: &Deployment) -> Result<DeployedTasks, StartError> {
        let slots: Vec<u32> = (0..deployment.plan().execution.slots).collect();
        let (notices, running) = start_tasks(deployment, &slots, Arc::new(LocalTransport::new()))?;
        Ok(DeployedTasks { notices: vec![notices], running })
    }
}

/// Starts those subtasks of an execution that are in these slots, each slot a thread of its own.
pub(crate) fn start_tasks(
    deployment: &Deployment,
    slots: &[u32],
    transport: Arc<dyn Transport>,
) -> Result<(mpsc::UnboundedSender<Notice>, JoinSet<()>), StartError> {
    let Deployment { parts, layout, wires, .. } = deployment;
    let open = |&slot: &u32| Slot::open(slot).map_err(|source| StartError::Slot { slot, source });
    let threads = slots.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let (reports, reported) = mpsc::unbounded_channel();
    let mut mails = Vec::new();
    for (participant, subtask) in parts.plan.execution.subtasks.iter().enumerate() {
        let Some(thread) = slots.iter().position(|slot| *slot == subtask.slot) else { continue };
        let (mail, mailbox) = Mailbox::new();
        mails.push(mail);
        let link = layout.as_ref().map(|_| CheckpointLink::new(participant, reports.clone()));
        let builder = builder(deployment, subtask, link, transport.clone());
        let (report, cancelled) = (wires.ends.clone(), wires.cancelled.clone());
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
        threads[thread].start(run).expect("the slot is open");
    }
    let (notices, noticed) = mpsc::unbounded_channel();
    let group = ParticipantGroup {
        layout: layout.clone(),
        mails,
        notices: noticed,
        reports: reported,
        participation: wires.participation.clone(),
        cancelled: wires.cancelled.clone(),
        stored: deployment
            .restore
            .as_ref()
            .map_or_else(StoredSnapshots::new, |restore| restore.stored(&parts.plan)),
    };
    let mut running = JoinSet::new();
    running.spawn(group.run());
    running.spawn(async move {
        for thread in threads {
            thread.close().await;
        }
    });
    Ok((notices, running))
}

fn builder(
    deployment: &Deployment,
    subtask: &Subtask,
    checkpoints: Option<CheckpointLink>,
    transport: Arc<dyn Transport>,
) -> SubtaskBuilder {
    let Deployment { parts, run, attempt, restore, wires, .. } = deployment;
    let chain = &parts.plan.job.vertex(subtask.vertex).chain;
    let metrics = chain.iter().map(|c| wires.metrics[c.node.0][subtask.index.index()].clone());
    SubtaskBuilder {
        plan: parts.plan.clone(),
        blueprint: parts.blueprint.clone(),
        subtask: subtask.clone(),
        run: *run,
        attempt: *attempt,
        metrics: metrics.collect(),
        splits: wires.splits.iter().find(|(v, _)| *v == subtask.vertex.0).map(|(_, s)| s.clone()),
        transport,
        clock: parts.clock.clone(),
        checkpoints,
        restore: restore.clone(),
    }
}

//! Runs the subtasks of executions on the workers of a cluster.

use std::sync::Arc;

use async_trait::async_trait;
use millstream_control::{
    ExecutionId, JobProgram, RestoreFrom, SlotPlace, TaskDeployment, TaskEvent, TaskOrder, ToWorker,
};
use millstream_storage::{ClusterStore, StorageError};
use millstream_task::{SplitRequest, SubtaskEnd, TaskError};
use millstream_worker::{
    DeployedTasks, Deployment, Notice, StartError, TaskRunner, Wires, end_of_subtask, fingerprint,
    notice_message, participation, split_answer,
};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use crate::{
    record::JobRecord,
    workers::{Assigned, Workers},
};

/// The runner of one job.
pub(crate) struct ClusterRunner {
    pub(crate) workers: Workers,
    pub(crate) store: ClusterStore,
    pub(crate) record: Arc<Mutex<JobRecord>>,
    pub(crate) program: JobProgram,
    pub(crate) allow_dropped_state: bool,
}

#[async_trait]
impl TaskRunner for ClusterRunner {
    async fn deploy(&self, deployment: &Deployment) -> Result<DeployedTasks, StartError> {
        let plan = deployment.plan();
        let execution = ExecutionId { job: self.record.lock().id, attempt: deployment.attempt.0 };
        let slots = plan.execution.slots;
        let free = self.workers.free();
        if free < slots {
            tracing::info!(job = %execution.job, slots, free, "the job waits for slots");
        }
        let (assigned, by_slot) = self.workers.allocate(execution, slots).await;
        if let Err(error) = self.count(execution.attempt).await {
            assigned.iter().for_each(|worker| self.workers.release(worker.node, execution));
            return Err(error.into());
        }
        let place = |worker: &Assigned| SlotPlace { node: worker.node, address: worker.address };
        let message = TaskDeployment {
            execution,
            run: deployment.run.0,
            program: self.program.clone(),
            plan: fingerprint(plan),
            slots: by_slot.iter().map(|&at| place(&assigned[at])).collect(),
            checkpoints: deployment.takes_checkpoints(),
            restore: deployment.restore().map(|(snapshot, is_base)| RestoreFrom {
                location: snapshot.name(),
                is_base,
                allow_dropped_state: self.allow_dropped_state,
            }),
        };
        let (mut notices, mut running) = (Vec::new(), JoinSet::new());
        let outboxes: Vec<_> = assigned.iter().map(|worker| (worker.node, worker.outbox.clone())).collect();
        for worker in assigned {
            // One that is lost meanwhile is seen to be by its events.
            worker.outbox.send(ToWorker::Deploy(Box::new(message.clone()))).ok();
            let (notice, noticed) = mpsc::unbounded_channel();
            notices.push(notice);
            let others = outboxes.iter().filter(|(node, _)| *node != worker.node);
            let others = others.map(|(_, outbox)| outbox.clone()).collect();
            let (workers, wires) = (self.workers.clone(), deployment.wires().clone());
            let link = Link { execution, worker, others, workers, wires };
            running.spawn(link.run(noticed));
        }
        Ok(DeployedTasks { notices, running })
    }
}

impl ClusterRunner {
    /// Writes down that there is this attempt, so that those of any later coordinator have greater numbers.
    async fn count(&self, attempt: u32) -> Result<(), StorageError> {
        let record = {
            let mut record = self.record.lock();
            record.attempts = attempt + 1;
            record.clone()
        };
        self.store.put_job(&record.id.to_string(), record.encode()).await
    }
}

/// The part of an execution that is on one worker, as whoever coordinates it sees it.
struct Link {
    execution: ExecutionId,
    worker: Assigned,
    /// To the other workers of the execution.
    others: Vec<mpsc::UnboundedSender<ToWorker>>,
    workers: Workers,
    wires: Wires,
}

/// Gives slots back however it ends.
struct Slots<'a>(&'a Workers, u128, ExecutionId);

impl Drop for Slots<'_> {
    fn drop(&mut self) {
        self.0.release(self.1, self.2);
    }
}

impl Link {
    /// Brings messages to and fro until nothing of the execution is left on the worker, or the worker is lost.
    async fn run(mut self, mut notices: mpsc::UnboundedReceiver<Notice>) {
        let workers = self.workers.clone();
        let _slots = Slots(&workers, self.worker.node, self.execution);
        let (mut told, mut cancelled) = (true, false);
        let mut cancel = self.wires.cancelled.clone();
        loop {
            tokio::select! {
                biased;
                event = self.worker.events.recv() => match event {
                    Some(TaskEvent::Gone) => return,
                    Some(event) => self.event(event),
                    None => {
                        let (worker, reason) = (self.worker.name.clone(), LOST.to_owned());
                        let lost = TaskError::WorkerLost { worker, reason };
                        self.wires.ends.send(SubtaskEnd::Failed(lost)).ok();
                        return;
                    }
                },
                _ = cancel.wait_for(|cancelled| *cancelled), if !cancelled => {
                    cancelled = true;
                    self.order(TaskOrder::Cancel);
                }
                notice = notices.recv(), if told => match notice {
                    Some(notice) => self.order(TaskOrder::Notice(notice_message(notice))),
                    None => {
                        told = false;
                        self.order(TaskOrder::Close);
                    }
                },
            }
        }
    }

    fn order(&self, order: TaskOrder) {
        // A worker that has been lost is seen to be by its events.
        self.worker.outbox.send(ToWorker::Task(self.execution, order)).ok();
    }

    fn event(&self, event: TaskEvent) {
        match event {
            TaskEvent::Started | TaskEvent::Gone => {}
            TaskEvent::Participation(participant, message) => match participation(message) {
                Ok(participation) => {
                    // If nobody coordinates any more, the job is coming to its end.
                    self.wires.participation.send((participant as usize, participation)).ok();
                }
                Err(error) => self.failed(error.to_string()),
            },
            TaskEvent::SplitWanted { vertex, subtask, request } => {
                self.split_wanted(vertex, subtask, request)
            }
            TaskEvent::ReaderPassed { vertex, subtask, checkpoint } => {
                if let Some((_, splits)) = self.wires.splits.iter().find(|(v, _)| *v == vertex as usize) {
                    splits.forward(SplitRequest::Passed { subtask, checkpoint });
                }
            }
            TaskEvent::Ended(end) => {
                self.wires.ends.send(end_of_subtask(end, &self.worker.name)).ok();
            }
            TaskEvent::Watermarks(watermarks) => {
                let order = |watermarks| ToWorker::Task(self.execution, TaskOrder::Watermarks(watermarks));
                self.others.iter().for_each(|other| drop(other.send(order(watermarks.clone()))));
            }
            TaskEvent::Figures(figures) => {
                for (of, figures) in figures {
                    let of_node = self.wires.metrics.get(of.node as usize);
                    if let Some(metrics) = of_node.and_then(|all| all.get(of.subtask as usize)) {
                        metrics.set(&figures);
                    }
                }
            }
        }
    }

    /// Asks for a split, and has the answer sent when it is there.
    fn split_wanted(&self, vertex: u32, subtask: u32, request: u64) {
        let (reply, answer) = oneshot::channel();
        if let Some((_, splits)) = self.wires.splits.iter().find(|(v, _)| *v == vertex as usize) {
            splits.forward(SplitRequest::Next { subtask, reply });
        }
        let (outbox, execution) = (self.worker.outbox.clone(), self.execution);
        tokio::spawn(async move {
            let answer = split_answer(answer.await.ok());
            outbox.send(ToWorker::Task(execution, TaskOrder::Split { request, answer })).ok();
        });
    }

    fn failed(&self, message: String) {
        let worker = self.worker.name.clone();
        let error = TaskError::Elsewhere { worker, message, consequence: false, external: true };
        self.wires.ends.send(SubtaskEnd::Failed(error)).ok();
    }
}

const LOST: &str = "it was killed, or cannot be reached any more";

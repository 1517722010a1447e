//! The workers of a cluster: those that have registered and not been lost.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use millstream_control::{ExecutionId, FromWorker, Registration, TaskEvent, ToWorker, WorkerInfo};
use millstream_net::{ControlReceiver, ControlSender, ControlStream, Peer};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use crate::slots::{SlotTable, Turn};

/// The workers. Clones are of the same cluster.
#[derive(Clone)]
pub(crate) struct Workers {
    table: Arc<Mutex<Table>>,
    /// Changes whenever slots may have become free.
    changed: watch::Sender<()>,
    /// How long a worker may be silent.
    timeout: Duration,
}

#[derive(Default)]
struct Table {
    slots: SlotTable<ExecutionId>,
    workers: BTreeMap<u128, Entry>,
    /// Counts registrations, as a worker that comes again is another one.
    registrations: u64,
}

struct Entry {
    registration: Registration,
    number: u64,
    outbox: mpsc::UnboundedSender<ToWorker>,
    executions: HashMap<ExecutionId, mpsc::UnboundedSender<TaskEvent>>,
}

/// A worker that has been given a part of an execution.
pub(crate) struct Assigned {
    pub(crate) node: u128,
    pub(crate) address: SocketAddr,
    /// How messages name it.
    pub(crate) name: String,
    pub(crate) outbox: mpsc::UnboundedSender<ToWorker>,
    /// What it says of the execution; closed when it is lost.
    pub(crate) events: mpsc::UnboundedReceiver<TaskEvent>,
}

/// A place among those that wait for slots, which it leaves however it ends; whoever comes next is told.
struct Waiting<'a>(&'a Workers, Turn);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.table.lock().slots.leave(self.1);
        self.0.changed.send_replace(());
    }
}

impl Workers {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { table: Arc::default(), changed: watch::Sender::default(), timeout }
    }

    /// Works with a worker until it is lost.
    pub(crate) async fn serve(&self, peer: Peer, registration: Registration, mut stream: ControlStream) {
        let name = name(&registration);
        if let Err(error) = stream.send(&ToWorker::Registered { timeout: self.timeout }).await {
            return tracing::warn!(worker = name, %error, "a worker has gone before it was registered");
        }
        let (sender, receiver) = stream.split();
        let (outbox, sent) = mpsc::unbounded_channel();
        let node = peer.node.0;
        let number = self.register(node, registration, outbox);
        tracing::info!(worker = name, "a worker has registered");
        let reason = tokio::select! {
            reason = self.listen(node, receiver) => reason,
            reason = send_all(sender, sent, self.timeout / HEARTBEATS) => reason,
        };
        tracing::warn!(worker = name, reason, "a worker is lost");
        self.forget(node, number);
    }

    fn register(
        &self,
        node: u128,
        registration: Registration,
        outbox: mpsc::UnboundedSender<ToWorker>,
    ) -> u64 {
        let mut table = self.table.lock();
        table.registrations += 1;
        let number = table.registrations;
        table.slots.add(node, registration.slots);
        // What it ran when it registered before is lost: it has given that up.
        table.workers.insert(node, Entry { registration, number, outbox, executions: HashMap::new() });
        drop(table);
        self.changed.send_replace(());
        number
    }

    fn forget(&self, node: u128, number: u64) {
        let mut table = self.table.lock();
        if table.workers.get(&node).is_some_and(|entry| entry.number == number) {
            table.slots.remove(node);
            table.workers.remove(&node);
        }
    }

    async fn listen(&self, node: u128, mut receiver: ControlReceiver) -> String {
        loop {
            let message = match tokio::time::timeout(self.timeout, receiver.receive::<FromWorker>()).await {
                Ok(Ok(message)) => message,
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return format!("nothing has been heard of it for {:?}", self.timeout),
            };
            match message {
                FromWorker::Heartbeat => {}
                FromWorker::Task(execution, event) => self.event(node, execution, event),
            }
        }
    }

    fn event(&self, node: u128, execution: ExecutionId, event: TaskEvent) {
        let mut table = self.table.lock();
        let Some(entry) = table.workers.get_mut(&node) else { return };
        // Of an execution that is over nobody wants to hear.
        if let Some(events) = entry.executions.get(&execution) {
            events.send(event).ok();
        }
    }

    /// Gives an execution its slots, once there are so many and it is its turn: by slot, which of the workers.
    pub(crate) async fn allocate(&self, execution: ExecutionId, slots: u32) -> (Vec<Assigned>, Vec<usize>) {
        let mut changed = self.changed.subscribe();
        let turn = self.table.lock().slots.wait(execution.attempt == 0, slots);
        let waiting = Waiting(self, turn);
        loop {
            changed.mark_unchanged();
            if let Some(given) = self.try_allocate(execution, waiting.1) {
                return given;
            }
            // The sender is here.
            changed.changed().await.ok();
        }
    }

    fn try_allocate(&self, execution: ExecutionId, turn: Turn) -> Option<(Vec<Assigned>, Vec<usize>)> {
        let mut table = self.table.lock();
        let given = table.slots.allocate(execution, turn)?;
        let (mut assigned, mut by_slot): (Vec<Assigned>, _) = (Vec::new(), Vec::with_capacity(given.len()));
        for node in given {
            let at = assigned.iter().position(|worker| worker.node == node);
            by_slot.push(at.unwrap_or(assigned.len()));
            if at.is_none() {
                let entry = table.workers.get_mut(&node)?;
                let (send, events) = mpsc::unbounded_channel();
                entry.executions.insert(execution, send);
                let (address, name) = (entry.registration.address, name(&entry.registration));
                assigned.push(Assigned { node, address, name, outbox: entry.outbox.clone(), events });
            }
        }
        Some((assigned, by_slot))
    }

    /// An execution is over on a worker.
    pub(crate) fn release(&self, node: u128, execution: ExecutionId) {
        let mut table = self.table.lock();
        table.slots.release(node, execution);
        if let Some(entry) = table.workers.get_mut(&node) {
            entry.executions.remove(&execution);
        }
        drop(table);
        self.changed.send_replace(());
    }

    /// How many slots are free.
    pub(crate) fn free(&self) -> u32 {
        self.table.lock().slots.free()
    }

    /// All of them.
    pub(crate) fn list(&self) -> Vec<WorkerInfo> {
        let table = self.table.lock();
        let info = |(node, entry): (&u128, &Entry)| {
            let free = table.slots.free_of(*node);
            let Registration { address, slots, host, process } = entry.registration.clone();
            WorkerInfo {
                id: format!("{node:032x}"),
                address: address.to_string(),
                host,
                process,
                slots,
                free,
            }
        };
        table.workers.iter().map(info).collect()
    }
}

/// Sends what there is to say, and else that the coordinator is there.
async fn send_all(
    mut sender: ControlSender,
    mut outbox: mpsc::UnboundedReceiver<ToWorker>,
    heartbeat: Duration,
) -> String {
    let mut heartbeats = tokio::time::interval(heartbeat);
    loop {
        let message = tokio::select! {
            message = outbox.recv() => match message {
                Some(message) => message,
                None => return "it has registered again".to_owned(),
            },
            _ = heartbeats.tick() => ToWorker::Heartbeat,
        };
        if let Err(error) = sender.send(&message).await {
            return error.to_string();
        }
    }
}

fn name(registration: &Registration) -> String {
    format!("worker {} (process {} on {})", registration.address, registration.process, registration.host)
}

/// How often the coordinator says that it is there within the time after which it is taken for lost.
const HEARTBEATS: u32 = 5;

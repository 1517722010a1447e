//! A worker of a cluster: it offers its slots to a coordinator and runs what that deploys.
//!
//! Either takes the other for lost after a silence. A worker that has lost its coordinator gives up all that it runs, since
//! that will be started again elsewhere, and registers anew.

mod alignment;
mod execution;
mod module_cache;

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use millstream_control::{
    ExecutionId, FromWorker, JobId, Opening, Registration, TaskDeployment, TaskOrder, ToWorker,
};
use millstream_net::{
    ConnectError, ControlError, ControlReceiver, ControlSender, ControlStream, Endpoint, Role,
};
use millstream_wasm::WasmEngine;
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinSet};

use execution::{Events, execute};
use module_cache::ModuleCache;

/// How a worker works.
pub struct WorkerOptions {
    /// Where coordinators are; one of them leads.
    pub coordinators: Vec<SocketAddr>,
    /// How many slots it has.
    pub slots: u32,
    /// Where state on disk and modules go.
    pub dir: PathBuf,
    /// The machine it runs on, for messages.
    pub host: String,
    /// Where other workers reach it, if not where it listens.
    pub advertise: Option<SocketAddr>,
}

/// A worker.
pub struct Worker {
    shared: Arc<Shared>,
    options: WorkerOptions,
}

/// What the executions of a worker share.
struct Shared {
    endpoint: Endpoint,
    engine: Arc<WasmEngine>,
    modules: ModuleCache,
    dir: PathBuf,
    /// Of each job one attempt at a time: the next waits until nothing is left of the one before, which may still be
    /// storing something under the same name.
    jobs: Mutex<HashMap<JobId, Arc<tokio::sync::Mutex<()>>>>,
}

/// How a worker and a coordinator have come apart.
#[derive(Debug, thiserror::Error)]
enum Parted {
    #[error("no coordinator can be reached: {0}")]
    Connect(#[from] ConnectError),
    #[error("the connection to the coordinator has broken: {0}")]
    Control(#[from] ControlError),
    #[error("nothing has been heard from the coordinator for {0:?}")]
    Silent(Duration),
    #[error("the coordinator refuses this worker: {0}")]
    Refused(String),
    #[error("the coordinator said something that it cannot say then")]
    OutOfPlace,
}

impl Worker {
    /// A worker that is reached by `endpoint`.
    pub fn new(endpoint: Endpoint, engine: Arc<WasmEngine>, options: WorkerOptions) -> io::Result<Self> {
        std::fs::create_dir_all(&options.dir)?;
        let modules = ModuleCache::open(&options.dir.join("modules"))?;
        let dir = options.dir.clone();
        Ok(Self {
            shared: Arc::new(Shared { endpoint, engine, modules, dir, jobs: Mutex::default() }),
            options,
        })
    }

    /// Works until `stop` is ready, then gives up what it runs.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut delay = RETRY;
        loop {
            let since = Instant::now();
            let parted = tokio::select! {
                biased;
                () = &mut stop => return,
                parted = self.session() => parted,
            };
            // Whoever parts at once does so again.
            if since.elapsed() > MOST_RETRY {
                delay = RETRY;
            }
            match &parted {
                Parted::Connect(error) => tracing::info!(%error, "no coordinator yet"),
                other => tracing::warn!(reason = %other, "the coordinator is lost"),
            }
            tokio::select! {
                () = &mut stop => return,
                () = tokio::time::sleep(delay) => {}
            }
            delay = (delay * 2).min(MOST_RETRY);
        }
    }

    /// Works for a coordinator until it is lost.
    async fn session(&self) -> Parted {
        match connect_coordinator(&self.shared.endpoint, &self.options.coordinators).await {
            Ok((stream, coordinator)) => match self.work(stream, coordinator).await {
                Ok(never) => match never {},
                Err(parted) => parted,
            },
            Err(error) => error.into(),
        }
    }

    async fn work(&self, mut stream: ControlStream, coordinator: SocketAddr) -> Result<Infallible, Parted> {
        let registration = Registration {
            address: self.options.advertise.unwrap_or_else(|| self.shared.endpoint.address()),
            slots: self.options.slots,
            host: self.options.host.clone(),
            process: std::process::id(),
        };
        stream.send(&Opening::Worker(registration)).await?;
        let timeout = match stream.receive().await? {
            ToWorker::Registered { timeout } => timeout,
            ToWorker::Refused(reason) => return Err(Parted::Refused(reason)),
            _ => return Err(Parted::OutOfPlace),
        };
        tracing::info!(%coordinator, slots = self.options.slots, "registered");
        let (sender, receiver) = stream.split();
        let (outbox, sent) = mpsc::unbounded_channel();
        let mut session = Session {
            shared: self.shared.clone(),
            coordinator,
            outbox,
            running: HashMap::new(),
            tasks: JoinSet::new(),
        };
        let parted = tokio::select! {
            parted = session.listen(receiver, timeout) => parted,
            parted = send_all(sender, sent, timeout / HEARTBEATS) => parted,
        };
        session.give_up().await;
        parted
    }
}

/// Connects with the coordinator that leads, which is the one of several that answers: all are asked, one a moment after the
/// other.
pub async fn connect_coordinator(
    endpoint: &Endpoint,
    addresses: &[SocketAddr],
) -> Result<(ControlStream, SocketAddr), ConnectError> {
    let mut asked = JoinSet::new();
    for (place, &address) in addresses.iter().enumerate() {
        let endpoint = endpoint.clone();
        asked.spawn(async move {
            tokio::time::sleep(APART * place as u32).await;
            let connected = endpoint.connect_control(address, Role::Coordinator).await;
            connected.map(|(_, stream)| (stream, address))
        });
    }
    let mut failed = None;
    while let Some(connected) = asked.join_next().await {
        match connected {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => failed = Some(error),
            // It has panicked, which has been printed.
            Err(_) => {}
        }
    }
    Err(failed.unwrap_or(ConnectError::Closed))
}

/// Sends what there is to say, and else that the worker is there.
async fn send_all(
    mut sender: ControlSender,
    mut outbox: mpsc::UnboundedReceiver<FromWorker>,
    heartbeat: Duration,
) -> Result<Infallible, Parted> {
    let mut heartbeats = tokio::time::interval(heartbeat);
    loop {
        let message = tokio::select! {
            Some(message) = outbox.recv() => message,
            _ = heartbeats.tick() => FromWorker::Heartbeat,
        };
        sender.send(&message).await?;
    }
}

/// One coordinator's time.
struct Session {
    shared: Arc<Shared>,
    coordinator: SocketAddr,
    outbox: mpsc::UnboundedSender<FromWorker>,
    running: HashMap<ExecutionId, mpsc::UnboundedSender<TaskOrder>>,
    tasks: JoinSet<ExecutionId>,
}

impl Session {
    async fn listen(
        &mut self,
        mut receiver: ControlReceiver,
        timeout: Duration,
    ) -> Result<Infallible, Parted> {
        loop {
            tokio::select! {
                message = tokio::time::timeout(timeout, receiver.receive::<ToWorker>()) => {
                    match message.map_err(|_| Parted::Silent(timeout))?? {
                        ToWorker::Registered { .. } | ToWorker::Refused(_) => return Err(Parted::OutOfPlace),
                        ToWorker::Heartbeat => {}
                        ToWorker::Deploy(deployment) => self.deploy(*deployment),
                        ToWorker::Task(execution, order) => self.order(execution, order),
                    }
                }
                Some(ended) = self.tasks.join_next() => {
                    if let Ok(execution) = ended { self.running.remove(&execution); }
                }
            }
        }
    }

    fn deploy(&mut self, deployment: TaskDeployment) {
        let execution = deployment.execution;
        for (_, older) in self.running.iter().filter(|(id, _)| id.job == execution.job) {
            // One that has come to its end by itself hears nothing.
            older.send(TaskOrder::Cancel).ok();
        }
        let (orders, ordered) = mpsc::unbounded_channel();
        self.running.insert(execution, orders);
        let (shared, coordinator) = (self.shared.clone(), self.coordinator);
        let events = Events::new(execution, self.outbox.clone());
        self.tasks.spawn(async move {
            let turn = shared.turn_of(execution.job);
            let turn = turn.lock().await;
            execute(&shared, coordinator, deployment, ordered, &events).await;
            drop(turn);
            shared.forget_turn(execution.job);
            events.gone();
            execution
        });
    }

    fn order(&self, execution: ExecutionId, order: TaskOrder) {
        // One that has come to its end by itself needs no orders any more.
        if let Some(orders) = self.running.get(&execution) {
            orders.send(order).ok();
        }
    }

    /// Gives up all that runs. What hangs is left to end when it can; the next attempt of its job waits for it.
    async fn give_up(mut self) {
        self.running.values().for_each(|orders| drop(orders.send(TaskOrder::Cancel)));
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, all).await.is_err() {
            tracing::warn!("subtasks that were given up have not ended yet");
            self.tasks.detach_all();
        }
    }
}

impl Shared {
    /// Whose turn it is to run a job.
    fn turn_of(&self, job: JobId) -> Arc<tokio::sync::Mutex<()>> {
        self.jobs.lock().entry(job).or_default().clone()
    }

    /// Forgets a job that nobody runs or waits to run.
    fn forget_turn(&self, job: JobId) {
        let mut jobs = self.jobs.lock();
        if jobs.get(&job).is_some_and(|turn| Arc::strong_count(turn) <= 2) {
            jobs.remove(&job);
        }
    }
}

/// How long a worker waits before it looks for a coordinator again, at first and at most.
const RETRY: Duration = Duration::from_millis(100);
const MOST_RETRY: Duration = Duration::from_secs(2);
/// How far apart several coordinators are asked.
const APART: Duration = Duration::from_millis(100);
/// How often it says that it is there within the time after which it is taken for lost.
const HEARTBEATS: u32 = 5;
/// How long subtasks that are given up may take to end.
const GRACE: Duration = Duration::from_secs(5);

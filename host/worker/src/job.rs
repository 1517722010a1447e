//! A running job: executions, one after the other for as long as they fail and the restart strategy allows it.
//!
//! An execution that is not the first goes on from the newest checkpoint of the run, or where the first one began.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use millstream_graph::{NodeBody, NodeIndex, Plan};
use millstream_operator::{Clock, ConnectorError, FunctionError, SystemClock};
use millstream_protocol::{RestartDecision, RestartStrategy, Restarts};
use millstream_storage::{StorageError, StoredSnapshot};
use millstream_task::TaskError;
use millstream_types::{Attempt, RunId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    BuildError, Catalog, JobStatus, Modules, OperatorStatus,
    build::Blueprint,
    checkpoint::{CheckpointOptions, ProgramContent},
    control::{Command, JobControl, SnapshotOrder, SnapshotTaken},
    execution::{Execution, JobSpec},
    restore::RestoreError,
    status::Board,
    tasks::{JobParts, LocalRunner, TaskRunner},
};

/// How a job is run.
#[derive(Clone)]
pub struct JobOptions {
    /// Processing time.
    pub clock: Arc<dyn Clock>,
    /// How its checkpoints are taken, if any are.
    pub checkpoints: Option<CheckpointOptions>,
    /// What it goes on from; from the beginning if nothing.
    pub restore: Option<Arc<StoredSnapshot>>,
    /// Whether state that the job does not have any more may be dropped at the restore.
    pub allow_dropped_state: bool,
    /// Whether and when it is started again after a failure.
    pub restart: RestartStrategy,
    /// Where state on disk goes, if its job file asks for that: a folder of its own in this one.
    pub state_dir: PathBuf,
    /// The run, through all starts of it in whatever process.
    pub run: RunId,
    /// The number of its first execution here; others before had smaller ones.
    pub first_attempt: Attempt,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            checkpoints: None,
            restore: None,
            allow_dropped_state: false,
            restart: RestartStrategy::None,
            state_dir: std::env::temp_dir(),
            // The standard library seeds each of these from the system.
            run: RunId(RandomState::new().hash_one(0)),
            first_attempt: Attempt(0),
        }
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
    /// A sink has no place to write to.
    #[error("the sink `{name}` cannot begin")]
    Sink {
        /// The sink's name in the job file.
        name: String,
        /// Why.
        source: ConnectorError,
    },
    /// The job cannot go on from its snapshot.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// There is no place for checkpoints.
    #[error(transparent)]
    Storage(#[from] StorageError),
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
    /// It was stopped at a snapshot, from which it can go on.
    Stopped(SnapshotTaken),
    /// It was cancelled.
    Cancelled,
    /// A subtask failed; the others were cancelled.
    Failed(TaskError),
}

/// A running job. Dropping it cancels it.
pub struct Job {
    monitor: JobMonitor,
    control: JobControl,
    end: oneshot::Receiver<JobEnd>,
}

/// A job, as those who watch it see it. Clones watch the same job.
#[derive(Clone)]
pub struct JobMonitor {
    spec: Arc<JobSpec>,
    board: Board,
    started: Instant,
}

impl Job {
    /// Starts all subtasks of a plan in this process. Has to be called within a tokio runtime, which runs what coordinates
    /// them: the enumerators of the sources, the checkpoints, and the watch over failures.
    pub async fn start(
        plan: Plan,
        modules: &Modules,
        catalog: &Catalog,
        options: &JobOptions,
    ) -> Result<Self, StartError> {
        Self::start_on(Arc::new(LocalRunner), plan, modules, catalog, options).await
    }

    /// The same with subtasks that somebody else runs.
    pub async fn start_on(
        runner: Arc<dyn TaskRunner>,
        plan: Plan,
        modules: &Modules,
        catalog: &Catalog,
        options: &JobOptions,
    ) -> Result<Self, StartError> {
        let blueprint = Arc::new(Blueprint::new(&plan, modules, catalog, &options.state_dir)?);
        let program = options.checkpoints.as_ref();
        let program = program.map(|c| ProgramContent::new(&c.job_file, &plan, modules)).transpose()?;
        let (plan, program) = (Arc::new(plan), program.map(Arc::new));
        let parts = Arc::new(JobParts { plan, blueprint, clock: options.clock.clone() });
        let spec = Arc::new(JobSpec { parts, options: options.clone(), program, runner });
        let board = Board::default();
        let execution =
            Execution::start(&spec, options.first_attempt, options.restore.clone(), &board).await?;
        let started = Instant::now();
        let (commands, commanded) = watch::channel(Command::Run);
        let (orders, ordered) = mpsc::unbounded_channel();
        let supervisor = Supervisor {
            spec: spec.clone(),
            board: board.clone(),
            commands: commanded,
            orders: ordered,
            restarts: Restarts::new(options.restart, Duration::ZERO),
            attempt: options.first_attempt,
            started,
        };
        let (ended, end) = oneshot::channel();
        // Nobody listens any more only if the job has been dropped, and with it cancelled.
        tokio::spawn(async move { drop(ended.send(supervisor.run(execution).await)) });
        let monitor = JobMonitor { spec, board, started };
        Ok(Self { monitor, control: JobControl::new(commands, orders), end })
    }

    /// What commands it.
    pub fn control(&self) -> &JobControl {
        &self.control
    }

    /// Whether it takes checkpoints.
    pub fn takes_checkpoints(&self) -> bool {
        self.monitor.spec.options.checkpoints.is_some()
    }

    /// Waits for the end, when nothing of the job is left. Called once it has returned, it waits for ever. Cancel-safe:
    /// called again before it goes on waiting.
    pub async fn wait(&mut self) -> JobEnd {
        match (&mut self.end).await {
            Ok(end) => end,
            // The one who watches has gone with the runtime.
            Err(_) => std::future::pending().await,
        }
    }

    /// Its figures now: those of the current execution.
    pub fn status(&self) -> JobStatus {
        self.monitor.status()
    }

    /// Who watches it wherever the job itself is.
    pub fn monitor(&self) -> JobMonitor {
        self.monitor.clone()
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.monitor.started.elapsed()
    }
}

impl JobMonitor {
    /// Whether the job has failed and not been started again yet.
    pub fn is_restarting(&self) -> bool {
        self.board.is_restarting()
    }

    /// Its figures now: those of the current execution.
    pub fn status(&self) -> JobStatus {
        let elapsed = self.started.elapsed();
        let metrics = self.board.metrics();
        let of = |(node, metrics): (usize, &Vec<_>)| {
            let node = self.spec.parts.plan.logical.node(NodeIndex(node));
            OperatorStatus::of(&node.name, kind(&node.body), metrics, elapsed)
        };
        JobStatus {
            job: self.spec.parts.plan.logical.job.name.to_string(),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            operators: metrics.iter().enumerate().map(of).collect(),
            checkpoints: self.board.checkpoints(),
            failures: self.board.failures(),
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.control.cancel();
    }
}

/// Watches over the executions of a job.
struct Supervisor {
    spec: Arc<JobSpec>,
    board: Board,
    commands: watch::Receiver<Command>,
    orders: mpsc::UnboundedReceiver<SnapshotOrder>,
    restarts: Restarts,
    attempt: Attempt,
    started: Instant,
}

impl Supervisor {
    async fn run(mut self, mut execution: Execution) -> JobEnd {
        loop {
            let end = self.watch(&mut execution).await;
            execution.close().await;
            let error = match end {
                JobEnd::Failed(error) => error,
                JobEnd::Finished => return self.board.stopped().map_or(JobEnd::Finished, JobEnd::Stopped),
                end => return end,
            };
            execution = match self.restart(error).await {
                Ok(execution) => execution,
                Err(end) => return end,
            };
        }
    }

    /// Passes on what the job is told to do, until the execution ends.
    async fn watch(&mut self, execution: &mut Execution) -> JobEnd {
        loop {
            match *self.commands.borrow_and_update() {
                Command::Run => {}
                Command::Stop => execution.stop(),
                Command::Cancel => execution.cancel(),
            }
            tokio::select! {
                biased;
                end = execution.wait() => return end,
                changed = self.commands.changed() => if changed.is_err() {
                    execution.cancel();
                    return execution.wait().await;
                },
                Some(order) = self.orders.recv() => execution.order(order),
            }
        }
    }

    /// Starts the job again after a failure, or says how it ends.
    async fn restart(&mut self, mut error: TaskError) -> Result<Execution, JobEnd> {
        loop {
            let delay = match self.restarts.handle_failure(self.started.elapsed()) {
                RestartDecision::GiveUp => return Err(JobEnd::Failed(error)),
                RestartDecision::After(delay) => delay,
            };
            tracing::warn!(attempt = self.attempt.0, %error, ?delay, "the job has failed and is started again");
            self.board.failed(self.attempt, self.started.elapsed(), &error);
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = cancelled(&mut self.commands) => return Err(JobEnd::Cancelled),
            }
            self.attempt.0 += 1;
            let mut commands = self.commands.clone();
            let started = tokio::select! {
                biased;
                () = cancelled(&mut commands) => return Err(JobEnd::Cancelled),
                started = self.start_again() => started,
            };
            match started {
                Ok(execution) => return Ok(execution),
                Err(source) => error = TaskError::Restart { source: Box::new(source) },
            }
        }
    }

    async fn start_again(&self) -> Result<Execution, StartError> {
        let options = &self.spec.options;
        let newest = match &options.checkpoints {
            Some(checkpoints) => checkpoints.run.newest().await?,
            None => None,
        };
        let restore = newest.map(Arc::new).or_else(|| options.restore.clone());
        Execution::start(&self.spec, self.attempt, restore, &self.board).await
    }
}

async fn cancelled(commands: &mut watch::Receiver<Command>) {
    drop(commands.wait_for(|command| *command == Command::Cancel).await);
}

fn kind(body: &NodeBody) -> &'static str {
    match body {
        NodeBody::Source(_) => "source",
        NodeBody::Sink(_) => "sink",
        NodeBody::Function(_) | NodeBody::Union | NodeBody::Watermark(_) => "operator",
    }
}

//! The jobs of a cluster, from their submission until long after their end.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use millstream_control::{
    JobId, JobInfo, JobProgram, JobState, JobText, ModuleRef, Reply, SnapshotInfo, SnapshotOf,
};
use millstream_storage::{ClusterStore, StorageError};
use millstream_wasm::WasmEngine;
use millstream_worker::{
    JobControl, JobEnd, JobMonitor, SnapshotError, SnapshotTaken, in_full, module_digest,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    record::{JobEndRecord, JobRecord, VERSION},
    start::{self, Started},
    workers::Workers,
};

/// The jobs. Clones are of the same cluster.
#[derive(Clone)]
pub(crate) struct Jobs(Arc<Shared>);

struct Shared {
    store: ClusterStore,
    workers: Workers,
    engine: Arc<WasmEngine>,
    jobs: Mutex<BTreeMap<JobId, Arc<Entry>>>,
}

struct Entry {
    record: Arc<Mutex<JobRecord>>,
    live: Mutex<Live>,
    /// Becomes true when the job is to be given up.
    cancel: watch::Sender<bool>,
}

/// What is known of a job that has not ended.
#[derive(Default)]
struct Live {
    monitor: Option<JobMonitor>,
    control: Option<JobControl>,
    run: Option<String>,
}

/// A job as a client hands it in.
pub(crate) struct Submission {
    pub(crate) id: JobId,
    pub(crate) job: JobText,
    pub(crate) modules: Vec<(String, Vec<u8>)>,
    pub(crate) from: Option<String>,
    pub(crate) allow_dropped_state: bool,
    pub(crate) checkpoint_dir: Option<String>,
}

impl Jobs {
    pub(crate) fn new(store: ClusterStore, workers: Workers, engine: Arc<WasmEngine>) -> Self {
        Self(Arc::new(Shared { store, workers, engine, jobs: Mutex::default() }))
    }

    /// Goes on with the jobs that an earlier coordinator had. What cannot be read is reported and left as it is.
    pub(crate) async fn recover(&self) -> Result<(), StorageError> {
        for (name, bytes) in self.0.store.jobs().await? {
            let record: JobRecord = match serde_json::from_slice(&bytes) {
                Ok(record) => record,
                Err(error) => {
                    tracing::error!(job = name, %error, "what is known of a job cannot be read; it is left as it is");
                    continue;
                }
            };
            if record.end.is_some() {
                self.0.jobs.lock().insert(record.id, Arc::new(Entry::new(record)));
                continue;
            }
            tracing::info!(job = %record.id, name = record.name, "going on with a job");
            self.begin(record);
        }
        Ok(())
    }

    /// Takes a job in. One that is known by its number is the same one.
    pub(crate) async fn submit(&self, submission: Submission) -> Reply {
        let Submission { id, job, modules, from, allow_dropped_state, checkpoint_dir } = submission;
        let digests = modules
            .iter()
            .map(|(name, bytes)| ModuleRef { name: name.clone(), digest: module_digest(bytes) });
        let program = JobProgram { job: job.clone(), modules: digests.collect() };
        if let Some(reply) = self.known(id, &program) {
            return reply;
        }
        let provided: HashMap<String, Arc<[u8]>> =
            modules.iter().map(|(name, bytes)| (name.clone(), Arc::from(&bytes[..]))).collect();
        let planned = match start::plan(job.clone(), provided, self.0.engine.clone()).await {
            Ok(planned) => planned,
            Err(problem) => return refused(&problem, problem.is_invalid()),
        };
        if let Some(from) = &from
            && let Err(problem) = start::check_restore(&planned, from, allow_dropped_state).await
        {
            return refused(&problem, problem.is_invalid());
        }
        for ((_, bytes), module) in modules.into_iter().zip(&program.modules) {
            if let Err(error) = self.0.store.put_module(&module.digest.to_string(), bytes).await {
                return refused(&error, false);
            }
        }
        let record = JobRecord {
            version: VERSION,
            id,
            name: planned.plan.logical.job.name.to_string(),
            program,
            from,
            allow_dropped_state,
            checkpoint_dir,
            submitted: now(),
            run: drawn(),
            slots: planned.plan.execution.slots,
            attempts: 0,
            end: None,
        };
        if let Err(error) = self.0.store.put_job(&id.to_string(), record.encode()).await {
            return refused(&error, false);
        }
        self.begin(record);
        Reply::Submitted(id)
    }

    /// The answer for a job that has been submitted before.
    fn known(&self, id: JobId, program: &JobProgram) -> Option<Reply> {
        let known = self.0.jobs.lock().get(&id)?.clone();
        if known.record.lock().program == *program {
            return Some(Reply::Submitted(id));
        }
        let reason = format!("there is another job {id} already: leave `--id` out, and a number is drawn");
        Some(Reply::Refused { reason, invalid: true })
    }

    /// Has a job run, unless it runs already.
    fn begin(&self, record: JobRecord) {
        let entry = {
            let mut jobs = self.0.jobs.lock();
            if jobs.contains_key(&record.id) {
                return;
            }
            let entry = Arc::new(Entry::new(record));
            jobs.insert(entry.record.lock().id, entry.clone());
            entry
        };
        let shared = self.0.clone();
        tokio::spawn(async move { shared.run(&entry).await });
    }

    /// All jobs, the newest last.
    pub(crate) fn list(&self) -> Vec<JobInfo> {
        let mut jobs: Vec<_> = self.0.jobs.lock().values().map(|entry| self.0.info(entry)).collect();
        jobs.sort_by_key(|job| job.submitted);
        jobs
    }

    pub(crate) fn show(&self, name: &str) -> Reply {
        let entry = match self.find(name) {
            Ok(entry) => entry,
            Err(reply) => return reply,
        };
        let figures = match &entry.live.lock().monitor {
            Some(monitor) => serde_json::to_string(&monitor.status()).ok(),
            None => entry.record.lock().end.as_ref().and_then(|end| end.figures.clone()),
        };
        Reply::Job(Box::new(self.0.info(&entry)), figures.unwrap_or_else(|| "null".to_owned()))
    }

    pub(crate) fn cancel(&self, name: &str) -> Reply {
        match self.find(name) {
            Ok(entry) if entry.record.lock().end.is_some() => {
                Reply::Refused { reason: format!("job `{name}` has ended already"), invalid: true }
            }
            Ok(entry) => {
                entry.cancel.send_replace(true);
                Reply::Done
            }
            Err(reply) => reply,
        }
    }

    /// Takes a snapshot of a job, at which it may stop.
    pub(crate) async fn snapshot(&self, name: &str, of: SnapshotOf, to: Option<String>) -> Reply {
        let entry = match self.find(name) {
            Ok(entry) => entry,
            Err(reply) => return reply,
        };
        let control = entry.live.lock().control.clone();
        let Some(control) = control else {
            return Reply::Refused { reason: format!("job `{name}` is not running"), invalid: false };
        };
        let taken = match of {
            SnapshotOf::Savepoint => control.savepoint(to).await,
            SnapshotOf::StopSavepoint => control.stop_at_savepoint(to, false).await,
            SnapshotOf::DrainSavepoint => control.stop_at_savepoint(to, true).await,
            SnapshotOf::StopCheckpoint => control.stop_at_checkpoint().await,
            SnapshotOf::Drain => {
                control.drain();
                return Reply::Done;
            }
        };
        match taken {
            Ok(taken) => Reply::Snapshot(snapshot_info(taken)),
            Err(error) => refused(&error, matches!(error, SnapshotError::NoCheckpoints)),
        }
    }

    /// The job of a number, of the beginning of one, or of a name: of several of that name the one that has not ended.
    fn find(&self, name: &str) -> Result<Arc<Entry>, Reply> {
        let jobs = self.0.jobs.lock();
        let by_number = jobs.iter().filter(|(id, _)| name.len() >= 6 && id.to_string().starts_with(name));
        let by_name = jobs.iter().filter(|(_, entry)| entry.record.lock().name == name);
        let mut found: Vec<_> = by_number.chain(by_name).map(|(_, entry)| entry.clone()).collect();
        if found.len() > 1 {
            let running: Vec<_> =
                found.iter().filter(|entry| entry.record.lock().end.is_none()).cloned().collect();
            match running.len() {
                // The one that was submitted last.
                0 => found.sort_by_key(|entry| entry.record.lock().submitted),
                _ => found = running,
            }
            if found.len() > 1 && found[0].record.lock().end.is_none() {
                let ids: Vec<_> = found.iter().map(|entry| entry.record.lock().id.to_string()).collect();
                let reason = format!("`{name}` is several jobs, name one of them: {}", ids.join(", "));
                return Err(Reply::Refused { reason, invalid: true });
            }
        }
        found.pop().ok_or_else(|| Reply::Refused {
            reason: format!("there is no job `{name}`: `millstream job list` shows those that there are"),
            invalid: true,
        })
    }
}

impl Entry {
    fn new(record: JobRecord) -> Self {
        let (record, cancel) = (Arc::new(Mutex::new(record)), watch::Sender::new(false));
        Self { record, live: Mutex::default(), cancel }
    }
}

impl Shared {
    /// Runs a job to its end, and writes that down.
    async fn run(&self, entry: &Entry) {
        let end = self.run_to_end(entry).await;
        let monitor = entry.live.lock().monitor.take();
        let status = monitor.map(|monitor| monitor.status());
        let (state, problem) = match end {
            Ok(JobEnd::Finished) => (JobState::Finished, None),
            Ok(JobEnd::Stopped(_)) => (JobState::Stopped, None),
            Ok(JobEnd::Cancelled) => (JobState::Cancelled, None),
            Ok(JobEnd::Failed(error)) => (JobState::Failed, Some(in_full(&error))),
            Err(problem) => (JobState::Failed, Some(problem)),
        };
        let figures = status.and_then(|status| serde_json::to_string(&status).ok());
        let record = {
            let mut record = entry.record.lock();
            tracing::info!(job = %record.id, name = record.name, ?state, problem, "a job has ended");
            record.end = Some(JobEndRecord { state, at: now(), problem, figures });
            record.clone()
        };
        entry.live.lock().control = None;
        if let Err(error) = self.store.put_job(&record.id.to_string(), record.encode()).await {
            tracing::error!(job = %record.id, error = error.in_full(), "the end of a job cannot be written down");
        }
    }

    async fn run_to_end(&self, entry: &Entry) -> Result<JobEnd, String> {
        let mut cancelled = entry.cancel.subscribe();
        let started = tokio::select! {
            biased;
            () = given_up(&mut cancelled) => return Ok(JobEnd::Cancelled),
            started = start::start(&entry.record, &self.store, &self.workers, self.engine.clone()) => started,
        };
        let Started { mut job, mut lock, run } = started.map_err(|problem| problem.to_string())?;
        *entry.live.lock() = Live { monitor: Some(job.monitor()), control: Some(job.control().clone()), run };
        let held = async {
            match &mut lock {
                Some(lock) => lock.lost().await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            end = job.wait() => Ok(end),
            () = given_up(&mut cancelled) => {
                job.control().cancel();
                Ok(job.wait().await)
            }
            why = held => {
                job.control().cancel();
                job.wait().await;
                Err(format!("the job has lost its run: {why}"))
            }
        };
        if let Some(lock) = lock {
            lock.release().await;
        }
        end
    }

    fn info(&self, entry: &Entry) -> JobInfo {
        let record = entry.record.lock().clone();
        let live = entry.live.lock();
        let (state, problem) = match (&record.end, &live.monitor) {
            (Some(end), _) => (end.state, end.problem.clone()),
            (None, None) => {
                let free = self.workers.free();
                let waits = || format!("waits for {} slots, {free} are free", record.slots);
                (JobState::Starting, (free < record.slots).then(waits))
            }
            (None, Some(monitor)) => {
                let failures = monitor.status().failures;
                let state = if monitor.is_restarting() { JobState::Restarting } else { JobState::Running };
                (state, failures.last().map(|failure| failure.cause.clone()))
            }
        };
        JobInfo {
            id: record.id.to_string(),
            name: record.name,
            state,
            submitted: record.submitted,
            ended: record.end.map(|end| end.at),
            attempts: record.attempts,
            slots: record.slots,
            problem,
            checkpoints: live.run.clone(),
        }
    }
}

async fn given_up(cancelled: &mut watch::Receiver<bool>) {
    // The sender is in the entry.
    drop(cancelled.wait_for(|cancelled| *cancelled).await);
}

fn snapshot_info(taken: SnapshotTaken) -> SnapshotInfo {
    let SnapshotTaken { path, id, savepoint, took_ms, bytes } = taken;
    SnapshotInfo { path, id, savepoint, took_ms, bytes }
}

fn refused(error: &dyn std::error::Error, invalid: bool) -> Reply {
    Reply::Refused { reason: in_full(error), invalid }
}

/// A number that nobody else draws: the standard library seeds each of these from the system.
fn drawn() -> u64 {
    RandomState::new().hash_one(0)
}

/// Milliseconds since the epoch.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

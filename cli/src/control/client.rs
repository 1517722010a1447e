//! The end of whoever wants something of a job.

use miette::miette;
use millstream_storage::{JobStore, RunStore, Storage};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
};

use super::protocol::{Address, LINE, Reply, Request};
use crate::{exit::Failure, verbs::snapshots::failed};

/// A connection to a running job.
pub(crate) struct Connected {
    job: String,
    process: u32,
    stream: BufReader<UnixStream>,
}

/// Connects to the job of this name, or the only one, that stores its checkpoints in a folder.
pub(crate) async fn connect(dir: &str, job: Option<&str>) -> Result<Connected, Failure> {
    let storage = Storage::open_existing(dir).map_err(failed)?;
    let jobs = JobStore::jobs(&storage).await.map_err(failed)?;
    if let Some(job) = job
        && !jobs.iter().any(|known| known == job)
    {
        let known = if jobs.is_empty() { "none".to_owned() } else { jobs.join(", ") };
        return Err(Failure::invalid(miette!(
            "`{job}` has no checkpoints in {dir}; jobs that have: {known}"
        )));
    }
    let mut running = Vec::new();
    for name in jobs.into_iter().filter(|name| job.is_none_or(|job| job == name)) {
        let run = JobStore::new(storage.clone(), &name).newest_run().await.map_err(failed)?;
        let Some(run) = run else { continue };
        if let Some(address) = run.control().await.map_err(failed)? {
            running.push((name, run, address));
        }
    }
    match running.len() {
        0 => Err(Failure::environment(miette!(
            help = "start it with `millstream run JOB.toml --checkpoint-dir DIR --from latest`",
            "no job that has its checkpoints in {dir} is running",
        ))),
        1 => {
            let (name, run, address) = running.remove(0);
            open(name, &run, &address).await
        }
        _ => {
            let names: Vec<_> = running.iter().map(|(name, ..)| name.as_str()).collect();
            Err(Failure::invalid(miette!("several jobs are running: name one of {}", names.join(", "))))
        }
    }
}

async fn open(job: String, run: &RunStore, address: &str) -> Result<Connected, Failure> {
    let address: Address = serde_json::from_str(address)
        .map_err(|e| Failure::environment(miette!("{}: its `run.control` is damaged: {e}", run.name())))?;
    let Address { host, process, socket } = &address;
    if !address.is_here() {
        return Err(Failure::environment(miette!(
            "`{job}` runs on the machine `{host}`, as process {process}: give the command there"
        )));
    }
    let stream = UnixStream::connect(socket).await.map_err(|error| {
        Failure::environment(miette!(
            help = "start it again with `--from latest`",
            "`{job}` is not running: process {process}, which had {}, has gone ({}: {error})",
            run.name(),
            socket.display()
        ))
    })?;
    Ok(Connected { job, process: *process, stream: BufReader::new(stream) })
}

impl Connected {
    /// The job's name.
    pub(crate) fn job(&self) -> &str {
        &self.job
    }

    /// Asks for something and waits for the answer.
    pub(crate) async fn ask(&mut self, request: &Request) -> Result<Reply, Failure> {
        let mut text = serde_json::to_string(request).map_err(|e| Failure::invalid(miette!("{e}")))?;
        text.push('\n');
        let mut line = String::new();
        let spoken = async {
            self.stream.write_all(text.as_bytes()).await?;
            (&mut self.stream).take(LINE).read_line(&mut line).await
        };
        let read = spoken.await;
        match serde_json::from_str(&line) {
            Ok(Reply::Error(problem)) => Err(Failure::failed(miette!("`{}`: {problem}", self.job))),
            Ok(reply) => Ok(reply),
            Err(_) => {
                let problem =
                    read.map_or_else(|e| e.to_string(), |_| "it ended without an answer".to_owned());
                let (job, process) = (&self.job, self.process);
                Err(Failure::failed(miette!("`{job}` (process {process}) did not do it: {problem}")))
            }
        }
    }

    /// Waits until the process has ended.
    pub(crate) async fn ended(mut self) {
        // Nothing more is sent: what comes is the end, or that the connection was cut, which is the end too.
        let mut rest = String::new();
        self.stream.read_line(&mut rest).await.ok();
    }
}

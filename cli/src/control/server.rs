//! The end of the process that has the job.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use millstream_storage::{RunLock, RunStore, StorageError};
use millstream_worker::{JobControl, SnapshotError, SnapshotTaken};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    task::JoinHandle,
};

use super::protocol::{Address, LINE, Reply, Request, host};

/// A run that this process cannot have.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Somebody else has it.
    #[error("the job runs already: {holder} has {run}")]
    Running {
        /// Which process, as far as it has said so.
        holder: String,
        /// The run's folder.
        run: String,
    },
    /// There is no socket to be had.
    #[error("the job cannot listen for commands at {}", socket.display())]
    Socket {
        /// Where.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The run's folder cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A run that this process has, and a socket on which nobody has been answered yet.
pub(crate) struct Claimed {
    run: RunStore,
    listener: UnixListener,
    folder: TempDir,
    lock: RunLock,
}

/// A job that answers.
pub(crate) struct Serving {
    run: RunStore,
    answering: JoinHandle<()>,
    /// Goes with the socket.
    _folder: TempDir,
    lock: RunLock,
}

impl Claimed {
    /// Sees to it that nobody else has the run, and says that this process does.
    pub(crate) async fn claim(run: RunStore) -> Result<Self, ControlError> {
        let lock = run.lock().await?;
        let address = run.control().await?.and_then(|text| parse(&text));
        let Some(lock) = lock else {
            let holder = address.map(|address| format!("process {} on {}", address.process, address.host));
            let holder = holder.unwrap_or_else(|| "another process".to_owned());
            return Err(ControlError::Running { holder, run: run.name() });
        };
        if let Some(address) = address {
            remove_stale(&address);
        }
        let (listener, folder) = listen()?;
        let socket = folder.path().join(SOCKET);
        let address = Address { host: host(), process: std::process::id(), socket };
        let text = serde_json::to_string(&address).expect("texts and numbers always encode");
        run.set_control(Some(&text)).await?;
        Ok(Self { run, listener, folder, lock })
    }

    /// Answers for a job from now on. Has to be called within a tokio runtime.
    pub(crate) fn serve(self, job: JobControl) -> Serving {
        let Self { run, listener, folder, lock } = self;
        Serving { run, answering: tokio::spawn(accept(listener, job)), _folder: folder, lock }
    }

    /// Lets go of a run whose job did not start.
    pub(crate) async fn release(self) {
        forget(&self.run).await;
        self.lock.release().await;
    }
}

impl Serving {
    /// Waits for as long as the run is this process's. Says why it is not any more. Cancel-safe.
    pub(crate) async fn lost(&mut self) -> String {
        self.lock.lost().await
    }

    /// Answers no more. Those who still wait see that the process has ended.
    pub(crate) async fn close(self) {
        self.answering.abort();
        forget(&self.run).await;
        self.lock.release().await;
    }
}

async fn forget(run: &RunStore) {
    if let Err(error) = run.set_control(None).await {
        tracing::warn!(error = error.in_full(), "the address of this process is left behind");
    }
}

async fn accept(listener: UnixListener, job: JobControl) {
    let mut answering = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // Whoever comes when too many are waiting is hung up on.
                Ok((stream, _)) if answering.len() < CONNECTIONS => {
                    let job = job.clone();
                    answering.spawn(async move {
                        if let Err(error) = answer(stream, &job).await {
                            tracing::debug!(%error, "whoever asked has gone");
                        }
                    });
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "the job listens for commands no more");
                    return;
                }
            },
            Some(_) = answering.join_next() => {}
        }
    }
}

/// Answers one request. The connection stays open until the process ends if the request was to stop.
async fn answer(stream: UnixStream, job: &JobControl) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    // Whoever says nothing holds a place that others wait for.
    tokio::time::timeout(PATIENCE, (&mut stream).take(LINE).read_line(&mut line)).await??;
    let (reply, ends) = match serde_json::from_str(&line) {
        Ok(request) => (carry_out(&request, job).await, matches!(request, Request::Stop { .. })),
        Err(error) => (Reply::Error(format!("no request that this version knows: {error}")), false),
    };
    let failed = matches!(reply, Reply::Error(_));
    let mut text = serde_json::to_string(&reply).map_err(io::Error::other)?;
    text.push('\n');
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await?;
    if ends && !failed {
        std::future::pending::<()>().await;
    }
    Ok(())
}

async fn carry_out(request: &Request, job: &JobControl) -> Reply {
    match request {
        Request::Savepoint { folder } => taken(job.savepoint(folder.clone()).await),
        Request::Stop { savepoint: true, folder, drain } => {
            taken(job.stop_at_savepoint(folder.clone(), *drain).await)
        }
        Request::Stop { savepoint: false, drain: false, .. } => taken(job.stop_at_checkpoint().await),
        Request::Stop { savepoint: false, drain: true, .. } => {
            job.drain();
            Reply::Draining
        }
    }
}

fn taken(result: Result<SnapshotTaken, SnapshotError>) -> Reply {
    match result {
        Ok(taken) => Reply::Taken(taken),
        Err(error) => Reply::Error(error.to_string()),
    }
}

/// A socket in a new folder that nobody else can enter. Paths of sockets have to be short, so it is none of the user's.
fn listen() -> Result<(UnixListener, TempDir), ControlError> {
    let usual = std::env::temp_dir();
    let place = if usual.as_os_str().len() <= SHORT { usual } else { PathBuf::from("/tmp") };
    let failed = |source| ControlError::Socket { socket: place.clone(), source };
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&place).map_err(failed)?;
    let socket = folder.path().join(SOCKET);
    let listener = UnixListener::bind(&socket).and_then(|listener| {
        restrict(&socket)?;
        Ok(listener)
    });
    Ok((listener.map_err(|source| ControlError::Socket { socket, source })?, folder))
}

fn restrict(socket: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(socket, fs::Permissions::from_mode(0o600))
}

/// Removes what a process left behind that was killed here, and nothing that is not such a socket.
fn remove_stale(address: &Address) {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = fs::symlink_metadata(&address.socket).is_ok_and(|m| m.file_type().is_socket());
    let Some(folder) = address.socket.parent() else { return };
    let is_ours = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    if address.is_here() && is_ours && is_socket {
        // If it cannot be removed it harms nobody.
        fs::remove_file(&address.socket).and_then(|()| fs::remove_dir(folder)).ok();
    }
}

/// The address in a run's folder; what is none is that of a process that has gone.
fn parse(text: &str) -> Option<Address> {
    serde_json::from_str(text).ok()
}

const PREFIX: &str = "millstream-";
const SOCKET: &str = "control.sock";
/// The longest path of a temporary folder in which a socket still has room: its path has some 100 bytes in all.
const SHORT: usize = 60;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many may wait for answers at a time.
const CONNECTIONS: usize = 64;

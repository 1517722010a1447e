//! What the roles that serve a cluster have in common.

use millstream_net::BindError;

use crate::{
    cluster::failed,
    exit::{Exit, Failure},
};

/// Runs a role until it ends.
pub(super) fn serve_on(role: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Failure::environment(miette::miette!("no event loop: {e}")))?;
    let exit = runtime.block_on(role);
    // What hangs in the system ends with the process.
    runtime.shutdown_background();
    exit
}

/// An address that cannot be had.
pub(super) fn bound(error: BindError) -> Failure {
    failed(error)
}

/// What asks a process to end. It listens all the time, so that none is missed while something else is looked at.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        let listen = || -> std::io::Result<Self> {
            Ok(Self {
                #[cfg(unix)]
                interrupt: signal(SignalKind::interrupt())?,
                #[cfg(unix)]
                terminate: signal(SignalKind::terminate())?,
            })
        };
        listen().map_err(|e| Failure::environment(miette::miette!("signals cannot be listened for: {e}")))
    }

    /// Waits for the next signal. Cancel-safe.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Waits for the next signal. Cancel-safe.
    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        drop(tokio::signal::ctrl_c().await);
    }
}

//! A coordinator: who comes to it, and what it does for them.

use std::{sync::Arc, time::Duration};

use millstream_control::{Opening, Reply, Request, ToWorker};
use millstream_net::{ControlStream, Endpoint, Peer, Role};
use millstream_storage::{ClusterStore, StorageError};
use millstream_wasm::WasmEngine;
use tokio::task::JoinSet;

use crate::{
    jobs::{Jobs, Submission},
    workers::Workers,
};

/// How a coordinator coordinates.
#[derive(Clone, Copy, Debug)]
pub struct CoordinatorOptions {
    /// After how long a silence a worker is taken for lost, and a worker takes the coordinator for lost.
    pub heartbeat_timeout: Duration,
}

impl Default for CoordinatorOptions {
    /// A worker that is killed is noticed within two seconds.
    fn default() -> Self {
        Self { heartbeat_timeout: Duration::from_millis(1800) }
    }
}

/// A coordinator that leads.
pub struct Coordinator {
    endpoint: Endpoint,
    workers: Workers,
    jobs: Jobs,
    store: ClusterStore,
}

/// A coordinator that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    /// What is known of jobs cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Coordinator {
    /// Takes over what earlier coordinators kept in `store`, which this one leads now, and goes on with their jobs.
    pub async fn start(
        endpoint: Endpoint,
        engine: Arc<WasmEngine>,
        store: ClusterStore,
        options: CoordinatorOptions,
    ) -> Result<Self, CoordinatorError> {
        let workers = Workers::new(options.heartbeat_timeout);
        let jobs = Jobs::new(store.clone(), workers.clone(), engine);
        jobs.recover().await?;
        Ok(Self { endpoint, workers, jobs, store })
    }

    /// Serves whoever comes, for ever. Dropped, it is as if it had been killed: what runs on workers is given up by them.
    pub async fn run(self) {
        let mut serving = JoinSet::new();
        let this = Arc::new(self);
        loop {
            tokio::select! {
                accepted = this.endpoint.accept_control() => match accepted {
                    Ok((peer, stream)) => {
                        let this = this.clone();
                        serving.spawn(async move { this.serve(peer, stream).await });
                    }
                    Err(_) => return,
                },
                Some(_) = serving.join_next() => {}
            }
        }
    }

    async fn serve(&self, peer: Peer, mut stream: ControlStream) {
        let opening = tokio::time::timeout(PATIENCE, stream.receive::<Opening>()).await;
        let opening = match opening {
            Ok(Ok(opening)) => opening,
            Ok(Err(error)) => {
                return tracing::warn!(%peer, %error, "whoever connected says nothing that is known");
            }
            Err(_) => return tracing::warn!(%peer, "whoever connected says nothing"),
        };
        match (opening, peer.role) {
            (Opening::Worker(registration), Role::Worker) => {
                self.workers.serve(peer, registration, stream).await;
            }
            (Opening::Module(digest), Role::Worker) => {
                let found = self.store.module(&digest.to_string()).await;
                let found = found.unwrap_or_else(|error| {
                    tracing::error!(%digest, error = error.in_full(), "a module cannot be read");
                    None
                });
                answer(stream, &found.map(|bytes| bytes.to_vec())).await;
            }
            (Opening::Client(request), Role::Client) => {
                let reply = self.request(request).await;
                answer(stream, &reply).await;
            }
            (opening, role) => {
                tracing::warn!(%peer, "whoever connected wants what its role may not");
                let reason = format!("its certificate is a {role}'s, and a {role} may not do that");
                match opening {
                    Opening::Client(_) => answer(stream, &Reply::Refused { reason, invalid: true }).await,
                    Opening::Worker(_) => answer(stream, &ToWorker::Refused(reason)).await,
                    Opening::Module(_) => answer(stream, &None::<Vec<u8>>).await,
                }
            }
        }
    }

    async fn request(&self, request: Request) -> Reply {
        match request {
            Request::Submit { id, job, modules, from, allow_dropped_state, checkpoint_dir } => {
                let submission = Submission { id, job, modules, from, allow_dropped_state, checkpoint_dir };
                self.jobs.submit(submission).await
            }
            Request::Jobs => Reply::Jobs(self.jobs.list()),
            Request::Job(name) => self.jobs.show(&name),
            Request::Cancel(name) => self.jobs.cancel(&name),
            Request::Snapshot { job, of, to } => self.jobs.snapshot(&job, of, to).await,
            Request::Workers => Reply::Workers(self.workers.list()),
        }
    }
}

/// Sends an answer, and waits until it has been taken.
async fn answer<T: serde::Serialize>(stream: ControlStream, answer: &T) {
    let (mut sender, _receiver) = stream.split();
    let sent = async {
        sender.send(answer).await?;
        sender.finish().await
    };
    match tokio::time::timeout(PATIENCE * 6, sent).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "whoever asked has gone"),
        Err(_) => tracing::warn!("whoever asked does not take the answer"),
    }
}

/// How long whoever connects may take to say what for.
const PATIENCE: Duration = Duration::from_secs(5);

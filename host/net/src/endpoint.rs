//! The one endpoint of a process: its socket, its identity, and the threads that keep its connections alive.
//!
//! Connections are driven by a runtime of the endpoint's own, so that they live on whatever the rest of the process is
//! busy with. What comes in is bounded: handshakes at a time, their size and duration, and connections that nobody has
//! accepted yet.

mod accept;
#[cfg(test)]
pub(crate) mod rogue;
mod socket;
#[cfg(test)]
mod tests;
mod tuning;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use quinn::{ClientConfig, TokioRuntime, VarInt};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{Mutex, mpsc},
    task::AbortHandle,
};

use self::accept::Door;
use crate::{
    ChannelId, ControlStream, ExecutionKey, Identity, IdentityError, NodeId, Peer, QuicTransport, Role,
    Route,
    closing::{Closing, describe},
    handshake::{Greeted, HandshakeError, Introduction, Purpose, greet},
    quic::{Connections, Executions},
};

/// What can be set of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Threads that keep connections going.
    pub threads: usize,
    /// Largest control message, in bytes.
    pub frame_limit: usize,
    /// A control connection of which nothing is heard for so long is lost. The shorter one of the two ends counts.
    pub control_idle_timeout: Duration,
    /// The same for the connections that rows travel over.
    pub data_idle_timeout: Duration,
    /// How long connecting and the handshake may take.
    pub handshake_timeout: Duration,
    /// What the system is asked to keep of what has arrived and not been read, and of what is to be sent, in bytes.
    pub socket_buffer: usize,
    /// How long it may take until both ends of a channel between two processes are there.
    pub opening_timeout: Duration,
    /// Whether rows are compressed (LZ4) that this process sends. It costs more than the network does where that is fast.
    pub compression: bool,
    /// Handshakes at a time; whoever comes beyond that is turned away.
    pub handshakes: usize,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            threads: threads(),
            frame_limit: 64 << 20,
            control_idle_timeout: Duration::from_secs(5),
            data_idle_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(5),
            socket_buffer: 4 << 20,
            opening_timeout: Duration::from_secs(30),
            compression: false,
            handshakes: 256,
        }
    }
}

/// A quarter of the machine's, as rows are read and checked on them.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, |all| (all.get() / 4).clamp(2, 8))
}

/// A handle of the endpoint. It lives as long as one of its handles or streams.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Inner>,
}

/// An endpoint that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: is it this machine's, and free?")]
    Socket {
        /// Which one.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// There are no threads for it.
    #[error("cannot start the threads of the network")]
    Threads(#[source] std::io::Error),
    /// The certificates are no use.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// A connection that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Nobody answers there.
    #[error("{address} does not answer: {reason}")]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// What is known of it.
        reason: String,
    },
    /// Whoever is there does not want to speak to this process.
    #[error("{address} refuses this process: {reason}")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// What it says.
        reason: String,
    },
    /// Whoever is there is not who was expected.
    #[error("{address} is not the {expected} that was expected there: {reason}")]
    Untrusted {
        /// Where.
        address: SocketAddr,
        /// What was expected there.
        expected: Role,
        /// What was found.
        reason: String,
    },
    /// The endpoint itself has been closed.
    #[error("this process' endpoint is closed")]
    Closed,
}

/// A connection that was not made.
pub(crate) enum NotConnected {
    /// The other end is about to connect by itself.
    Duplicate,
    Failed(ConnectError),
}

impl From<ConnectError> for NotConnected {
    fn from(error: ConnectError) -> Self {
        Self::Failed(error)
    }
}

impl From<NotConnected> for ConnectError {
    fn from(error: NotConnected) -> Self {
        match error {
            NotConnected::Failed(error) => error,
            // Only connections for rows are ever doubled.
            NotConnected::Duplicate => Self::Closed,
        }
    }
}

/// The endpoint has been closed, here: nobody comes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process' endpoint is closed")]
pub struct EndpointClosed;

impl Endpoint {
    /// Opens the endpoint of a process. With port 0 the system chooses one: see [`Endpoint::address`].
    pub fn bind(
        address: SocketAddr,
        identity: Identity,
        options: EndpointOptions,
    ) -> Result<Self, BindError> {
        let cannot_bind = |source| BindError::Socket { address, source };
        let socket = socket::open(address, options.socket_buffer).map_err(cannot_bind)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("network")
            .enable_all()
            .build()
            .map_err(BindError::Threads)?;
        let context = runtime.enter();
        let mut server = identity.server_config()?;
        server.transport_config(tuning::server(&options)).migration(false);
        let config = tuning::endpoint();
        let quinn = quinn::Endpoint::new(config, Some(server), socket, Arc::new(TokioRuntime))
            .map_err(cannot_bind)?;
        let own = Introduction {
            cluster: identity.cluster().clone(),
            role: identity.role(),
            node: NodeId::random(),
        };
        let (mut control, mut data) = (identity.client_config()?, identity.client_config()?);
        control.transport_config(tuning::control(&options));
        data.transport_config(tuning::data(&options));
        let (accepted, accepting) = mpsc::channel(UNACCEPTED);
        let executions = Arc::<Executions>::default();
        let connections = Connections::new(own.node, executions, options.opening_timeout);
        let connections = Arc::new(connections);
        let door = Door { own: own.clone(), options: options.clone(), accepted, connections };
        let connections = door.connections.clone();
        runtime.spawn(accept::run(quinn.clone(), Arc::new(door)));
        let address = quinn.local_addr().map_err(cannot_bind)?;
        drop(context);
        let (accepting, runtime) = (Mutex::new(accepting), Some(runtime));
        let inner = Inner { quinn, address, own, options, control, data, connections, accepting, runtime };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.inner.address
    }

    /// What tells this process from others.
    pub fn node(&self) -> NodeId {
        self.inner.own.node
    }

    /// What this process is.
    pub fn role(&self) -> Role {
        self.inner.own.role
    }

    /// The channels of an attempt at a job that have an end in this process. `routes` says of each where it leads.
    pub fn transport(
        &self,
        execution: ExecutionKey,
        routes: impl Fn(ChannelId) -> Route + Send + Sync + 'static,
    ) -> QuicTransport {
        QuicTransport::new(self.clone(), execution, Box::new(routes))
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Connects to the process at `address`, which has to be an `expected`.
    ///
    /// # Cancel safety
    /// Cancelled, it gives the attempt up.
    pub async fn connect_control(
        &self,
        address: SocketAddr,
        expected: Role,
    ) -> Result<(Peer, ControlStream), ConnectError> {
        let config = self.inner.control.clone();
        let greeted = self.inner.connect(config, address, expected, Purpose::Control).await?;
        Ok((greeted.peer, ControlStream::new(greeted, self.inner.clone())))
    }

    /// Waits for the next process that connects.
    ///
    /// # Cancel safety
    /// Cancelled, it has accepted nobody.
    pub async fn accept_control(&self) -> Result<(Peer, ControlStream), EndpointClosed> {
        let greeted = self.inner.accepting.lock().await.recv().await.ok_or(EndpointClosed)?;
        Ok((greeted.peer, ControlStream::new(greeted, self.inner.clone())))
    }

    /// Closes all connections, tells the other ends why, and waits until they know or for a second.
    pub async fn close(&self, reason: &str) {
        self.inner.quinn.close(VarInt::from_u32(0), reason.as_bytes());
        let quinn = self.inner.quinn.clone();
        let idle = self.inner.spawn(async move {
            let _ = tokio::time::timeout(FAREWELL, quinn.wait_idle()).await;
        });
        // It fails if the runtime has gone, and all connections with it.
        let _ = idle.await;
    }
}

/// What the handles of an endpoint share.
pub(crate) struct Inner {
    quinn: quinn::Endpoint,
    address: SocketAddr,
    own: Introduction,
    options: EndpointOptions,
    control: ClientConfig,
    data: ClientConfig,
    connections: Arc<Connections>,
    accepting: Mutex<mpsc::Receiver<Greeted>>,
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

impl Inner {
    pub(crate) fn options(&self) -> &EndpointOptions {
        &self.options
    }

    #[cfg(test)]
    pub(crate) fn open_connections(&self) -> usize {
        self.quinn.open_connections()
    }

    pub(crate) fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    pub(crate) fn executions(&self) -> &Executions {
        self.connections.executions()
    }

    /// Runs something on the endpoint's threads until it is through, or the endpoint goes.
    pub(crate) fn spawn<F>(&self, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.as_ref().expect("it is there until the endpoint is dropped").spawn(task)
    }

    /// Connects to a worker for rows.
    pub(crate) async fn connect_data(&self, address: SocketAddr) -> Result<Greeted, NotConnected> {
        self.connect(self.data.clone(), address, Role::Worker, Purpose::Data).await
    }

    async fn connect(
        &self,
        config: ClientConfig,
        address: SocketAddr,
        expected: Role,
        purpose: Purpose,
    ) -> Result<Greeted, NotConnected> {
        let (quinn, own, limit) = (self.quinn.clone(), self.own.clone(), self.options.handshake_timeout);
        let attempt = async move {
            let connecting = quinn.connect_with(config, address, &expected.dns_name(&own.cluster));
            let connecting = connecting.map_err(|error| cannot_connect(address, error))?;
            let greeted = async {
                let connection = connecting.await.map_err(|error| HandshakeError::Lost(describe(&error)))?;
                greet(connection, &own, expected, purpose).await
            };
            match tokio::time::timeout(limit, greeted).await {
                Ok(greeted) => greeted.map_err(|error| failed(address, expected, error)),
                Err(_) => {
                    let reason = format!("not within {limit:?}");
                    Err(ConnectError::Unreachable { address, reason }.into())
                }
            }
        };
        let task = self.spawn(attempt);
        let _cancelled = AbortOnDrop(task.abort_handle());
        task.await.unwrap_or(Err(ConnectError::Closed.into()))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.quinn.close(VarInt::from_u32(0), b"");
        let (runtime, quinn) = (self.runtime.take(), self.quinn.clone());
        // The last handle may go on one of the runtime's own threads, and others are to be told that it has gone.
        let farewell = move || {
            let Some(runtime) = runtime else { return };
            let _ = runtime.block_on(async { tokio::time::timeout(FAREWELL, quinn.wait_idle()).await });
            drop(quinn);
            runtime.shutdown_background();
        };
        if std::thread::Builder::new().name("network end".into()).spawn(farewell).is_err() {
            tracing::warn!("no thread to say farewell to other processes");
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn cannot_connect(address: SocketAddr, error: quinn::ConnectError) -> ConnectError {
    match error {
        quinn::ConnectError::EndpointStopping => ConnectError::Closed,
        other => ConnectError::Unreachable { address, reason: other.to_string() },
    }
}

fn failed(address: SocketAddr, expected: Role, error: HandshakeError) -> NotConnected {
    let error = match error {
        HandshakeError::Lost(Closing::Duplicate(_)) => return NotConnected::Duplicate,
        HandshakeError::Lost(
            Closing::Refused(reason)
            | Closing::Violation(reason)
            | Closing::Done(reason)
            | Closing::GivenUp(reason),
        ) => ConnectError::Refused { address, reason },
        HandshakeError::Lost(Closing::Lost(reason)) => ConnectError::Unreachable { address, reason },
        other => ConnectError::Untrusted { address, expected, reason: other.to_string() },
    };
    error.into()
}

/// Connections that nobody has accepted yet.
const UNACCEPTED: usize = 64;
/// How long it may take to tell others that this endpoint goes.
const FAREWELL: Duration = Duration::from_secs(1);

//! Whoever connects to this process.

use std::sync::Arc;

use quinn::Incoming;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::EndpointOptions;
use crate::{
    closing::{Closing, describe},
    handshake::{Greeted, HandshakeError, Introduction, Purpose, answer, refuse},
    quic::Connections,
};

/// Answers everybody until the endpoint is closed.
pub(super) async fn run(quinn: quinn::Endpoint, door: Arc<Door>) {
    let places = Arc::new(Semaphore::new(door.options.handshakes));
    let mut connections = JoinSet::new();
    while let Some(incoming) = quinn.accept().await {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!(address = %incoming.remote_address(), "turned away: too many handshakes at once");
            incoming.refuse();
            continue;
        };
        let door = door.clone();
        connections.spawn(async move {
            let address = incoming.remote_address();
            let greeted = door.greet(incoming).await;
            drop(place);
            match greeted {
                Ok(greeted) => door.let_in(greeted).await,
                Err(HandshakeError::Duplicate) => tracing::debug!(%address, "both connect at once"),
                Err(error) => tracing::warn!(%address, %error, "a connection was refused"),
            }
        });
    }
}

/// What it takes to answer.
pub(super) struct Door {
    pub(super) own: Introduction,
    pub(super) options: EndpointOptions,
    /// Where control connections wait to be accepted.
    pub(super) accepted: mpsc::Sender<Greeted>,
    pub(super) connections: Arc<Connections>,
}

impl Door {
    async fn greet(&self, incoming: Incoming) -> Result<Greeted, HandshakeError> {
        let endless = |_| HandshakeError::Endless;
        let deadline = Instant::now() + self.options.handshake_timeout;
        let connection = timeout_at(deadline, incoming).await.map_err(endless)?;
        let connection = connection.map_err(|error| HandshakeError::Lost(describe(&error)))?;
        let answer = answer(connection.clone(), &self.own, &self.connections);
        let greeted = timeout_at(deadline, answer).await.map_err(endless).flatten();
        greeted.inspect_err(|error| refuse(&connection, error))
    }

    async fn let_in(&self, greeted: Greeted) {
        tracing::debug!(peer = %greeted.peer, purpose = ?greeted.purpose, "connected");
        let connection = greeted.connection.clone();
        match greeted.purpose {
            Purpose::Data => self.connections.clone().serve(greeted).await,
            Purpose::Control => {
                if self.accepted.send(greeted).await.is_err() {
                    Closing::Done("the process stops".into()).close(&connection);
                }
            }
        }
    }
}

//! Whoever connects to this process.

use std::{sync::Arc, time::Duration};

use quinn::Incoming;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::EndpointOptions;
use crate::{
    closing::{Closing, describe},
    handshake::{Greeted, HandshakeError, Introduction, answer, refuse},
};

/// Answers everybody until the endpoint is closed.
pub(super) async fn run(
    quinn: quinn::Endpoint,
    own: Introduction,
    options: EndpointOptions,
    accepted: mpsc::Sender<Greeted>,
) {
    let own = Arc::new(own);
    let places = Arc::new(Semaphore::new(options.handshakes));
    let mut handshakes = JoinSet::new();
    while let Some(incoming) = quinn.accept().await {
        while handshakes.try_join_next().is_some() {}
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!(address = %incoming.remote_address(), "turned away: too many handshakes at once");
            incoming.refuse();
            continue;
        };
        let (own, accepted, limit) = (own.clone(), accepted.clone(), options.handshake_timeout);
        handshakes.spawn(async move {
            let _place = place;
            let address = incoming.remote_address();
            if let Err(error) = handle(incoming, &own, &accepted, limit).await {
                tracing::warn!(%address, %error, "a connection was refused");
            }
        });
    }
}

async fn handle(
    incoming: Incoming,
    own: &Introduction,
    accepted: &mpsc::Sender<Greeted>,
    limit: Duration,
) -> Result<(), HandshakeError> {
    let endless = |_| HandshakeError::Endless;
    let deadline = Instant::now() + limit;
    let connection = timeout_at(deadline, incoming).await.map_err(endless)?;
    let connection = connection.map_err(|error| HandshakeError::Lost(describe(&error)))?;
    let answered = timeout_at(deadline, answer(connection.clone(), own)).await.map_err(endless);
    let greeted = answered.flatten().inspect_err(|error| refuse(&connection, error))?;
    tracing::debug!(peer = %greeted.peer, purpose = ?greeted.purpose, "connected");
    if accepted.send(greeted).await.is_err() {
        Closing::Done("the process stops".into()).close(&connection);
    }
    Ok(())
}

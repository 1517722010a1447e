//! The connections to other processes: one each, whoever makes it.
//!
//! When two processes connect to each other at the same time, the connection of the one with the lower number stays: that
//! one refuses the other's while its own is under way or has just been made, and the other one then waits for it.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use quinn::{Connection, VarInt};
use tokio::{sync::Notify, task::JoinSet, time::timeout};

use super::{Executions, Place, inbound::serve};
use crate::{
    NodeId, Peer,
    closing::Closing,
    endpoint::{Inner, NotConnected},
    handshake::Greeted,
};

/// The connections of an endpoint that rows travel over.
pub(crate) struct Connections {
    own: NodeId,
    executions: Arc<Executions>,
    opening_timeout: Duration,
    peers: Mutex<HashMap<NodeId, Known>>,
    changed: Notify,
}

enum Known {
    /// This process is about to connect.
    Connecting,
    Connected(Linked),
}

/// A connection and whom it leads to.
#[derive(Clone)]
pub(super) struct Linked {
    pub(super) peer: Peer,
    pub(super) connection: Connection,
    since: Instant,
}

impl Linked {
    fn new(greeted: Greeted) -> Self {
        Self { peer: greeted.peer, connection: greeted.connection, since: Instant::now() }
    }
}

impl Connections {
    pub(crate) fn new(own: NodeId, executions: Arc<Executions>, opening_timeout: Duration) -> Self {
        let (peers, changed) = (Mutex::default(), Notify::new());
        Self { own, executions, opening_timeout, peers, changed }
    }

    pub(crate) fn executions(&self) -> &Executions {
        &self.executions
    }

    /// How long it may take until a channel is there that somebody asks for.
    pub(super) fn opening_timeout(&self) -> Duration {
        self.opening_timeout
    }

    /// Whether somebody who connects is to be told that this process does so itself.
    pub(crate) fn is_duplicate(&self, peer: NodeId) -> bool {
        let ours = match self.peers().get(&peer) {
            None => false,
            Some(Known::Connecting) => true,
            Some(Known::Connected(known)) => {
                known.since.elapsed() < CROSSING && known.connection.close_reason().is_none()
            }
        };
        ours && self.own < peer
    }

    /// Somebody has connected. Serves what it asks for until the connection ends.
    pub(crate) async fn serve(self: Arc<Self>, greeted: Greeted) {
        let linked = Linked::new(greeted);
        let before = self.peers().insert(linked.peer.node, Known::Connected(linked.clone()));
        if let Some(Known::Connected(before)) = before {
            // Whoever connects anew has lost what was there before.
            Closing::Done("there is a newer connection".into()).close(&before.connection);
        }
        self.changed.notify_waiters();
        self.serve_linked(linked).await;
    }

    /// The connection to a process, which is made if there is none. Says why there is none.
    pub(super) async fn to(self: &Arc<Self>, endpoint: &Arc<Inner>, place: Place) -> Result<Linked, String> {
        let connected = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                match self.known_or_begin(place.node) {
                    Begin::Connected(linked) => return Ok(linked),
                    Begin::Wait => changed.await,
                    Begin::Connect => self.connect(endpoint, place).await?,
                }
            }
        };
        match timeout(self.opening_timeout, connected).await {
            Ok(linked) => linked,
            Err(_) => {
                Err(format!("{} cannot be connected to within {:?}", place.address, self.opening_timeout))
            }
        }
    }

    fn known_or_begin(&self, node: NodeId) -> Begin {
        match self.peers().entry(node) {
            Entry::Occupied(known) => match known.get() {
                Known::Connecting => Begin::Wait,
                Known::Connected(linked) if linked.connection.close_reason().is_none() => {
                    Begin::Connected(linked.clone())
                }
                Known::Connected(_) => {
                    *known.into_mut() = Known::Connecting;
                    Begin::Connect
                }
            },
            Entry::Vacant(unknown) => {
                unknown.insert(Known::Connecting);
                Begin::Connect
            }
        }
    }

    async fn connect(self: &Arc<Self>, endpoint: &Arc<Inner>, place: Place) -> Result<(), String> {
        // A cancelled attempt is over as well.
        let attempt = Attempt { connections: self.clone(), node: place.node };
        let greeted = match endpoint.connect_data(place.address).await {
            Ok(greeted) => greeted,
            Err(NotConnected::Duplicate) => {
                // If it does not come, this end tries again.
                let _ = timeout(CROSSING, self.await_other(place)).await;
                return Ok(());
            }
            Err(NotConnected::Failed(error)) => return Err(error.to_string()),
        };
        let linked = Linked::new(greeted);
        if linked.peer.node != place.node {
            Closing::Done("another process was expected here".into()).close(&linked.connection);
            return Err(format!("{} has been taken over by another process: {}", place.address, linked.peer));
        }
        self.peers().insert(place.node, Known::Connected(linked.clone()));
        drop(attempt);
        endpoint.spawn(self.clone().serve_linked(linked));
        Ok(())
    }

    /// Waits until the other end has connected.
    async fn await_other(&self, place: Place) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if matches!(self.peers().get(&place.node), Some(Known::Connected(_))) {
                return;
            }
            changed.await;
        }
    }

    async fn serve_linked(self: Arc<Self>, linked: Linked) {
        let Linked { peer, connection, .. } = &linked;
        connection.set_max_concurrent_bi_streams(VarInt::from_u32(CHANNELS));
        let mut channels = JoinSet::new();
        while let Ok((send, receive)) = connection.accept_bi().await {
            while channels.try_join_next().is_some() {}
            channels.spawn(serve(self.clone(), linked.clone(), send, receive));
        }
        // What it had sent before it went is still to be read.
        while channels.join_next().await.is_some() {}
        let mut peers = self.peers();
        let ours = |known: &Known| matches!(known, Known::Connected(known) if known.connection.stable_id() == connection.stable_id());
        if peers.get(&peer.node).is_some_and(ours) {
            peers.remove(&peer.node);
        }
    }

    #[cfg(test)]
    pub(super) fn connection(&self, node: NodeId) -> Option<Connection> {
        match self.peers().get(&node)? {
            Known::Connecting => None,
            Known::Connected(linked) => Some(linked.connection.clone()),
        }
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<NodeId, Known>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Begin {
    Connected(Linked),
    Wait,
    Connect,
}

/// An attempt to connect. Others who wait for it look again when it is over.
struct Attempt {
    connections: Arc<Connections>,
    node: NodeId,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut peers = self.connections.peers();
        if matches!(peers.get(&self.node), Some(Known::Connecting)) {
            peers.remove(&self.node);
        }
        drop(peers);
        self.connections.changed.notify_waiters();
    }
}

/// As long after it was made a connection may still cross one that the other end has begun.
const CROSSING: Duration = Duration::from_secs(2);
/// Channels from one process to another.
const CHANNELS: u32 = 1 << 14;

//! The transport between processes, over QUIC.
//!
//! A channel between two processes has a stream of its own on the one connection of the two, so that none waits for
//! another. At the sender's end a subtask leaves frames with a task of the endpoint's ([`outbound`]), which writes them; at
//! the receiver's end a task reads them, checks them and puts them into a channel of that process ([`inbound`]), out of
//! which the gate takes them like any other's. Frames are read as they come, whatever the receiver is busy with: there are
//! never more than it has granted credits for ([`millstream_protocol::GrantBook`]).
//!
//! Barriers and the end are frames of the same stream, behind what has been sent. All of that had credit, so it is on its
//! way to memory that waits for it, and a barrier ahead of it would have to wait for it there.
//!
//! A channel belongs to an attempt at a job. What asks for one of an attempt that is over is refused; what comes early
//! waits.

mod connections;
mod executions;
mod inbound;
mod outbound;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use millstream_types::Schema;

pub(crate) use connections::Connections;
pub(crate) use executions::Executions;

use crate::{
    ChannelId, ChannelReceiver, ChannelSender, Endpoint, GateBudget, LocalTransport, NodeId, Transport,
    TransportError,
};
use executions::{Expected, Incoming};

/// One attempt at a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExecutionKey {
    /// Which job.
    pub job: u128,
    /// Which attempt at it; later ones have higher numbers.
    pub attempt: u32,
}

impl std::fmt::Display for ExecutionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "attempt {} at job {:032x}", self.attempt, self.job)
    }
}

/// Where a subtask runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The process.
    pub node: NodeId,
    /// Where its endpoint listens.
    pub address: SocketAddr,
}

/// Where a channel leads, and what travels over it.
#[derive(Clone, Debug)]
pub struct Route {
    /// The sending subtask.
    pub from: Place,
    /// The receiving subtask.
    pub to: Place,
    /// The rows.
    pub schema: Schema,
}

type Routes = Box<dyn Fn(ChannelId) -> Route + Send + Sync>;

/// The channels of one attempt that have an end in this process. The attempt is over here when it is dropped; what had been
/// sent by then is still delivered.
pub struct QuicTransport {
    endpoint: Endpoint,
    execution: ExecutionKey,
    routes: Routes,
    local: LocalTransport,
    incoming: Arc<Incoming>,
    opened: Mutex<Opened>,
}

/// The ends that have been opened.
#[derive(Default)]
struct Opened {
    senders: HashSet<ChannelId>,
    receivers: HashSet<ChannelId>,
}

impl QuicTransport {
    pub(crate) fn new(endpoint: Endpoint, execution: ExecutionKey, routes: Routes) -> Self {
        let incoming = endpoint.inner().executions().begin(execution);
        Self { endpoint, execution, routes, local: LocalTransport::new(), incoming, opened: Mutex::default() }
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_here(&self, place: Place) -> bool {
        place.node == self.endpoint.node()
    }
}

impl Transport for QuicTransport {
    fn sender(&self, channel: ChannelId) -> Result<Box<dyn ChannelSender>, TransportError> {
        let route = (self.routes)(channel);
        if !self.is_here(route.from) {
            return Err(TransportError::Elsewhere(channel));
        }
        if !self.opened().senders.insert(channel) {
            return Err(TransportError::Open(channel));
        }
        if self.is_here(route.to) {
            return self.local.sender(channel);
        }
        Ok(Box::new(outbound::open(&self.endpoint, self.execution, channel, route.to, route.schema)))
    }

    fn gate(
        &self,
        channels: &[ChannelId],
        budget: GateBudget,
    ) -> Result<Vec<Box<dyn ChannelReceiver>>, TransportError> {
        let routes: Vec<Route> = channels.iter().map(|&channel| (self.routes)(channel)).collect();
        if let Some((_, &channel)) = routes.iter().zip(channels).find(|(route, _)| !self.is_here(route.to)) {
            return Err(TransportError::Elsewhere(channel));
        }
        for &channel in channels {
            if !self.opened().receivers.insert(channel) {
                return Err(TransportError::Open(channel));
            }
        }
        let receivers = self.local.gate(channels, budget)?;
        for (route, &channel) in routes.into_iter().zip(channels) {
            if !self.is_here(route.from) {
                let end = self.local.inbound(channel)?;
                self.incoming.expect(Expected { end, sender: route.from.node, schema: route.schema });
            }
        }
        self.endpoint.inner().executions().announce();
        Ok(receivers)
    }
}

impl Drop for QuicTransport {
    fn drop(&mut self) {
        self.endpoint.inner().executions().end(self.execution, &self.incoming);
    }
}

//! How elements get from one subtask to another, and messages from one process to another.
//!
//! A *channel* leads from one subtask to one input of another; a *gate* is the receiving end of all channels of an
//! input. Data needs credit (see `millstream_protocol::CreditLedger`), events do not, order is kept. [`Transport`] is what
//! that takes, within a process or between several.
//!
//! Processes speak QUIC: an [`Endpoint`] each, with an [`Identity`] that its cluster's authority has signed.

mod closing;
#[cfg(test)]
mod conformance;
mod control;
mod endpoint;
mod handshake;
mod identity;
mod local;
mod names;
mod quic;
mod transport;
mod trusted;
mod wire;

pub use control::{ControlError, ControlReceiver, ControlSender, ControlStream};
pub use endpoint::{BindError, ConnectError, Endpoint, EndpointClosed, EndpointOptions};
pub use identity::{CertificateAuthority, Identity, IdentityError, IssuedCertificate};
pub use local::LocalTransport;
pub use names::{ClusterId, InvalidClusterId, NodeId, Peer, Role, UnknownRole};
pub use quic::{ExecutionKey, Place, QuicTransport, Route};
pub use transport::{
    Ahead, ChannelId, ChannelReceiver, ChannelSender, Charged, Disconnected, GateBudget, Transport,
    TransportError,
};

//! How elements get from one subtask to another: the transport trait, and the transport within one process.
//!
//! A *channel* leads from one subtask to one input of another; a *gate* is the receiving end of all channels of an
//! input. Data needs credit (see `millstream_protocol::CreditLedger`), events do not, order is kept.

#[cfg(test)]
mod conformance;
mod local;
mod transport;

pub use local::LocalTransport;
pub use transport::{
    Ahead, ChannelId, ChannelReceiver, ChannelSender, Charged, Disconnected, GateBudget, Transport,
    TransportError,
};

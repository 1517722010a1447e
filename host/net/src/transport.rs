//! What any transport is.

use std::{
    fmt,
    task::{Context, Poll},
};

use async_trait::async_trait;
use millstream_types::StreamElement;

/// One channel of a job: an edge of the execution graph between two subtasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId {
    /// The edge of the job graph.
    pub edge: u32,
    /// The sending subtask.
    pub from: u32,
    /// The receiving subtask.
    pub to: u32,
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edge {} from {} to {}", self.edge, self.from, self.to)
    }
}

/// How much a gate lets be under way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateBudget {
    /// Credits that each channel has of its own.
    pub exclusive: u32,
    /// Credits that the channels share.
    pub floating: u32,
    /// Elements that may wait on a channel, events included.
    pub elements: usize,
}

impl Default for GateBudget {
    /// 256 KiB a channel and 8 MiB a gate: ten full batches of 100-byte rows, so that two threads that take turns
    /// never wait for each other.
    fn default() -> Self {
        Self { exclusive: 8, floating: 256, elements: MOST_ELEMENTS }
    }
}

impl GateBudget {
    /// The default for a gate of so many channels. Where there are many senders, each needs fewer places, which take
    /// memory whether they are used or not.
    pub fn of_channels(channels: usize) -> Self {
        let elements = (ELEMENTS_OF_A_GATE / channels.max(1)).clamp(FEWEST_ELEMENTS, MOST_ELEMENTS);
        Self { elements, ..Self::default() }
    }
}

const ELEMENTS_OF_A_GATE: usize = 4096;
const MOST_ELEMENTS: usize = 256;
const FEWEST_ELEMENTS: usize = 16;

/// The other end is gone: its subtask has ended or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end of {0} is gone")]
pub struct Disconnected(pub ChannelId);

/// A channel that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Somebody has this end already.
    #[error("{0} is open already")]
    Open(ChannelId),
}

/// Opens both ends of channels. The ends find each other by id, in whatever order they are opened.
pub trait Transport: Send + Sync {
    /// The sending end of a channel.
    fn sender(&self, channel: ChannelId) -> Result<Box<dyn ChannelSender>, TransportError>;

    /// The receiving ends of the channels of one gate, in the order given.
    fn gate(
        &self,
        channels: &[ChannelId],
        budget: GateBudget,
    ) -> Result<Vec<Box<dyn ChannelReceiver>>, TransportError>;
}

/// The sending end of a channel.
#[async_trait(?Send)]
pub trait ChannelSender {
    /// Sends an element, waiting for credit if it is data and for room if there is none. Cancel-safe: an element
    /// that was not taken has not been sent.
    async fn send(&mut self, element: StreamElement) -> Result<(), Disconnected>;
}

/// The receiving end of a channel.
pub trait ChannelReceiver {
    /// The next element. An element's credit returns when the next one is asked for.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<StreamElement, Disconnected>>;
}

//! What any transport is.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use millstream_protocol::credits_for;
use millstream_types::{Barrier, StreamElement};

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
    /// Elements that may wait on a channel, but for barriers and the end.
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

/// The other end is gone: its subtask has ended or failed, or the way to it is cut.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other end of {channel} is gone{}", Because(.reason))]
pub struct Disconnected {
    /// Which channel.
    pub channel: ChannelId,
    /// What is known of it beyond that; of a subtask of this process others tell.
    pub reason: Option<Arc<str>>,
}

impl Disconnected {
    /// Of a channel whose other end has gone by itself.
    pub fn new(channel: ChannelId) -> Self {
        Self { channel, reason: None }
    }
}

struct Because<'a>(&'a Option<Arc<str>>);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_deref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}

/// A channel that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// Somebody has this end already.
    #[error("{0} is open already")]
    Open(ChannelId),
    /// The end is to be opened by another process.
    #[error("{0} has the end that was to be opened in another process")]
    Elsewhere(ChannelId),
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

/// An element with the credits that it costs, which are found out once however often it is tried to send it.
#[derive(Clone, Debug)]
pub struct Charged {
    pub(crate) credits: u32,
    /// What it costs on its way to another process; 0 while nobody has asked.
    pub(crate) wire_credits: u32,
    pub(crate) element: StreamElement,
}

impl From<StreamElement> for Charged {
    fn from(element: StreamElement) -> Self {
        let credits = match &element {
            StreamElement::Batch(batch) => credits_for(batch.retained_bytes()),
            _ => 0,
        };
        Self { credits, wire_credits: 0, element }
    }
}

impl Charged {
    /// What has arrived from another process, with what it was charged there.
    pub(crate) fn arrived(element: StreamElement, credits: u32) -> Self {
        Self { credits, wire_credits: 0, element }
    }

    /// The element.
    pub fn element(&self) -> &StreamElement {
        &self.element
    }

    /// What it costs; events cost nothing.
    pub fn credits(&self) -> u32 {
        self.credits
    }
}

/// The sending end of a channel.
pub trait ChannelSender {
    /// Sends what `element` holds. Until there is credit, if it is data, and room, it stays there, nothing has been sent,
    /// and the task is woken when it is worth another try.
    ///
    /// A barrier and the end of input need neither, and wait for nothing once the other end is there. They travel on a
    /// lane of their own, with the place behind which they stand: behind all that has been sent. So a sender overtakes
    /// what it has not sent by sending the barrier first.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        element: &mut Option<Charged>,
    ) -> Poll<Result<(), Disconnected>>;
}

/// The receiving end of a channel.
pub trait ChannelReceiver {
    /// The next element. An element's credit returns when the next one is asked for.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<StreamElement, Disconnected>>;

    /// The next barrier, or the end, that has been sent, whether or not it is its turn; once what is ahead of it has
    /// arrived. What was sent had credit, so that takes no longer than the way.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Ahead>;

    /// What is ahead of that: elements that are still to be received, in order, none if there is no such thing.
    fn ahead(&mut self) -> Vec<StreamElement>;

    /// Takes the barrier that [`ChannelReceiver::poll_ahead`] tells of. It does not come in its turn then. Nothing happens
    /// if there is none.
    fn overtake(&mut self);
}

/// What the elements of a channel are ahead of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// A barrier.
    Barrier(Barrier),
    /// The end of input.
    End,
}

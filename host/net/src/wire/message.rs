//! What sender and receiver of a channel tell each other beside elements.

use serde::{Deserialize, Serialize};

use crate::{ChannelId, ExecutionKey};

/// The sender asks for a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) job: u128,
    pub(crate) attempt: u32,
    pub(crate) edge: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The columns of the rows, each with its type.
    pub(crate) columns: Vec<String>,
}

impl Open {
    pub(crate) fn new(execution: ExecutionKey, channel: ChannelId, columns: Vec<String>) -> Self {
        let ExecutionKey { job, attempt } = execution;
        let ChannelId { edge, from, to } = channel;
        Self { job, attempt, edge, from, to, columns }
    }

    pub(crate) fn execution(&self) -> ExecutionKey {
        ExecutionKey { job: self.job, attempt: self.attempt }
    }

    pub(crate) fn channel(&self) -> ChannelId {
        ChannelId { edge: self.edge, from: self.from, to: self.to }
    }
}

/// The receiver has the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Accepted {
    /// Credits that the channel has of its own.
    pub(crate) exclusive: u32,
    /// Elements that may wait there.
    pub(crate) places: u64,
}

/// The receiver does not have the channel, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) reason: String,
}

/// What the receiver has granted and taken, since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// All credits that the sender has been granted.
    pub(crate) granted: u64,
    /// All elements that have been taken out.
    pub(crate) consumed: u64,
    /// Whether some of the credits are not the channel's own, so that others may have a use for them.
    pub(crate) floating: bool,
}

/// What the sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Want {
    /// The cost of what it has, if it lacks credits for it.
    pub(crate) credits: u32,
    /// Whether it lacks a place.
    pub(crate) place: bool,
}

/// Credits that the sender has no use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Return {
    pub(crate) credits: u32,
}

/// Most bytes of a message.
pub(crate) const LONGEST_MESSAGE: u32 = 4096;
/// Most bytes of what asks for a channel, which has all of the schema's names.
pub(crate) const LONGEST_OPEN: u32 = 1 << 20;

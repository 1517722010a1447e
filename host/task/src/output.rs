//! A result partition: the sending side of one edge in one subtask.
//!
//! Rows of a hash exchange are gathered per target, so that tiny batches do not travel: a target's rows go out once
//! they are [`FLUSH_ROWS`] or [`FLUSH_BYTES`], when the subtask's input runs dry, when an event follows, or when they
//! have waited for the buffer timeout. All of that is looked at once a batch; no timer runs.

use std::time::{Duration, Instant};

use millstream_net::{ChannelSender, Disconnected};
use millstream_types::{Batch, KeyError, StreamElement};

use crate::{Partitioner, partition::HashSplitter};

/// Rows that a target's batch is sent with at the latest.
const FLUSH_ROWS: usize = millstream_types::Limits::BATCH_ROWS;
/// Bytes that a target's batch is sent with at the latest.
const FLUSH_BYTES: usize = 32 * 1024;
/// When fewer than one row in so many of a batch goes to a target, its text is copied out of the common buffers.
const COMPACT_SHARE: usize = 4;

/// The outgoing channels of an edge.
pub struct ResultPartition {
    partitioner: Partitioner,
    channels: Vec<Box<dyn ChannelSender>>,
    gathered: Vec<Gathered>,
    splitter: HashSplitter,
    timeout: Duration,
    oldest: Option<Instant>,
    turn: usize,
    blocked: Duration,
}

#[derive(Default)]
struct Gathered {
    batches: Vec<Batch>,
    rows: usize,
    bytes: usize,
}

/// Rows that could not be sent.
#[derive(Debug)]
pub(crate) enum SendError {
    Disconnected(Disconnected),
    Key(KeyError),
}

impl From<Disconnected> for SendError {
    fn from(gone: Disconnected) -> Self {
        Self::Disconnected(gone)
    }
}

impl ResultPartition {
    /// The sending side of an edge whose channels these are, by receiving subtask. `first` is whose turn it is first
    /// where receivers take turns: the sender's own position, so that senders do not all begin with the same one.
    pub fn new(
        partitioner: Partitioner,
        channels: Vec<Box<dyn ChannelSender>>,
        timeout: Duration,
        first: u32,
    ) -> Self {
        let gathered = channels.iter().map(|_| Gathered::default()).collect();
        let (splitter, oldest, blocked) = (HashSplitter::default(), None, Duration::ZERO);
        let turn = first as usize % channels.len().max(1);
        Self { partitioner, channels, gathered, splitter, timeout, oldest, turn, blocked }
    }

    /// Sends rows where they belong.
    pub(crate) async fn send(&mut self, batch: Batch) -> Result<(), SendError> {
        match &self.partitioner {
            Partitioner::Forward => Ok(self.put(0, StreamElement::Batch(batch)).await?),
            Partitioner::Rebalance => {
                let target = self.turn;
                self.turn = (target + 1) % self.channels.len();
                Ok(self.put(target, StreamElement::Batch(batch)).await?)
            }
            Partitioner::Broadcast => Ok(self.put_all(&StreamElement::Batch(batch)).await?),
            Partitioner::Hash { columns, max_parallelism } => {
                let (max, targets) = (*max_parallelism, self.channels.len());
                let parts = self.splitter.split(&batch, columns, max, targets).map_err(SendError::Key)?;
                self.gather(&batch, parts).await
            }
        }
    }

    /// Sends an event to all channels, behind what has been gathered.
    pub(crate) async fn event(&mut self, event: &StreamElement) -> Result<(), SendError> {
        self.flush().await?;
        Ok(self.put_all(event).await?)
    }

    /// Sends what has been gathered.
    pub(crate) async fn flush(&mut self) -> Result<(), SendError> {
        if self.oldest.take().is_some() {
            for target in 0..self.channels.len() {
                self.flush_target(target).await?;
            }
        }
        Ok(())
    }

    /// Time spent waiting for credit since the last call.
    pub(crate) fn take_blocked(&mut self) -> Duration {
        std::mem::take(&mut self.blocked)
    }

    async fn gather(&mut self, whole: &Batch, parts: Vec<Option<Batch>>) -> Result<(), SendError> {
        let row_bytes = whole.content_bytes().div_ceil(whole.rows().max(1));
        for (target, part) in parts.into_iter().enumerate() {
            let Some(part) = part else { continue };
            let few = part.rows() * COMPACT_SHARE < whole.rows();
            let gathered = &mut self.gathered[target];
            gathered.rows += part.rows();
            gathered.bytes += part.rows() * row_bytes;
            gathered.batches.push(if few { part.compacted() } else { part });
            if gathered.rows >= FLUSH_ROWS || gathered.bytes >= FLUSH_BYTES {
                self.flush_target(target).await?;
            }
        }
        if self.gathered.iter().all(|g| g.batches.is_empty()) {
            self.oldest = None;
            return Ok(());
        }
        let oldest = *self.oldest.get_or_insert_with(Instant::now);
        if oldest.elapsed() >= self.timeout { self.flush().await } else { Ok(()) }
    }

    async fn flush_target(&mut self, target: usize) -> Result<(), SendError> {
        let gathered = std::mem::take(&mut self.gathered[target]);
        match Batch::concat(&gathered.batches) {
            Some(batch) => Ok(self.put(target, StreamElement::Batch(batch)).await?),
            None => Ok(()),
        }
    }

    async fn put_all(&mut self, element: &StreamElement) -> Result<(), Disconnected> {
        for target in 0..self.channels.len() {
            self.put(target, element.clone()).await?;
        }
        Ok(())
    }

    async fn put(&mut self, target: usize, element: StreamElement) -> Result<(), Disconnected> {
        let mut send = self.channels[target].send(element);
        let now = futures_util::FutureExt::now_or_never(&mut send);
        if let Some(sent) = now {
            return sent;
        }
        let started = Instant::now();
        let sent = send.await;
        self.blocked += started.elapsed();
        sent
    }
}

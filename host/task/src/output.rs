//! A result partition: the sending side of one edge in one subtask.
//!
//! Rows of a hash exchange are gathered per target, so that tiny batches do not travel: a target's rows go out once
//! they are [`FLUSH_ROWS`] or [`FLUSH_BYTES`], when the subtask's input runs dry, when an event follows, or when they
//! have waited for the buffer timeout. All of that is looked at once a batch; no timer runs.
//!
//! Where the [`Overdraft`] is open, what cannot be sent is put by. What a barrier overtakes is that and what has been
//! gathered: a copy of it, by reference, belongs to the snapshot, and it is sent behind the barrier as it would have been.

use std::{
    collections::VecDeque,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use millstream_net::{ChannelId, ChannelSender, Charged, Disconnected};
use millstream_types::{Alignment, Barrier, Batch, KeyError, StreamElement};

use crate::{Partitioner, in_flight::Overtaken, overdraft::Overdraft, partition::HashSplitter};

/// Rows that a target's batch is sent with at the latest.
const FLUSH_ROWS: usize = millstream_types::Limits::BATCH_ROWS;
/// Bytes that a target's batch is sent with at the latest.
const FLUSH_BYTES: usize = 32 * 1024;
/// When fewer than one row in so many of a batch goes to a target, its text is copied out of the common buffers.
const COMPACT_SHARE: usize = 4;

/// The outgoing channels of an edge.
pub struct ResultPartition {
    partitioner: Partitioner,
    channels: Vec<Outgoing>,
    splitter: HashSplitter,
    timeout: Duration,
    oldest: Option<Instant>,
    turn: usize,
    blocked: Duration,
    overdraft: Rc<Overdraft>,
    /// What the last barrier that overtook anything has overtaken; none if it did not.
    overtaken: Option<Vec<Overtaken>>,
}

/// The sending end of a channel.
pub struct OutgoingChannel {
    /// Which one it is.
    pub id: ChannelId,
    /// The end.
    pub sender: Box<dyn ChannelSender>,
}

struct Outgoing {
    channel: OutgoingChannel,
    /// What has been put by, ahead of what is gathered.
    waiting: VecDeque<Charged>,
    gathered: Gathered,
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
        channels: Vec<OutgoingChannel>,
        timeout: Duration,
        first: u32,
    ) -> Self {
        let outgoing =
            |channel| Outgoing { channel, waiting: VecDeque::new(), gathered: Gathered::default() };
        let channels: Vec<_> = channels.into_iter().map(outgoing).collect();
        Self {
            partitioner,
            turn: first as usize % channels.len().max(1),
            channels,
            splitter: HashSplitter::default(),
            timeout,
            oldest: None,
            blocked: Duration::ZERO,
            overdraft: Rc::default(),
            overtaken: None,
        }
    }

    /// Has what cannot be sent put by whenever this is open.
    pub(crate) fn set_overdraft(&mut self, overdraft: Rc<Overdraft>) {
        self.overdraft = overdraft;
    }

    /// Sends rows where they belong.
    pub(crate) async fn send(&mut self, batch: Batch) -> Result<(), SendError> {
        match &self.partitioner {
            Partitioner::Forward => Ok(self.put(0, StreamElement::Batch(batch)).await?),
            Partitioner::Rebalance => {
                let target = self.take_turn();
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

    /// Sends an event to all channels, behind what has been gathered; or a barrier ahead of it, if it may overtake and
    /// its time has come.
    pub(crate) async fn event(&mut self, event: &StreamElement) -> Result<(), SendError> {
        self.flush().await?;
        match event {
            StreamElement::Barrier(barrier) if self.is_overtaken_by(barrier) => {
                Ok(self.overtake(barrier).await?)
            }
            _ => Ok(self.put_all(event).await?),
        }
    }

    /// Sends what has been put by and gathered.
    pub(crate) async fn flush(&mut self) -> Result<(), SendError> {
        if self.overdraft.is_used() {
            self.catch_up().await?;
        }
        if self.oldest.take().is_some() {
            for target in 0..self.channels.len() {
                self.flush_target(target).await?;
            }
        }
        Ok(())
    }

    /// Sends what has been put by.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Disconnected> {
        let started = Instant::now();
        let Self { channels, overdraft, .. } = self;
        let sent = poll_fn(|cx| {
            let mut all = Poll::Ready(Ok(()));
            for channel in channels.iter_mut() {
                match channel.poll_catch_up(cx, overdraft) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(gone)) => return Poll::Ready(Err(gone)),
                    Poll::Pending => all = Poll::Pending,
                }
            }
            // What is left stays where it is.
            if overdraft.is_open() { Poll::Ready(Ok(())) } else { all }
        })
        .await;
        self.blocked += started.elapsed();
        sent
    }

    /// Takes what a barrier has overtaken, if one has since the last call.
    pub(crate) fn take_overtaken(&mut self) -> Option<Vec<Overtaken>> {
        self.overtaken.take()
    }

    /// Puts an element of a snapshot by, to be sent before anything else: rows where they belong now, or, where all get all,
    /// to the receiver `to`, as the others have their own.
    pub(crate) fn resend(&mut self, element: StreamElement, to: u32) -> Result<(), KeyError> {
        let StreamElement::Batch(batch) = element else {
            self.channels
                .iter_mut()
                .for_each(|channel| channel.put_by(element.clone().into(), &self.overdraft));
            return Ok(());
        };
        let parts = match &self.partitioner {
            Partitioner::Forward => vec![(0, batch)],
            // To whom it had been sent, as another may be restored at the end of its input.
            Partitioner::Rebalance => vec![(to as usize % self.channels.len(), batch)],
            Partitioner::Broadcast => vec![(to as usize, batch)],
            Partitioner::Hash { columns, max_parallelism } => {
                let parts = self.splitter.split(&batch, columns, *max_parallelism, self.channels.len())?;
                parts.into_iter().enumerate().filter_map(|(target, part)| Some((target, part?))).collect()
            }
        };
        for (target, part) in parts {
            if let Some(channel) = self.channels.get_mut(target) {
                channel.put_by(StreamElement::Batch(part).into(), &self.overdraft);
            }
        }
        Ok(())
    }

    /// Time spent waiting for credit since the last call.
    pub(crate) fn take_blocked(&mut self) -> Duration {
        std::mem::take(&mut self.blocked)
    }

    fn take_turn(&mut self) -> usize {
        let target = self.turn;
        self.turn = (target + 1) % self.channels.len();
        target
    }

    /// Without the overdraft all that was ahead of the barrier has been sent.
    fn is_overtaken_by(&self, barrier: &Barrier) -> bool {
        self.overdraft.is_open() && barrier.overtakes_at().is_some()
    }

    async fn overtake(&mut self, barrier: &Barrier) -> Result<(), Disconnected> {
        let barrier = Barrier { alignment: Alignment::Unaligned, ..barrier.clone() };
        let overtaken = self.overtaken.get_or_insert_default();
        for outgoing in &mut self.channels {
            let channel = outgoing.channel.id;
            overtaken.push(Overtaken { channel, elements: outgoing.unsent() });
            let mut element = Some(StreamElement::Barrier(barrier.clone()).into());
            poll_fn(|cx| outgoing.channel.sender.poll_send(cx, &mut element)).await?;
        }
        Ok(())
    }

    async fn gather(&mut self, whole: &Batch, parts: Vec<Option<Batch>>) -> Result<(), SendError> {
        let row_bytes = whole.content_bytes().div_ceil(whole.rows().max(1));
        for (target, part) in parts.into_iter().enumerate() {
            let Some(part) = part else { continue };
            let few = part.rows() * COMPACT_SHARE < whole.rows();
            let gathered = &mut self.channels[target].gathered;
            gathered.rows += part.rows();
            gathered.bytes += part.rows() * row_bytes;
            gathered.batches.push(if few { part.compacted() } else { part });
            if gathered.rows >= FLUSH_ROWS || gathered.bytes >= FLUSH_BYTES {
                self.flush_target(target).await?;
            }
        }
        if self.channels.iter().all(|channel| channel.gathered.batches.is_empty()) {
            self.oldest = None;
            return Ok(());
        }
        let oldest = *self.oldest.get_or_insert_with(Instant::now);
        if oldest.elapsed() >= self.timeout { self.flush().await } else { Ok(()) }
    }

    async fn flush_target(&mut self, target: usize) -> Result<(), SendError> {
        let gathered = std::mem::take(&mut self.channels[target].gathered);
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
        let (mut element, mut started) = (Some(Charged::from(element)), None);
        let Self { channels, overdraft, .. } = self;
        let sent = poll_fn(|cx| {
            let sent = channels[target].poll_put(cx, &mut element, overdraft);
            if sent.is_pending() {
                started.get_or_insert_with(Instant::now);
            }
            sent
        })
        .await;
        if let Some(started) = started {
            self.blocked += started.elapsed();
        }
        sent
    }
}

impl Outgoing {
    /// Sends an element, or puts it by if it has to wait and may not.
    fn poll_put(
        &mut self,
        cx: &mut Context<'_>,
        element: &mut Option<Charged>,
        overdraft: &Overdraft,
    ) -> Poll<Result<(), Disconnected>> {
        let sent = match self.waiting.is_empty() || self.poll_catch_up(cx, overdraft)?.is_ready() {
            true => self.channel.sender.poll_send(cx, element),
            false => Poll::Pending,
        };
        match element.take_if(|element| sent.is_pending() && overdraft.admit(element)) {
            Some(element) => {
                self.put_by(element, overdraft);
                Poll::Ready(Ok(()))
            }
            None => sent,
        }
    }

    fn put_by(&mut self, element: Charged, overdraft: &Overdraft) {
        overdraft.put();
        self.waiting.push_back(element);
    }

    /// Sends what has been put by.
    fn poll_catch_up(
        &mut self,
        cx: &mut Context<'_>,
        overdraft: &Overdraft,
    ) -> Poll<Result<(), Disconnected>> {
        while let Some(first) = self.waiting.pop_front() {
            let mut first = Some(first);
            let sent = self.channel.sender.poll_send(cx, &mut first)?;
            if let Some(first) = first {
                self.waiting.push_front(first);
            }
            if sent.is_pending() {
                return Poll::Pending;
            }
            overdraft.sent();
        }
        Poll::Ready(Ok(()))
    }

    /// What a barrier overtakes.
    fn unsent(&self) -> Vec<StreamElement> {
        let waiting = self.waiting.iter().map(Charged::element);
        let waiting = waiting.filter(|element| Overtaken::keeps(element)).cloned();
        waiting.chain(self.gathered.batches.iter().cloned().map(StreamElement::Batch)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::Arc, task::Waker};

    use arrow_array::{Int64Array, RecordBatch};
    use millstream_net::{Ahead, ChannelReceiver, GateBudget, LocalTransport, Transport};
    use millstream_types::{BarrierKind, DataType, Field, Schema};

    use super::*;
    use crate::overdraft::unless_overtaken;

    const ID: ChannelId = ChannelId { edge: 0, from: 0, to: 0 };

    /// Three credits: 64 KiB, and a little for what describes them.
    fn batch() -> Batch {
        let schema = Schema::new(vec![Field::new("x", DataType::Int64)]);
        let column = Arc::new(Int64Array::from(vec![7; 4096]));
        Batch::without_times(RecordBatch::try_new(schema.arrow().clone(), vec![column]).expect("fits"))
    }

    fn edge() -> (ResultPartition, Rc<Overdraft>, Box<dyn ChannelReceiver>) {
        let transport = LocalTransport::new();
        let budget = GateBudget { exclusive: 4, floating: 0, elements: 64 };
        let receiver = transport.gate(&[ID], budget).expect("new").remove(0);
        let channels = vec![OutgoingChannel { id: ID, sender: transport.sender(ID).expect("new") }];
        let mut edge = ResultPartition::new(Partitioner::Forward, channels, Duration::ZERO, 0);
        let overdraft = Rc::<Overdraft>::default();
        edge.set_overdraft(overdraft.clone());
        (edge, overdraft, receiver)
    }

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_is_put_by_is_bounded() {
        let (mut edge, overdraft, _receiver) = edge();
        let mut sent = 0;
        let endless = async {
            loop {
                edge.send(batch()).await.expect("the receiver is there");
                sent += 1;
            }
        };
        assert!(poll(unless_overtaken(pin!(endless), &overdraft, |_| Some(Duration::ZERO))).is_pending());
        let put_by = (32 << 20) / millstream_protocol::CREDIT_BYTES;
        assert_eq!(sent, 1 + put_by.div_ceil(3), "one under way, and 32 MiB put by");
        assert!(overdraft.is_used());
    }

    #[test]
    fn a_barrier_goes_ahead_of_what_is_put_by_and_takes_a_copy() {
        let (mut edge, overdraft, mut receiver) = edge();
        let barrier = Barrier {
            id: 3,
            kind: BarrierKind::Checkpoint,
            alignment: Alignment::Unaligned,
            triggered: 0,
            stop: false,
            base: None,
        };
        let work = async {
            for _ in 0..5 {
                edge.send(batch()).await.expect("the receiver is there");
            }
            edge.event(&StreamElement::Barrier(barrier.clone())).await.expect("the receiver is there");
        };
        assert!(poll(unless_overtaken(pin!(work), &overdraft, |_| Some(Duration::ZERO))).is_ready());
        let overtaken = edge.take_overtaken().expect("it has overtaken");
        assert_eq!((overtaken[0].channel, overtaken[0].elements.len()), (ID, 4));
        assert!(edge.take_overtaken().is_none());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(receiver.poll_ahead(&mut context), Poll::Ready(Ahead::Barrier(barrier)));
        assert_eq!(receiver.ahead().len(), 1);
        // All of it is still sent, behind the barrier.
        let mut received = Vec::new();
        while received.len() < 6 {
            if let Poll::Ready(element) = receiver.poll_receive(&mut context) {
                received.push(matches!(element, Ok(StreamElement::Barrier(_))));
            }
            assert!(poll(edge.catch_up()).is_pending() || !overdraft.is_used());
        }
        assert_eq!(received, [false, true, false, false, false, false]);
    }
}

//! The transport within one process: a bounded queue of shared batches a channel, under the same credits as any.
//!
//! A channel is a lock-free ring between two threads, a waker for either side and a credit ledger in one atomic word:
//! the sender books what it sends, the receiver what it is through with. The floating credits are an atomic of the
//! gate. A sender that has to wait says so in `waiting` and looks once more; whoever gives credits back looks there
//! afterwards and wakes the gate's senders. All of that is sequentially consistent, so one of the two sees the other.

use std::{
    collections::{HashMap, hash_map::Entry},
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Context, Poll},
};

use async_trait::async_trait;
use futures_util::task::AtomicWaker;
use millstream_protocol::{Admission, CreditLedger, credits_for};
use millstream_types::StreamElement;
use rtrb::{Consumer, Producer, RingBuffer};

use crate::{ChannelId, ChannelReceiver, ChannelSender, Disconnected, GateBudget, Transport, TransportError};

/// Connects the subtasks of one process.
#[derive(Default)]
pub struct LocalTransport {
    /// Channels of which one end has been opened; an entry goes when the other one is.
    channels: Mutex<HashMap<ChannelId, Arc<Meeting>>>,
}

impl LocalTransport {
    /// A transport without channels.
    pub fn new() -> Self {
        Self::default()
    }

    fn meeting(&self, id: ChannelId) -> Arc<Meeting> {
        match lock(&self.channels).entry(id) {
            Entry::Occupied(both) => both.remove(),
            Entry::Vacant(first) => first.insert(Arc::default()).clone(),
        }
    }
}

impl Transport for LocalTransport {
    fn sender(&self, channel: ChannelId) -> Result<Box<dyn ChannelSender>, TransportError> {
        let meeting = self.meeting(channel);
        if meeting.sender.swap(true, Relaxed) {
            return Err(TransportError::Open(channel));
        }
        Ok(Box::new(LocalSender { meeting, end: None }))
    }

    fn gate(
        &self,
        channels: &[ChannelId],
        budget: GateBudget,
    ) -> Result<Vec<Box<dyn ChannelReceiver>>, TransportError> {
        let gate = Arc::new(Gate { floating: AtomicU32::new(budget.floating), ..Gate::default() });
        let open = |&id: &ChannelId| {
            let (producer, consumer) = RingBuffer::new(budget.elements);
            let link = Arc::new(Link::new(budget.exclusive, gate.clone()));
            lock(&gate.links).push(Arc::downgrade(&link));
            let end = SenderEnd { id, producer, link: link.clone() };
            self.meeting(id).offer(end).map_err(|_| TransportError::Open(id))?;
            Ok(Box::new(LocalReceiver { id, consumer: Some(consumer), link, unreleased: 0 })
                as Box<dyn ChannelReceiver>)
        };
        channels.iter().map(open).collect()
    }
}

/// Where the two ends of a channel find each other.
#[derive(Default)]
struct Meeting {
    sender: AtomicBool,
    end: Mutex<Option<SenderEnd>>,
    arrived: AtomicWaker,
}

impl Meeting {
    /// The receiver hands the sender its end; it gets it back if one is there already.
    fn offer(&self, end: SenderEnd) -> Result<(), SenderEnd> {
        let mut slot = lock(&self.end);
        if slot.is_some() {
            return Err(end);
        }
        *slot = Some(end);
        drop(slot);
        self.arrived.wake();
        Ok(())
    }

    fn poll_take(&self, cx: &mut Context<'_>) -> Poll<SenderEnd> {
        self.arrived.register(cx.waker());
        lock(&self.end).take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// What the channels of a gate share.
#[derive(Default)]
struct Gate {
    floating: AtomicU32,
    /// Senders that wait for credit.
    waiting: AtomicUsize,
    links: Mutex<Vec<Weak<Link>>>,
}

impl Gate {
    /// Takes floating credits if exactly `free` are there still.
    fn take(&self, free: u32, taken: u32) -> bool {
        taken == 0 || self.floating.compare_exchange(free, free - taken, SeqCst, SeqCst).is_ok()
    }

    fn give_back(&self, credits: u32) {
        if credits > 0 {
            self.floating.fetch_add(credits, SeqCst);
        }
        if credits > 0 && self.waiting.load(SeqCst) > 0 {
            lock(&self.links).iter().filter_map(Weak::upgrade).for_each(|link| link.sender.wake());
        }
    }
}

/// What the two ends of a channel share beside the ring.
struct Link {
    exclusive: u32,
    ledger: AtomicU64,
    sender: AtomicWaker,
    receiver: AtomicWaker,
    gate: Arc<Gate>,
}

impl Link {
    fn new(exclusive: u32, gate: Arc<Gate>) -> Self {
        let ledger = AtomicU64::new(CreditLedger::new(exclusive).to_bits());
        Self { exclusive, ledger, sender: AtomicWaker::new(), receiver: AtomicWaker::new(), gate }
    }

    /// Books something of `cost` if there is credit for it.
    fn admit(&self, cost: u32) -> bool {
        loop {
            let (bits, free) = (self.ledger.load(SeqCst), self.gate.floating.load(SeqCst));
            let mut ledger = CreditLedger::from_bits(self.exclusive, bits);
            let Admission::Admitted { floating } = ledger.handle_send(cost, free) else { return false };
            if !self.gate.take(free, floating) {
                continue;
            }
            if self.ledger.compare_exchange(bits, ledger.to_bits(), SeqCst, SeqCst).is_ok() {
                return true;
            }
            self.gate.give_back(floating);
        }
    }

    /// Books that the receiver is through with something of `cost`.
    fn release(&self, cost: u32) {
        loop {
            let bits = self.ledger.load(SeqCst);
            let mut ledger = CreditLedger::from_bits(self.exclusive, bits);
            let back = ledger.handle_consumed(cost);
            if self.ledger.compare_exchange(bits, ledger.to_bits(), SeqCst, SeqCst).is_ok() {
                self.gate.give_back(back);
                return self.sender.wake();
            }
        }
    }
}

/// An element with the credits that it holds.
type Charged = (u32, StreamElement);

struct SenderEnd {
    id: ChannelId,
    producer: Producer<Charged>,
    link: Arc<Link>,
}

impl SenderEnd {
    /// Sends what `item` holds, or leaves it there and registers for a wake-up.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        item: &mut Option<Charged>,
    ) -> Poll<Result<(), Disconnected>> {
        if self.producer.is_abandoned() {
            return Poll::Ready(Err(Disconnected(self.id)));
        }
        if self.try_send(item) {
            return Poll::Ready(Ok(()));
        }
        // What came free, or went, between the attempt and the registration would wake nobody: so look again.
        self.link.sender.register(cx.waker());
        if self.producer.is_abandoned() {
            Poll::Ready(Err(Disconnected(self.id)))
        } else if self.try_send(item) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn try_send(&mut self, item: &mut Option<Charged>) -> bool {
        let Some((cost, _)) = item else { return true };
        if self.producer.is_full() || (*cost > 0 && !self.link.admit(*cost)) {
            return false;
        }
        // Only this end pushes, so there is still room.
        let pushed = item.take().is_none_or(|charged| self.producer.push(charged).is_ok());
        self.link.receiver.wake();
        pushed
    }
}

struct LocalSender {
    meeting: Arc<Meeting>,
    end: Option<SenderEnd>,
}

#[async_trait(?Send)]
impl ChannelSender for LocalSender {
    async fn send(&mut self, element: StreamElement) -> Result<(), Disconnected> {
        let end = match &mut self.end {
            Some(end) => end,
            empty => empty.insert(poll_fn(|cx| self.meeting.poll_take(cx)).await),
        };
        let cost = match &element {
            StreamElement::Batch(batch) => credits_for(batch.retained_bytes()),
            _ => 0,
        };
        let mut item = Some((cost, element));
        let mut waiting = None;
        poll_fn(|cx| match end.poll_send(cx, &mut item) {
            Poll::Pending if waiting.is_none() => {
                waiting = Some(Waiting::new(end.link.gate.clone()));
                end.poll_send(cx, &mut item)
            }
            sent => sent,
        })
        .await
    }
}

/// Counts a sender among those that wait for as long as it lives.
struct Waiting(Arc<Gate>);

impl Waiting {
    fn new(gate: Arc<Gate>) -> Self {
        gate.waiting.fetch_add(1, SeqCst);
        Self(gate)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, SeqCst);
    }
}

impl Drop for LocalSender {
    fn drop(&mut self) {
        // The ring is given up before the receiver is woken, so that it finds it abandoned.
        if let Some(SenderEnd { producer, link, .. }) = self.end.take() {
            drop(producer);
            link.receiver.wake();
        }
    }
}

struct LocalReceiver {
    id: ChannelId,
    /// There until it is dropped.
    consumer: Option<Consumer<Charged>>,
    link: Arc<Link>,
    /// Credits of the element handed out last.
    unreleased: u32,
}

impl LocalReceiver {
    fn try_receive(&mut self) -> Option<StreamElement> {
        let (cost, element) = self.consumer.as_mut()?.pop().ok()?;
        self.unreleased = cost;
        if cost == 0 {
            // A full ring may hold the sender up as well as missing credit does.
            self.link.sender.wake();
        }
        Some(element)
    }
}

impl ChannelReceiver for LocalReceiver {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<StreamElement, Disconnected>> {
        match std::mem::take(&mut self.unreleased) {
            0 => {}
            cost => self.link.release(cost),
        }
        if let Some(element) = self.try_receive() {
            return Poll::Ready(Ok(element));
        }
        self.link.receiver.register(cx.waker());
        // Abandoned first: what was sent before the sender went must still be found.
        let abandoned = self.consumer.as_ref().is_none_or(Consumer::is_abandoned);
        match self.try_receive() {
            Some(element) => Poll::Ready(Ok(element)),
            None if abandoned => Poll::Ready(Err(Disconnected(self.id))),
            None => Poll::Pending,
        }
    }
}

impl Drop for LocalReceiver {
    fn drop(&mut self) {
        // Credits that die with the receiver belong to the gate's other channels.
        let left = self
            .consumer
            .as_mut()
            .map(|c| std::iter::from_fn(|| c.pop().ok()).map(|(cost, _)| cost).sum::<u32>());
        // The ring is given up before the sender is woken, so that it finds it abandoned.
        self.consumer = None;
        match self.unreleased + left.unwrap_or_default() {
            0 => self.link.sender.wake(),
            cost => self.link.release(cost),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #[test]
    fn conforms() {
        crate::conformance::run(super::LocalTransport::new);
    }
}

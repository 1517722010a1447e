//! The transport within one process: a bounded queue of shared batches a channel, under the same credits as any.
//!
//! A channel is a lock-free ring between two threads, a waker for either side and a credit ledger in one atomic word:
//! the sender books what it sends, the receiver what it is through with. Barriers and the end stand in a lane beside the
//! ring, each with the number of elements before it, so that they find room whatever the ring holds and can be seen before
//! their turn. They are rare: the lane is under a lock, and where there is none it costs a look at a counter. The floating credits are an atomic of the
//! gate. A sender that has to wait says so in `waiting` and looks once more; whoever gives credits back looks there
//! afterwards and wakes the gate's senders. All of that is sequentially consistent, so one of the two sees the other.

mod due_waker;
mod inbound_end;

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Context, Poll},
};

use futures_util::task::AtomicWaker;
use millstream_protocol::{Admission, CreditLedger};
use millstream_types::StreamElement;
use rtrb::{Consumer, Producer, RingBuffer};

pub(crate) use due_waker::Due;
pub(crate) use inbound_end::InboundEnd;

use crate::{
    Ahead, ChannelId, ChannelReceiver, ChannelSender, Charged, Disconnected, GateBudget, Transport,
    TransportError,
};

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

    /// The sending end of a channel whose gate has been opened, for what feeds it from another process.
    pub(crate) fn inbound(&self, channel: ChannelId) -> Result<InboundEnd, TransportError> {
        let meeting = self.meeting(channel);
        let end = match meeting.sender.swap(true, Relaxed) {
            true => None,
            false => lock(&meeting.end).take(),
        };
        end.map(InboundEnd::new).ok_or(TransportError::Open(channel))
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
        Ok(Box::new(LocalSender { meeting, end: None, waiting: None }))
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
            let end = SenderEnd { id, producer, link: link.clone(), sent: 0 };
            self.meeting(id).offer(end).map_err(|_| TransportError::Open(id))?;
            Ok(Box::new(LocalReceiver::new(id, consumer, link)) as Box<dyn ChannelReceiver>)
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
    lane: Mutex<Vec<Event>>,
    /// How many events have ever been put into the lane.
    events: AtomicU64,
    /// The receiver has gone.
    receiver_gone: AtomicBool,
    /// Why the sender has gone, if that is known.
    reason: OnceLock<Arc<str>>,
}

/// What stands in the lane.
struct Event {
    /// How many elements have been sent before.
    place: u64,
    what: Ahead,
}

impl Link {
    fn new(exclusive: u32, gate: Arc<Gate>) -> Self {
        let ledger = AtomicU64::new(CreditLedger::new(exclusive).to_bits());
        let (sender, receiver) = (AtomicWaker::new(), AtomicWaker::new());
        let (lane, events, reason) = (Mutex::default(), AtomicU64::new(0), OnceLock::new());
        let receiver_gone = AtomicBool::new(false);
        Self { exclusive, ledger, sender, receiver, gate, lane, events, receiver_gone, reason }
    }

    fn ledger(&self) -> CreditLedger {
        CreditLedger::from_bits(self.exclusive, self.ledger.load(SeqCst))
    }

    /// What follows in the ring is seen after it.
    fn announce(&self, event: Event) {
        lock(&self.lane).push(event);
        self.events.fetch_add(1, SeqCst);
        self.receiver.wake();
    }

    /// Books something of `cost` if there is credit for it.
    fn admit(&self, cost: u32) -> bool {
        self.grant(cost, 0)
    }

    /// The same for a sender that has `unused` of the credits in use.
    #[inline]
    fn grant(&self, cost: u32, unused: u32) -> bool {
        loop {
            let (bits, free) = (self.ledger.load(SeqCst), self.gate.floating.load(SeqCst));
            let mut ledger = CreditLedger::from_bits(self.exclusive, bits);
            let Admission::Admitted { floating } = ledger.handle_grant(cost, free, unused) else {
                return false;
            };
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

struct SenderEnd {
    id: ChannelId,
    producer: Producer<Charged>,
    link: Arc<Link>,
    /// How many elements have been sent.
    sent: u64,
}

impl SenderEnd {
    /// Gives the ring up and has the receiver see it.
    fn leave(self) {
        let Self { producer, link, .. } = self;
        drop(producer);
        link.receiver.wake();
    }

    /// Sends what `element` holds, or leaves it there.
    fn try_send(&mut self, element: &mut Option<Charged>) -> Result<bool, Disconnected> {
        if self.producer.is_abandoned() {
            return Err(Disconnected::new(self.id));
        }
        let what = match element {
            None => return Ok(true),
            Some(Charged { element: StreamElement::Barrier(barrier), .. }) => Ahead::Barrier(barrier.clone()),
            Some(Charged { element: StreamElement::EndOfInput, .. }) => Ahead::End,
            Some(_) => return Ok(self.try_push(element)),
        };
        *element = None;
        self.link.announce(Event { place: self.sent, what });
        Ok(true)
    }

    fn try_push(&mut self, element: &mut Option<Charged>) -> bool {
        let credits = element.as_ref().map_or(0, Charged::credits);
        if self.producer.is_full() || (credits > 0 && !self.link.admit(credits)) {
            return false;
        }
        // Only this end pushes, so there is still room.
        let pushed = element.take().is_none_or(|element| self.producer.push(element).is_ok());
        self.sent += 1;
        self.link.receiver.wake();
        pushed
    }
}

struct LocalSender {
    meeting: Arc<Meeting>,
    end: Option<SenderEnd>,
    /// There while what was to be sent last has to wait.
    waiting: Option<Waiting>,
}

impl ChannelSender for LocalSender {
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        element: &mut Option<Charged>,
    ) -> Poll<Result<(), Disconnected>> {
        let end = match &mut self.end {
            Some(end) => end,
            empty => match self.meeting.poll_take(cx) {
                Poll::Ready(end) => empty.insert(end),
                Poll::Pending => return Poll::Pending,
            },
        };
        if self.waiting.is_none() {
            if end.try_send(element)? {
                return Poll::Ready(Ok(()));
            }
            self.waiting = Some(Waiting::new(end.link.gate.clone()));
        }
        // What came free, or went, between an attempt and the registration would wake nobody: so look again.
        end.link.sender.register(cx.waker());
        if end.try_send(element)? {
            self.waiting = None;
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
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
        if let Some(end) = self.end.take() {
            end.leave();
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
    /// How many elements have been received.
    received: u64,
    /// What has been taken from the lane and not had its turn.
    events: VecDeque<Event>,
    /// How many events have been taken from the lane.
    seen: u64,
}

impl LocalReceiver {
    fn new(id: ChannelId, consumer: Consumer<Charged>, link: Arc<Link>) -> Self {
        let (events, consumer) = (VecDeque::new(), Some(consumer));
        Self { id, consumer, link, unreleased: 0, received: 0, events, seen: 0 }
    }

    fn try_receive(&mut self) -> Option<StreamElement> {
        // The ring first: what stands before an element that is in it has been announced before.
        let more = self.consumer.as_ref()?.peek().is_ok();
        self.look_into_lane();
        if self.events.front().is_some_and(|event| event.place == self.received) {
            return self.events.pop_front().map(|event| match event.what {
                Ahead::Barrier(barrier) => StreamElement::Barrier(barrier),
                Ahead::End => StreamElement::EndOfInput,
            });
        }
        let Charged { credits, element, .. } = self.consumer.as_mut().filter(|_| more)?.pop().ok()?;
        self.received += 1;
        self.unreleased = credits;
        if credits == 0 {
            // A full ring may hold the sender up as well as missing credit does.
            self.link.sender.wake();
        }
        Some(element)
    }

    #[cold]
    fn disconnected(&self) -> Disconnected {
        Disconnected { channel: self.id, reason: self.link.reason.get().cloned() }
    }

    #[inline]
    fn look_into_lane(&mut self) {
        let events = self.link.events.load(SeqCst);
        if events != self.seen {
            self.seen = events;
            self.events.extend(std::mem::take(&mut *lock(&self.link.lane)));
        }
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
            None if abandoned => Poll::Ready(Err(self.disconnected())),
            None => Poll::Pending,
        }
    }

    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Ahead> {
        if self.events.is_empty() {
            self.link.receiver.register(cx.waker());
            self.look_into_lane();
        }
        self.events.front().map_or(Poll::Pending, |event| Poll::Ready(event.what.clone()))
    }

    fn ahead(&mut self) -> Vec<StreamElement> {
        let (Some(consumer), Some(event)) = (&mut self.consumer, self.events.front()) else {
            return Vec::new();
        };
        let ahead = (event.place - self.received) as usize;
        // All of it was put there before the event. A look that is not committed takes nothing.
        let Ok(elements) = consumer.read_chunk(ahead) else { return Vec::new() };
        let (first, second) = elements.as_slices();
        first.iter().chain(second).map(|charged| charged.element.clone()).collect()
    }

    fn overtake(&mut self) {
        if self.events.front().is_some_and(|event| matches!(event.what, Ahead::Barrier(_))) {
            self.events.pop_front();
        }
    }
}

impl Drop for LocalReceiver {
    fn drop(&mut self) {
        // Credits that die with the receiver belong to the gate's other channels.
        let left = self
            .consumer
            .as_mut()
            .map(|c| std::iter::from_fn(|| c.pop().ok()).map(|charged| charged.credits).sum::<u32>());
        // The ring is given up before the sender is woken, so that it finds it abandoned.
        self.consumer = None;
        self.link.receiver_gone.store(true, SeqCst);
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
    use std::{sync::Arc, time::Duration};

    use crate::conformance::{self, Sides};

    #[test]
    fn conforms() {
        conformance::run(|| {
            let transport = Arc::new(super::LocalTransport::new());
            Sides { sending: transport.clone(), receiving: transport, patience: Duration::ZERO }
        });
    }
}

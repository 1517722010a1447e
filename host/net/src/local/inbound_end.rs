//! The sending end of a channel that is fed from another process.
//!
//! What arrives goes into the same ring, lane and ledger as what a subtask of this process sends, so that a gate does not
//! know the difference and its floating credits are for all of its channels. Credits are booked when they are granted.

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    task::Context,
};

use millstream_protocol::{Admission, CreditLedger};

use super::{Due, Event, SenderEnd, Waiting, due_waker::DueWaker};
use crate::{Ahead, ChannelId, Charged};

/// A sending end that is granted credits and has them pushed back as elements.
pub(crate) struct InboundEnd {
    /// There until it is dropped.
    end: Option<SenderEnd>,
    places: usize,
    exclusive: u32,
    waiting: Option<Waiting>,
    waker: Arc<DueWaker>,
}

/// There is no place for an element.
#[derive(Debug)]
pub(crate) struct Full;

impl InboundEnd {
    pub(super) fn new(end: SenderEnd) -> Self {
        let (places, exclusive) = (end.producer.slots(), end.link.exclusive);
        let waker = DueWaker::new(&end.link);
        Self { end: Some(end), places, exclusive, waiting: None, waker }
    }

    pub(crate) fn channel(&self) -> ChannelId {
        self.end().id
    }

    /// Credits of the channel's own.
    pub(crate) fn exclusive(&self) -> u32 {
        self.exclusive
    }

    /// Elements that may wait in it.
    pub(crate) fn places(&self) -> usize {
        self.places
    }

    /// Puts in an element whose credits have been granted.
    pub(crate) fn push(&mut self, element: Charged) -> Result<(), Full> {
        let end = self.end_mut();
        end.producer.push(element).map_err(|_| Full)?;
        end.sent += 1;
        end.link.receiver.wake();
        Ok(())
    }

    /// Puts a barrier or the end behind what has been put in.
    pub(crate) fn announce(&mut self, what: Ahead) {
        let end = self.end();
        end.link.announce(Event { place: end.sent, what });
    }

    /// How many elements the receiver has taken out.
    pub(crate) fn consumed(&self) -> u64 {
        let end = self.end();
        end.sent - (self.places - end.producer.slots()) as u64
    }

    /// Whether the receiver has gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.end().producer.is_abandoned()
    }

    /// Credits that are held by elements or granted.
    pub(crate) fn in_use(&self) -> u32 {
        self.ledger().in_use()
    }

    /// Whether so many credits would be granted to a sender that has `unused`.
    pub(crate) fn would_grant(&self, credits: u32, unused: u32) -> bool {
        let admission = self.ledger().handle_grant(credits, self.floating(), unused);
        matches!(admission, Admission::Admitted { .. })
    }

    /// Books so many credits for a sender that has `unused`.
    pub(crate) fn grant(&mut self, credits: u32, unused: u32) -> bool {
        self.end().link.grant(credits, unused)
    }

    /// Floating credits that nobody has taken or waits for.
    pub(crate) fn spare(&self) -> u32 {
        let gate = &self.end().link.gate;
        if gate.waiting.load(SeqCst) > 0 { 0 } else { self.floating() }
    }

    /// The sender has no use for so many credits.
    pub(crate) fn take_back(&mut self, credits: u32) {
        self.end().link.release(credits);
    }

    /// Says whether the sender waits for floating credits, and is to be woken for them.
    pub(crate) fn set_waiting(&mut self, waiting: bool) {
        if waiting != self.waiting.is_some() {
            self.waiting = waiting.then(|| Waiting::new(self.end().link.gate.clone()));
        }
    }

    /// Has the task woken when something is due or the receiver has gone, and for floating credits while it waits.
    pub(crate) fn register(&self, cx: &Context<'_>, due: Due) {
        self.waker.register(cx, due);
    }

    /// Tells the receiver why the sender is about to go.
    pub(crate) fn set_reason(&self, reason: &str) {
        // The first one is the cause.
        let _ = self.end().link.reason.set(Arc::from(reason));
    }

    fn ledger(&self) -> CreditLedger {
        self.end().link.ledger()
    }

    fn floating(&self) -> u32 {
        self.end().link.gate.floating.load(SeqCst)
    }

    fn end(&self) -> &SenderEnd {
        self.end.as_ref().expect("it is there until it is dropped")
    }

    fn end_mut(&mut self) -> &mut SenderEnd {
        self.end.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for InboundEnd {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end.leave();
        }
    }
}

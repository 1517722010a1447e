//! The input gate: all channels into a subtask as one stream.
//!
//! Channels are asked in turn, so that none starves. Watermarks and statuses go through the valve and barriers through
//! the aligner; what comes out is what the chain has to see.
//!
//! While a checkpoint is under way whose barrier may overtake, the gate looks ahead in its channels: a barrier whose time
//! has come is taken before its turn, and what is ahead of it there is recorded.

use std::{
    collections::{BTreeMap, VecDeque},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use millstream_net::{Ahead, ChannelId, ChannelReceiver, Disconnected};
use millstream_operator::Clock;
use millstream_protocol::{Aligner, AlignmentEvent, Valve, ValveEvents};
use millstream_types::{Alignment, Barrier, Batch, StreamElement};

use crate::in_flight::Overtaken;

/// A channel of a gate with the input port that it leads to. Several channels on a port are a union.
pub struct GateChannel {
    /// Which one it is.
    pub id: ChannelId,
    /// The input port of the chain's head.
    pub port: usize,
    /// The receiving end.
    pub receiver: Box<dyn ChannelReceiver>,
}

/// What a gate has for the chain.
#[derive(Debug)]
pub(crate) enum GateEvent {
    /// Rows for a port.
    Batch(usize, Batch),
    /// Event time has moved on.
    Watermark(i64),
    /// All inputs have become idle, or one is active again.
    Idle(bool),
    /// All channels have passed a barrier, the first one so long before the last.
    Barrier(Barrier, Duration),
    /// A barrier overtakes what is ahead of it.
    Overtakes(Barrier),
    /// A barrier will not come through all channels any more.
    GivenUp(u64),
    /// All channels have ended.
    End,
}

/// All that a barrier has overtaken in a gate.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// The barrier.
    pub(crate) id: u64,
    /// What was ahead of it, by channel.
    pub(crate) ahead: Vec<Overtaken>,
    /// From its first channel to its last one.
    pub(crate) alignment: Duration,
}

/// The receiving ends of all channels of a subtask.
pub struct InputGate {
    channels: Vec<Option<GateChannel>>,
    ids: Vec<ChannelId>,
    valve: Valve,
    aligner: Aligner<StreamElement>,
    /// When the first channel passed a barrier that others have not.
    aligning: BTreeMap<u64, Instant>,
    /// Barriers to come that may overtake.
    expected: BTreeMap<u64, Barrier>,
    /// Whether there has ever been a barrier that may.
    overtaking: bool,
    /// When the next barrier in sight may overtake, milliseconds since the epoch.
    next_due: Option<i64>,
    ready: VecDeque<GateEvent>,
    recorded: VecDeque<Recorded>,
    next: usize,
}

impl InputGate {
    /// A gate over these channels. One without channels ends at once.
    pub fn new(channels: Vec<GateChannel>) -> Self {
        let ready = if channels.is_empty() { VecDeque::from([GateEvent::End]) } else { VecDeque::new() };
        Self {
            valve: Valve::new(channels.len()),
            aligner: Aligner::new(channels.len()),
            aligning: BTreeMap::new(),
            ids: channels.iter().map(|channel| channel.id).collect(),
            channels: channels.into_iter().map(Some).collect(),
            expected: BTreeMap::new(),
            overtaking: false,
            next_due: None,
            ready,
            recorded: VecDeque::new(),
            next: 0,
        }
    }

    /// The next event. After [`GateEvent::End`] there is none.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        clock: &dyn Clock,
    ) -> Poll<Result<GateEvent, Disconnected>> {
        loop {
            if self.ready.is_empty() {
                self.look_ahead(cx, clock);
            }
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Ok(event));
            }
            match self.poll_channels(cx) {
                Poll::Ready(Ok((index, element))) => self.handle(index, element),
                Poll::Ready(Err(gone)) => return Poll::Ready(Err(gone)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The same; none if there is nothing but what barriers have overtaken, which nothing else might follow.
    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        clock: &dyn Clock,
    ) -> Poll<Result<Option<GateEvent>, Disconnected>> {
        match self.poll_next(cx, clock) {
            Poll::Pending if !self.recorded.is_empty() => Poll::Ready(Ok(None)),
            polled => polled.map_ok(Some),
        }
    }

    /// A checkpoint has been triggered, and its barrier is to come.
    pub(crate) fn expect(&mut self, barrier: &Barrier) {
        let open = !self.aligner.is_over(barrier.id) && !self.aligner.has_overtaken(barrier.id);
        if open && barrier.overtakes_at().is_some() {
            self.overtaking = true;
            self.expected.insert(barrier.id, barrier.clone());
        }
    }

    /// Takes barriers that may overtake by now before their turn.
    pub(crate) fn look_ahead(&mut self, cx: &mut Context<'_>, clock: &dyn Clock) {
        self.next_due = None;
        if !self.overtaking || self.expected.is_empty() && !self.aligner.is_aligning() {
            return;
        }
        let now = clock.now();
        let due = |barrier: &&Barrier| barrier.overtakes_at().is_some_and(|at| at <= now);
        let overdue: Vec<u64> = self.aligner.aligning().filter(due).map(|barrier| barrier.id).collect();
        overdue.into_iter().for_each(|id| self.aligner.handle_overdue(id));
        self.overtake_at_the_end(cx, now);
        for index in 0..self.channels.len() {
            self.look_into(index, cx, now);
        }
        let pending = self.aligner.aligning().filter_map(Barrier::overtakes_at);
        self.next_due = pending.chain(self.next_due).filter(|at| *at > now).min();
        self.announce_alignment();
    }

    /// In how long a barrier overtakes that is in sight, as of the last look.
    pub(crate) fn due_in(&self, clock: &dyn Clock) -> Option<Duration> {
        if self.has_barrier() {
            return Some(Duration::ZERO);
        }
        let millis = self.next_due?.saturating_sub(clock.now());
        Some(Duration::from_millis(millis.max(1).unsigned_abs()))
    }

    /// Whether a barrier that overtakes comes next.
    pub(crate) fn has_barrier(&self) -> bool {
        self.ready.iter().any(|event| matches!(event, GateEvent::Overtakes(_)))
    }

    /// What barriers have overtaken, once it is all there. It may come before the barrier.
    pub(crate) fn take_recorded(&mut self) -> Option<Recorded> {
        self.recorded.pop_front()
    }

    fn poll_channels(&mut self, cx: &mut Context<'_>) -> Poll<Result<(usize, StreamElement), Disconnected>> {
        let count = self.channels.len();
        for offset in 0..count {
            let index = (self.next + offset) % count;
            let Some(channel) = &mut self.channels[index] else { continue };
            if self.aligner.is_blocked(index) {
                continue;
            }
            if let Poll::Ready(received) = channel.receiver.poll_receive(cx) {
                self.next = (index + 1) % count;
                return Poll::Ready(received.map(|element| (index, element)));
            }
        }
        Poll::Pending
    }

    fn handle(&mut self, index: usize, element: StreamElement) {
        if self.aligner.is_aligning() && Overtaken::keeps(&element) {
            self.aligner.handle_element(index, &element);
        }
        let events = match element {
            StreamElement::Batch(batch) => {
                let events = self.valve.handle_active(index);
                let port = self.channels[index].as_ref().map_or(0, |c| c.port);
                self.announce(events);
                return self.ready.push_back(GateEvent::Batch(port, batch));
            }
            StreamElement::Watermark(watermark) => self.valve.handle_watermark(index, watermark),
            StreamElement::Idle => self.valve.handle_idle(index),
            StreamElement::Active => self.valve.handle_active(index),
            StreamElement::EndOfInput => {
                self.channels[index] = None;
                // The barrier comes before what the end means for event time.
                self.aligner.handle_end(index);
                self.announce_alignment();
                self.valve.handle_end(index)
            }
            StreamElement::Barrier(barrier) => {
                self.overtaking |= barrier.overtakes_at().is_some();
                self.aligning.entry(barrier.id).or_insert_with(Instant::now);
                self.aligner.handle_barrier(index, barrier);
                return self.announce_alignment();
            }
            StreamElement::LatencyMarker { .. } => ValveEvents::default(),
        };
        self.announce(events);
    }

    /// Lets barriers overtake that will not come, as all channels have their ends ahead.
    fn overtake_at_the_end(&mut self, cx: &mut Context<'_>, now: i64) {
        let absent = |barrier: &&Barrier| {
            !self.aligner.is_pending(barrier.id) && may_overtake(&self.aligner, barrier, now)
        };
        let Some(barrier) = self.expected.values().find(absent).cloned() else { return };
        let mut open = self.channels.iter_mut().flatten();
        if open.all(|channel| channel.receiver.poll_ahead(cx) == Poll::Ready(Ahead::End)) {
            self.aligning.insert(barrier.id, Instant::now());
            self.aligner.handle_absent(barrier);
        }
    }

    /// Takes the barriers of a channel whose time has come, up to the first whose has not.
    fn look_into(&mut self, index: usize, cx: &mut Context<'_>, now: i64) {
        let Some(channel) = &mut self.channels[index] else { return };
        while let Poll::Ready(ahead) = channel.receiver.poll_ahead(cx) {
            match ahead {
                Ahead::Barrier(barrier) if self.aligner.is_over(barrier.id) => channel.receiver.overtake(),
                Ahead::Barrier(barrier) if may_overtake(&self.aligner, &barrier, now) => {
                    let elements = kept(channel.receiver.ahead());
                    channel.receiver.overtake();
                    self.aligning.entry(barrier.id).or_insert_with(Instant::now);
                    let barrier = Barrier { alignment: Alignment::Unaligned, ..barrier };
                    self.aligner.handle_ahead(index, barrier, elements);
                }
                Ahead::Barrier(barrier) => {
                    self.next_due = self.next_due.into_iter().chain(barrier.overtakes_at()).min();
                    return;
                }
                Ahead::End => {
                    if self.aligner.is_recording(index) {
                        self.aligner.handle_end_ahead(index, &kept(channel.receiver.ahead()));
                    }
                    return;
                }
            }
        }
    }

    /// Nobody waits for this barrier any more.
    pub(crate) fn abort(&mut self, id: u64) {
        self.aligning.remove(&id);
        self.expected.remove(&id);
        self.ready.retain(|event| !matches!(event, GateEvent::Overtakes(barrier) if barrier.id == id));
        self.recorded.retain(|recorded| recorded.id != id);
        self.aligner.handle_abort(id);
        self.announce_alignment();
    }

    fn announce_alignment(&mut self) {
        while let Some(event) = self.aligner.poll_event() {
            match event {
                AlignmentEvent::Passed(barrier) => {
                    let alignment = self.aligned(barrier.id);
                    self.ready.push_back(GateEvent::Barrier(barrier, alignment));
                }
                AlignmentEvent::Overtakes(barrier) => {
                    self.expected.remove(&barrier.id);
                    // The end may be known by now, and is not processed yet.
                    let end = self.ready.iter().position(|event| matches!(event, GateEvent::End));
                    let at = end.unwrap_or(self.ready.len());
                    self.ready.insert(at, GateEvent::Overtakes(barrier));
                }
                AlignmentEvent::Recorded { id, ahead } => {
                    let of_channel = |(&channel, elements)| Overtaken { channel, elements };
                    let ahead = self.ids.iter().zip(ahead).map(of_channel).collect();
                    let alignment = self.aligned(id);
                    self.recorded.push_back(Recorded { id, ahead, alignment });
                }
                AlignmentEvent::GivenUp(id) => {
                    self.aligning.remove(&id);
                    self.expected.remove(&id);
                    self.ready.push_back(GateEvent::GivenUp(id));
                }
            }
        }
    }

    /// How long ago the first channel passed a barrier that all have passed now. Earlier ones that have not come through
    /// all channels have been given up.
    fn aligned(&mut self, id: u64) -> Duration {
        let since = self.aligning.remove(&id);
        self.aligning = self.aligning.split_off(&id);
        self.expected = self.expected.split_off(&(id + 1));
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn announce(&mut self, events: ValveEvents) {
        self.ready.extend(events.idle.map(GateEvent::Idle));
        self.ready.extend(events.watermark.map(GateEvent::Watermark));
        self.ready.extend(events.ended.then_some(GateEvent::End));
    }
}

/// Whether a barrier may be taken before its turn.
fn may_overtake(aligner: &Aligner<StreamElement>, barrier: &Barrier, now: i64) -> bool {
    let due = |at| at <= now || aligner.has_overtaken(barrier.id);
    barrier.overtakes_at().is_some_and(due) && aligner.may_overtake(barrier.id)
}

fn kept(mut elements: Vec<StreamElement>) -> Vec<StreamElement> {
    elements.retain(Overtaken::keeps);
    elements
}

//! The input gate: all channels into a subtask as one stream.
//!
//! Channels are asked in turn, so that none starves. Watermarks and statuses go through the valve and barriers through
//! the aligner; what comes out is what the chain has to see.

use std::{
    collections::{BTreeMap, VecDeque},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use millstream_net::{ChannelReceiver, Disconnected};
use millstream_protocol::{Aligner, AlignmentEvent, Valve, ValveEvents};
use millstream_types::{Barrier, Batch, StreamElement};

/// A channel of a gate with the input port that it leads to. Several channels on a port are a union.
pub struct GateChannel {
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
    /// A barrier will not come through all channels any more.
    GivenUp(u64),
    /// All channels have ended.
    End,
}

/// The receiving ends of all channels of a subtask.
pub struct InputGate {
    channels: Vec<Option<GateChannel>>,
    valve: Valve,
    aligner: Aligner,
    /// When the first channel passed a barrier that others have not.
    aligning: BTreeMap<u64, Instant>,
    ready: VecDeque<GateEvent>,
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
            channels: channels.into_iter().map(Some).collect(),
            ready,
            next: 0,
        }
    }

    /// The next event. After [`GateEvent::End`] there is none.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<GateEvent, Disconnected>> {
        loop {
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
                self.aligning.entry(barrier.id).or_insert_with(Instant::now);
                self.aligner.handle_barrier(index, barrier);
                return self.announce_alignment();
            }
            StreamElement::LatencyMarker { .. } => ValveEvents::default(),
        };
        self.announce(events);
    }

    /// Nobody waits for this barrier any more.
    pub(crate) fn abort(&mut self, id: u64) {
        self.aligning.remove(&id);
        self.aligner.handle_abort(id);
        self.announce_alignment();
    }

    fn announce_alignment(&mut self) {
        while let Some(event) = self.aligner.poll_event() {
            self.ready.push_back(match event {
                AlignmentEvent::Passed(barrier) => {
                    let since = self.aligning.remove(&barrier.id);
                    // Earlier ones that have not come through all channels have been given up.
                    self.aligning = self.aligning.split_off(&barrier.id);
                    GateEvent::Barrier(barrier, since.map_or(Duration::ZERO, |since| since.elapsed()))
                }
                AlignmentEvent::GivenUp(id) => {
                    self.aligning.remove(&id);
                    GateEvent::GivenUp(id)
                }
            });
        }
    }

    fn announce(&mut self, events: ValveEvents) {
        self.ready.extend(events.idle.map(GateEvent::Idle));
        self.ready.extend(events.watermark.map(GateEvent::Watermark));
        self.ready.extend(events.ended.then_some(GateEvent::End));
    }
}

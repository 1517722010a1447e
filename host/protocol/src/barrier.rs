//! Barrier alignment: when all channels into a subtask have passed a barrier.
//!
//! A barrier is *pending* from the first channel that passes it to the last; a channel that has ended counts as having
//! passed it. An aligned barrier blocks the channels that have passed it for as long as it is pending, so that
//! nothing from behind it is processed before the subtask's snapshot; one for at-least-once blocks none.
//!
//! ```text
//!               first barrier n              last barrier n, or the channels without it end
//!   flowing ─────────────────────▶ n pending ─────────────────────────────────────────▶ n passed
//!                                      │
//!                                      │ abort n, or a channel sends a later barrier without having sent n
//!                                      ▼
//!                                  n given up
//! ```
//!
//! Barriers ascend on every channel, but one may be missing where a sender has given it up. A channel that goes on to a
//! later barrier therefore never sends the ones that it has left out.

use std::collections::{BTreeSet, VecDeque};

use millstream_types::{Alignment, Barrier};

/// What has become of a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlignmentEvent {
    /// All channels have passed it: now is the time for the snapshot.
    Passed(Barrier),
    /// It will not be passed by all channels any more.
    GivenUp(u64),
}

/// Brings the barriers of the channels into one subtask together.
#[derive(Clone, Debug)]
pub struct Aligner {
    ended: Vec<bool>,
    /// The last barrier of each channel.
    last: Vec<u64>,
    blocked: Vec<bool>,
    /// In ascending order.
    pending: Vec<Pending>,
    /// Barriers up to this one have been passed or given up.
    settled: u64,
    /// Barriers above `settled` that are given up.
    given_up: BTreeSet<u64>,
    events: VecDeque<AlignmentEvent>,
}

#[derive(Clone, Debug)]
struct Pending {
    barrier: Barrier,
    /// By channel; ended ones have passed.
    passed: Vec<bool>,
}

impl Aligner {
    /// An aligner of `channels` channels, none of which has sent a barrier.
    pub fn new(channels: usize) -> Self {
        Self {
            ended: vec![false; channels],
            last: vec![0; channels],
            blocked: vec![false; channels],
            pending: Vec::new(),
            settled: 0,
            given_up: BTreeSet::new(),
            events: VecDeque::new(),
        }
    }

    /// Whether a channel must not be read for now.
    #[inline]
    pub fn is_blocked(&self, channel: usize) -> bool {
        self.blocked[channel]
    }

    /// Whether some channels have passed a barrier that others have not.
    pub fn is_aligning(&self) -> bool {
        !self.pending.is_empty()
    }

    /// A channel has come to a barrier.
    pub fn handle_barrier(&mut self, channel: usize, barrier: Barrier) {
        self.last[channel] = barrier.id;
        self.give_up_left_out(channel);
        if barrier.id > self.settled && !self.given_up.contains(&barrier.id) {
            self.pass(channel, barrier);
        }
        self.settle();
    }

    /// A channel has ended.
    pub fn handle_end(&mut self, channel: usize) {
        self.ended[channel] = true;
        self.pending.iter_mut().for_each(|p| p.passed[channel] = true);
        self.settle();
    }

    /// Nobody waits for this barrier any more.
    pub fn handle_abort(&mut self, id: u64) {
        if id > self.settled {
            self.given_up.insert(id);
            self.pending.retain(|p| p.barrier.id != id);
            self.settle();
        }
    }

    /// What has happened, in order.
    pub fn poll_event(&mut self) -> Option<AlignmentEvent> {
        self.events.pop_front()
    }

    /// Notes that a channel has passed a barrier, unless another one has left it out.
    fn pass(&mut self, channel: usize, barrier: Barrier) {
        let at = self.pending.partition_point(|p| p.barrier.id < barrier.id);
        if self.pending.get(at).is_none_or(|p| p.barrier.id != barrier.id) {
            let gone_on = |(last, ended): (&u64, &bool)| *last > barrier.id && !ended;
            if self.last.iter().zip(&self.ended).any(gone_on) {
                return self.give_up(barrier.id);
            }
            self.pending.insert(at, Pending { barrier, passed: self.ended.clone() });
        }
        self.pending[at].passed[channel] = true;
    }

    /// Gives up the barriers that a channel has left out.
    fn give_up_left_out(&mut self, channel: usize) {
        let last = self.last[channel];
        let left_out = |p: &mut Pending| p.barrier.id < last && !p.passed[channel];
        let left_out: Vec<_> = self.pending.extract_if(.., left_out).collect();
        left_out.iter().for_each(|p| self.give_up(p.barrier.id));
    }

    fn give_up(&mut self, id: u64) {
        self.given_up.insert(id);
        self.events.push_back(AlignmentEvent::GivenUp(id));
    }

    /// Reports the barriers that all channels have passed and derives anew which channels are blocked.
    fn settle(&mut self) {
        while let Some(at) = self.pending.iter().position(|p| p.passed.iter().all(|&passed| passed)) {
            let Pending { barrier, .. } = self.pending.remove(at);
            self.settled = self.settled.max(barrier.id);
            self.events.push_back(AlignmentEvent::Passed(barrier));
        }
        self.given_up = self.given_up.split_off(&(self.settled + 1));
        let aligned = self.pending.iter().filter(|p| p.barrier.alignment == Alignment::Aligned);
        let aligned: Vec<_> = aligned.map(|p| &p.passed).collect();
        for (channel, blocked) in self.blocked.iter_mut().enumerate() {
            *blocked = !self.ended[channel] && aligned.iter().any(|passed| passed[channel]);
        }
    }
}

#[cfg(test)]
mod tests;

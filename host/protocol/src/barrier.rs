//! Barrier alignment: when a subtask takes its snapshot, and what else belongs to it.
//!
//! A barrier is *pending* from the first channel that passes it to the last; a channel that has ended counts as having
//! passed it. An aligned barrier blocks the channels that have passed it for as long as it is pending, so that
//! nothing from behind it is processed before the subtask's snapshot; one for at-least-once blocks none.
//!
//! An unaligned barrier, or an aligned one whose time is over, *overtakes*: the snapshot is taken at once and no channel is
//! blocked. What the other channels have ahead of the barrier is recorded as it is received, until they pass it. A
//! channel may pass it before its turn, with all that lies ahead of it there: so nothing has to be processed first.
//!
//! ```text
//!               first barrier n              last barrier n, or the channels without it end
//!   flowing ─────────────────────▶ n pending ─────────────────────────────────────────▶ n passed: snapshot
//!                                      │  │
//!                                      │  │ n is unaligned, or its time is over
//!                                      │  └──────────────▶ n overtakes: snapshot ──────▶ n recorded
//!                                      │                        │           last barrier n
//!                                      │                        │
//!                                      ▼ abort n, or a channel sends a later barrier without having sent n
//!                                  n given up
//! ```
//!
//! Channels that all end send no barrier any more. One that may overtake does so then as if it stood before their ends.
//!
//! Barriers ascend on every channel, but one may be missing where a sender has given it up. A channel that goes on to a
//! later barrier therefore never sends the ones that it has left out. A barrier does not overtake while an earlier one is
//! being aligned, as that one's rows come first.

use std::collections::{BTreeSet, VecDeque};

use millstream_types::{Alignment, Barrier};

/// What has become of a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlignmentEvent<T> {
    /// All channels have passed it: now is the time for the snapshot.
    Passed(Barrier),
    /// It overtakes what is ahead of it: now is the time for the snapshot, and what belongs to it besides follows.
    Overtakes(Barrier),
    /// All channels have passed one that overtakes.
    Recorded {
        /// The barrier.
        id: u64,
        /// By channel: what was ahead of the barrier and had not been received at the snapshot, in order.
        ahead: Vec<Vec<T>>,
    },
    /// It will not be passed by all channels any more.
    GivenUp(u64),
}

/// Brings the barriers of the channels into one subtask together. `T` is what is recorded.
#[derive(Clone, Debug)]
pub struct Aligner<T> {
    ended: Vec<bool>,
    /// The last barrier of each channel.
    last: Vec<u64>,
    blocked: Vec<bool>,
    /// In ascending order.
    pending: Vec<Pending<T>>,
    /// Barriers up to this one have been passed or given up.
    settled: u64,
    /// Barriers above `settled` that are given up.
    given_up: BTreeSet<u64>,
    events: VecDeque<AlignmentEvent<T>>,
}

#[derive(Clone, Debug)]
struct Pending<T> {
    barrier: Barrier,
    /// By channel; ended ones have passed.
    passed: Vec<bool>,
    stage: Stage<T>,
}

#[derive(Clone, Debug)]
enum Stage<T> {
    /// Waits for all channels.
    Aligning,
    /// Overtakes as soon as none that is earlier is being aligned.
    Due,
    /// Has overtaken, with what has been recorded of each channel.
    Recording(Vec<Vec<T>>),
}

impl<T> Pending<T> {
    /// Whether what comes on a channel is ahead of the barrier and behind the snapshot.
    fn records(&self, channel: usize) -> bool {
        self.is_recording() && !self.passed[channel]
    }

    fn is_recording(&self) -> bool {
        matches!(self.stage, Stage::Recording(_))
    }
}

impl<T: Clone> Aligner<T> {
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

    /// Whether what a channel has ahead of some barrier is being recorded.
    pub fn is_recording(&self, channel: usize) -> bool {
        self.pending.iter().any(|p| p.records(channel))
    }

    /// Whether a barrier has overtaken or may do so now, as far as others are concerned.
    pub fn may_overtake(&self, id: u64) -> bool {
        !self.is_over(id) && self.pending.iter().take_while(|p| p.barrier.id < id).all(Pending::is_recording)
    }

    /// Whether a barrier has overtaken what is ahead of it.
    pub fn has_overtaken(&self, id: u64) -> bool {
        self.pending.iter().any(|p| p.barrier.id == id && p.is_recording())
    }

    /// Whether a barrier has come on some channel and nothing has come of it yet.
    pub fn is_pending(&self, id: u64) -> bool {
        self.pending.iter().any(|p| p.barrier.id == id)
    }

    /// Whether nothing can come of a barrier any more.
    pub fn is_over(&self, id: u64) -> bool {
        id <= self.settled || self.given_up.contains(&id)
    }

    /// The barriers that wait for all channels.
    pub fn aligning(&self) -> impl Iterator<Item = &Barrier> {
        let waits = |p: &&Pending<T>| matches!(p.stage, Stage::Aligning);
        self.pending.iter().filter(waits).map(|p| &p.barrier)
    }

    /// A channel has come to a barrier.
    pub fn handle_barrier(&mut self, channel: usize, barrier: Barrier) {
        self.handle_ahead(channel, barrier, Vec::new());
    }

    /// A channel passes an unaligned barrier before its turn, with this ahead of it: all that has not been received. It has
    /// to be one that may overtake, and does not come in its turn any more.
    pub fn handle_ahead(&mut self, channel: usize, barrier: Barrier, ahead: Vec<T>) {
        self.last[channel] = barrier.id;
        self.give_up_left_out(channel);
        if !self.is_over(barrier.id) {
            self.pass(channel, barrier, ahead);
        }
        self.settle();
    }

    /// Something else has been received.
    pub fn handle_element(&mut self, channel: usize, element: &T) {
        for pending in self.pending.iter_mut().filter(|p| p.records(channel)) {
            pending.record(channel, [element.clone()]);
        }
    }

    /// No channel sends a barrier any more that everybody has been told of, as all of them end before it: it overtakes all
    /// that they have ahead of their ends, which is to follow by [`Aligner::handle_end_ahead`]. It has to be one that may.
    pub fn handle_absent(&mut self, barrier: Barrier) {
        let at = self.pending.partition_point(|p| p.barrier.id < barrier.id);
        let (passed, stage) = (self.ended.clone(), Stage::Aligning);
        self.pending.insert(at, Pending { barrier, passed, stage });
        self.pending[at].make_due();
        self.settle();
    }

    /// A channel will end with this ahead of its end, all that has not been received, and send no barrier before.
    pub fn handle_end_ahead(&mut self, channel: usize, ahead: &[T]) {
        for pending in self.pending.iter_mut().filter(|p| p.records(channel)) {
            pending.record(channel, ahead.iter().cloned());
            pending.passed[channel] = true;
        }
        self.settle();
    }

    /// A channel has ended.
    pub fn handle_end(&mut self, channel: usize) {
        self.ended[channel] = true;
        self.pending.iter_mut().for_each(|p| p.passed[channel] = true);
        self.settle();
    }

    /// The time for which a barrier is aligned is over: if it is pending, it overtakes.
    pub fn handle_overdue(&mut self, id: u64) {
        self.pending.iter_mut().filter(|p| p.barrier.id == id).for_each(Pending::make_due);
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
    pub fn poll_event(&mut self) -> Option<AlignmentEvent<T>> {
        self.events.pop_front()
    }

    /// Notes that a channel has passed a barrier, unless another one has left it out.
    fn pass(&mut self, channel: usize, barrier: Barrier, ahead: Vec<T>) {
        let at = self.pending.partition_point(|p| p.barrier.id < barrier.id);
        if self.pending.get(at).is_none_or(|p| p.barrier.id != barrier.id) {
            let gone_on = |(last, ended): (&u64, &bool)| *last > barrier.id && !ended;
            if self.last.iter().zip(&self.ended).any(gone_on) {
                return self.give_up(barrier.id);
            }
            let (passed, stage) = (self.ended.clone(), Stage::Aligning);
            self.pending.insert(at, Pending { barrier: barrier.clone(), passed, stage });
        }
        // A copy of it that has become unaligned elsewhere says so for all.
        if barrier.alignment == Alignment::Unaligned {
            self.pending[at].make_due();
            self.start_recording();
        }
        let pending = &mut self.pending[at];
        debug_assert!(ahead.is_empty() || pending.is_recording(), "barrier {} must not overtake", barrier.id);
        pending.record(channel, ahead);
        pending.passed[channel] = true;
    }

    /// Takes those that are due to their snapshots, up to the first that is being aligned.
    fn start_recording(&mut self) {
        for pending in &mut self.pending {
            match pending.stage {
                Stage::Aligning => return,
                Stage::Recording(_) => {}
                Stage::Due => {
                    pending.stage = Stage::Recording(vec![Vec::new(); pending.passed.len()]);
                    self.events.push_back(AlignmentEvent::Overtakes(pending.barrier.clone()));
                }
            }
        }
    }

    /// Gives up the barriers that a channel has left out.
    fn give_up_left_out(&mut self, channel: usize) {
        let last = self.last[channel];
        let left_out = |p: &mut Pending<T>| p.barrier.id < last && !p.passed[channel];
        let left_out: Vec<_> = self.pending.extract_if(.., left_out).collect();
        left_out.iter().for_each(|p| self.give_up(p.barrier.id));
    }

    fn give_up(&mut self, id: u64) {
        self.given_up.insert(id);
        self.events.push_back(AlignmentEvent::GivenUp(id));
    }

    /// Reports the barriers that all channels have passed and derives anew which channels are blocked.
    fn settle(&mut self) {
        self.start_recording();
        while let Some(at) = self.pending.iter().position(|p| p.passed.iter().all(|&passed| passed)) {
            let Pending { barrier, stage, .. } = self.pending.remove(at);
            self.settled = self.settled.max(barrier.id);
            self.events.push_back(match stage {
                Stage::Recording(ahead) => AlignmentEvent::Recorded { id: barrier.id, ahead },
                Stage::Aligning | Stage::Due => AlignmentEvent::Passed(barrier),
            });
            self.start_recording();
        }
        self.given_up = self.given_up.split_off(&(self.settled + 1));
        let aligned = |p: &&Pending<T>| match p.stage {
            Stage::Aligning => p.barrier.alignment != Alignment::AtLeastOnce,
            Stage::Due => true,
            Stage::Recording(_) => false,
        };
        let aligned: Vec<_> = self.pending.iter().filter(aligned).map(|p| &p.passed).collect();
        for (channel, blocked) in self.blocked.iter_mut().enumerate() {
            *blocked = !self.ended[channel] && aligned.iter().any(|passed| passed[channel]);
        }
    }
}

impl<T> Pending<T> {
    fn make_due(&mut self) {
        if let Stage::Aligning = self.stage {
            self.stage = Stage::Due;
            self.barrier.alignment = Alignment::Unaligned;
        }
    }

    fn record(&mut self, channel: usize, elements: impl IntoIterator<Item = T>) {
        if let Stage::Recording(ahead) = &mut self.stage {
            ahead[channel].extend(elements);
        }
    }
}

#[cfg(test)]
mod tests;

//! What a process function sees besides its rows: context, key positions, timers, the watermark.

use std::ops::Deref;

use crate::context::Context;
use crate::host;
use crate::time::Clock;

/// The host, as a process function sees it during one call: a [`Context`], and timers of the current key. Take
/// it as an argument: `ctx: &mut ProcessContext`.
#[derive(Debug, Default)]
pub struct ProcessContext {
    context: Context,
    changes: Vec<Change>,
    key: u32,
    watermark: i64,
    mixed: bool,
}

/// A timer that was set or cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    clock: Clock,
    key: u32,
    time: i64,
    order: u32,
    set: bool,
}

impl ProcessContext {
    /// Fires when the watermark reaches `time`. One that it has reached already fires after this call. Setting
    /// a timer twice fires it once.
    #[inline]
    pub fn set_timer(&mut self, time: i64) {
        self.change(Clock::Event, time, true);
    }

    /// Fires when the host's clock reaches `time`.
    #[inline]
    pub fn set_processing_timer(&mut self, time: i64) {
        self.change(Clock::Processing, time, true);
    }

    /// Takes an event timer back.
    pub fn clear_timer(&mut self, time: i64) {
        self.change(Clock::Event, time, false);
    }

    /// Takes a processing timer back.
    pub fn clear_processing_timer(&mut self, time: i64) {
        self.change(Clock::Processing, time, false);
    }

    /// All rows up to this event time have come; `i64::MIN` while there is no watermark.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    #[inline]
    fn change(&mut self, clock: Clock, time: i64, set: bool) {
        let order = self.changes.len() as u32;
        self.mixed |= !set || clock == Clock::Processing;
        self.changes.push(Change { clock, key: self.key, time, order, set });
    }

    /// Starts a call.
    #[doc(hidden)]
    pub fn begin(&mut self, watermark: i64) {
        self.context.begin();
        self.changes.clear();
        self.mixed = false;
        self.watermark = watermark;
    }

    /// Says which of the call's keys is the current one.
    #[doc(hidden)]
    #[inline(always)]
    pub fn select(&mut self, key: usize) {
        self.key = key as u32;
    }

    /// Ends a call: hands timers and metrics over.
    #[doc(hidden)]
    pub fn flush(&mut self) {
        self.context.flush();
        let changes = std::mem::take(&mut self.changes);
        match self.mixed {
            false => send(Clock::Event, true, &changes),
            true => send_mixed(changes),
        }
    }
}

/// A timer's last change counts, so the order of calls does not matter and there are at most four.
fn send_mixed(mut changes: Vec<Change>) {
    changes.sort_unstable();
    let timer = |change: &Change| (change.clock, change.key, change.time);
    let last: Vec<Change> = changes
        .chunk_by(|one, other| timer(one) == timer(other))
        .filter_map(|same| same.last().copied())
        .collect();
    for clock in [Clock::Event, Clock::Processing] {
        for set in [false, true] {
            let chosen = last.iter().filter(|change| change.clock == clock && change.set == set);
            send(clock, set, &chosen.copied().collect::<Vec<_>>());
        }
    }
}

fn send(clock: Clock, set: bool, changes: &[Change]) {
    if changes.is_empty() {
        return;
    }
    let keys: Vec<u32> = changes.iter().map(|change| change.key).collect();
    let times: Vec<i64> = changes.iter().map(|change| change.time).collect();
    match set {
        true => host::set_timers(clock, &keys, &times),
        false => host::clear_timers(clock, &keys, &times),
    }
}

impl Deref for ProcessContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::native;
    use crate::manifest::{FunctionSpec, Kind};

    fn timers_after(change: impl FnOnce(&mut ProcessContext)) -> (Vec<(Clock, i64)>, usize) {
        native::install(&FunctionSpec::new("test", Kind::Process, ""));
        native::with(|host| host.keys = vec![b"k".to_vec()]);
        let mut context = ProcessContext::default();
        context.begin(0);
        change(&mut context);
        context.flush();
        native::with(|host| {
            let timers = host.timers.iter().map(|(clock, time, _)| (*clock, *time)).collect();
            (timers, host.calls)
        })
    }

    #[test]
    fn many_timers_are_one_call() {
        let (timers, calls) = timers_after(|ctx| (0..100).for_each(|time| ctx.set_timer(time)));
        assert_eq!((timers.len(), calls), (100, 1));
    }

    #[test]
    fn a_timers_last_change_counts() {
        let (timers, calls) = timers_after(|ctx| {
            ctx.set_timer(1);
            ctx.clear_timer(1);
            ctx.clear_timer(2);
            ctx.set_timer(2);
            ctx.set_processing_timer(3);
        });
        assert_eq!(timers, [(Clock::Event, 2), (Clock::Processing, 3)]);
        assert_eq!(calls, 3);
    }
}

//! Windows that all keys share: tumbling, sliding and global.
//!
//! A window has one timer, whatever its number of keys: its end. So there is no timer structure at all. Panes are
//! kept in the order of their ends; when the clock goes from one time to another, the windows that end in between are
//! found by walking that order, fired one behind the other, and forgotten when no row can come for them any more.
//! Firing goes on in several steps: a step gathers groups, of one window or of many small ones, until a call of the
//! function is full, and what it makes is passed on before the next.

use std::collections::BTreeMap;

use arrow_array::UInt32Array;
use async_trait::async_trait;
use millstream_operator::{Collector, Operator, OperatorContext, OperatorError, Progress, UserFunction};
use millstream_state::{CallWindow, Cursor, Overflows, StateName};
use millstream_types::{
    Barrier, Batch, Clock, EncodedKeys, Lifecycle, MIN_WATERMARK, SnapshotRequest, StateForm, StatePart,
    Window,
};

use super::{
    Trigger, WindowSpec,
    assign::{self, Part},
    count::CountTrigger,
    entry::Entry,
    fired::Fired,
    interval::Interval,
    layout::Layout,
    panes::{Panes, behind},
    running::Running,
};
use crate::{
    kept::{CLOCK, WINDOWS},
    subtask_state::{number, take_clock},
};

/// Windows that all keys share.
pub(super) struct SharedWindows {
    spec: WindowSpec,
    entry: Entry,
    layout: Layout,
    panes: Panes,
    /// Where windows share many slices.
    running: Option<Running>,
    count: Option<CountTrigger>,
    /// How far the clock has come: windows whose last time is not after it have fired.
    clock: i64,
    interval: Interval,
    walk: Option<Walk>,
    keys: EncodedKeys,
}

/// A walk over windows that fire, between two of its steps.
#[derive(Clone, Debug)]
struct Walk {
    /// Windows up to this last time have been dealt with.
    position: i64,
    /// The window that is being gathered: the pane with its groups, and how far they have been gathered.
    gathering: Option<Gathering>,
}

#[derive(Clone, Debug)]
struct Gathering {
    window: Window,
    pane: Window,
    cursor: Cursor,
}

/// What a walk fires.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Windows with a last time up to this are over.
    ended: i64,
    /// Windows that are not over fire early if they start before this.
    early: Option<i64>,
}

impl SharedWindows {
    pub(super) fn new(
        mut spec: WindowSpec,
        layout: Layout,
        function: Box<dyn UserFunction>,
        ctx: OperatorContext,
        overflows: &Overflows<'_>,
    ) -> Self {
        if layout == Layout::Global {
            spec.clock = Clock::Event;
        }
        if spec.clock == Clock::Processing {
            spec.lateness = 0;
        }
        let count = match spec.trigger {
            Trigger::Count(every) => Some(CountTrigger::new(every, overflows())),
            Trigger::AtEnd | Trigger::Continuous { .. } => None,
        };
        let (entry, interval) = (Entry::new(&spec), Interval::new(spec.trigger));
        let panes = Panes::new(&spec, function, ctx, overflows());
        Self {
            spec,
            entry,
            layout,
            panes,
            running: layout.running(),
            count,
            clock: MIN_WATERMARK,
            interval,
            walk: None,
            keys: EncodedKeys::new(),
        }
    }

    /// The rows by step.
    fn steps(&self, batch: &Batch) -> Vec<Part> {
        match self.spec.clock {
            _ if self.layout == Layout::Global => vec![Part { window: Window::GLOBAL, rows: None }],
            Clock::Event => assign::steps(batch.times(), &self.layout),
            Clock::Processing | Clock::Expiry => {
                let now = self.now().max(self.clock.saturating_add(1));
                let step = self.layout.step_of(now);
                step.map(|window| Part { window, rows: None }).into_iter().collect()
            }
        }
    }

    /// Whether a pane takes no more rows: the last window that it is part of is over, and the lateness with it.
    fn is_late(&self, pane: Window) -> bool {
        self.clock != MIN_WATERMARK && self.forget_at(pane) <= self.clock
    }

    /// The time at which a pane is forgotten.
    fn forget_at(&self, pane: Window) -> i64 {
        self.layout.last_window(pane).max_time().saturating_add(self.spec.lateness)
    }

    /// Whether a window that has ended still takes rows.
    fn takes_late_rows(&self, window: Window) -> bool {
        window.max_time() <= self.clock && window.max_time().saturating_add(self.spec.lateness) > self.clock
    }

    /// Adds rows to one pane each and fires what that makes due.
    async fn add(&mut self, batch: &Batch, parts: &[Part], out: &mut Collector) -> Result<(), OperatorError> {
        self.entry.encode(batch, &mut self.keys)?;
        let Some(count) = &mut self.count else {
            self.add_rows(batch, parts, out).await?;
            return self.fire_late(out).await;
        };
        let rounds = count.rounds(&self.keys, parts)?;
        if let [only] = &rounds[..] {
            self.add_rows(batch, parts, out).await?;
            return self.fire_rows(&only.firing, out).await;
        }
        for round in rounds {
            let part_rows = assign::select(parts, batch.rows(), &round.rows);
            let rows = batch.take(&UInt32Array::from(round.rows));
            self.entry.encode(&rows, &mut self.keys)?;
            self.add_rows(&rows, &part_rows, out).await?;
            self.fire_rows(&round.firing, out).await?;
        }
        Ok(())
    }

    /// Adds rows, whose keys have been encoded, to one pane each.
    async fn add_rows(
        &mut self,
        batch: &Batch,
        parts: &[Part],
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        if let Some(running) = &mut self.running {
            parts.iter().try_for_each(|part| running.touch(part.window, &mut self.panes))?;
        }
        let rejected = self.panes.add(batch, &self.keys, parts).await?;
        self.panes.calls.output().row_errors().refuse(batch, &rejected, out)
    }

    /// Fires the groups of these rows of the last call.
    async fn fire_rows(&mut self, rows: &[u32], out: &mut Collector) -> Result<(), OperatorError> {
        let group_of_row = &self.panes.state().grouping().group_of_row;
        let mut groups: Vec<u32> = rows.iter().map(|&row| group_of_row[row as usize]).collect();
        groups.sort_unstable();
        self.fire_groups(&groups, out).await
    }

    /// Fires groups of the last call, ascending.
    async fn fire_groups(&mut self, groups: &[u32], out: &mut Collector) -> Result<(), OperatorError> {
        for part in self.panes.in_calls(groups)? {
            let mut fired = Fired::default();
            self.panes.gather_groups(&self.keys, part, &mut fired)?;
            self.panes.fire(fired, out).await?;
        }
        if self.spec.purging && !groups.is_empty() {
            self.panes.state_mut().remove_groups(groups)?;
        }
        Ok(())
    }

    /// Fires windows that have ended again for the keys whose late rows they have just taken.
    async fn fire_late(&mut self, out: &mut Collector) -> Result<(), OperatorError> {
        if self.spec.lateness == 0 || self.clock == MIN_WATERMARK {
            return Ok(());
        }
        if self.layout.longest_slice().is_some() {
            return self.fire_late_slices(out).await;
        }
        let windows = self.panes.state().call_windows().iter();
        let late = windows.filter(|w| self.takes_late_rows(w.window)).flat_map(groups_of);
        let groups: Vec<u32> = late.collect();
        self.fire_groups(&groups, out).await
    }

    /// [`SharedWindows::fire_late`] where a window's accumulators have to be merged from its slices.
    async fn fire_late_slices(&mut self, out: &mut Collector) -> Result<(), OperatorError> {
        let mut groups_of_window: BTreeMap<i64, (Window, Vec<u32>)> = BTreeMap::new();
        for slice in self.panes.state().call_windows() {
            let mut after = self.clock.saturating_sub(self.spec.lateness);
            while let Some(window) =
                self.layout.next_window(slice.window, after).filter(|&w| self.takes_late_rows(w))
            {
                groups_of_window
                    .entry(window.end)
                    .or_insert_with(|| (window, Vec::new()))
                    .1
                    .extend(groups_of(slice));
                after = window.max_time();
            }
        }
        // The keys are taken now, as reading the slices starts calls of its own.
        let with_keys =
            |(window, groups): (Window, Vec<u32>)| (window, self.panes.changed_keys(&self.keys, &groups));
        let windows: Vec<(Window, EncodedKeys)> = groups_of_window.into_values().map(with_keys).collect();
        let mut fired = Fired::default();
        for (window, keys) in windows {
            let slices = self.slices_of(window);
            self.panes.gather_merged(window, &slices, &keys, &mut fired).await?;
            if self.panes.is_full(&fired) {
                self.panes.fire(std::mem::take(&mut fired), out).await?;
            }
        }
        self.panes.fire(fired, out).await
    }

    /// The slices that a window has.
    fn slices_of(&self, window: Window) -> Vec<Window> {
        self.layout.longest_slice().map_or_else(Vec::new, |longest| self.panes.slices(window, longest))
    }

    /// The first pane with rows at or behind `from`, in the order of their ends.
    fn next_pane(&self, mut from: Option<Window>) -> Option<Window> {
        loop {
            let pane = self.panes.state().next_window(from)?;
            if self.layout.is_filled(pane) {
                return Some(pane);
            }
            from = Some(behind(pane));
        }
    }

    /// The first window that has rows and whose last time is after `after`.
    fn next_window(&self, after: i64) -> Option<Window> {
        let mut from = self.layout.first_pane_after(after);
        loop {
            let pane = self.next_pane(Some(from))?;
            if let Some(window) = self.layout.next_window(pane, after) {
                return Some(window);
            }
            from = behind(pane);
        }
    }

    /// Fires what is due, one call of the function a step; then the clock stands at `due.ended`.
    async fn advance(&mut self, due: Due, out: &mut Collector) -> Result<Progress, OperatorError> {
        let mut walk = self.walk.take().unwrap_or(Walk { position: self.clock, gathering: None });
        let mut fired = Fired::default();
        while let Some(at) = self.next_gathering(&mut walk, due).await? {
            let Gathering { window, pane, cursor } = at;
            match self.panes.gather(window, pane, cursor, &mut fired)? {
                Some(cursor) => walk.gathering = Some(Gathering { window, pane, cursor }),
                None => {
                    self.leave(window, pane, due)?;
                    walk.position = window.max_time();
                }
            }
            if self.panes.is_full(&fired) {
                self.panes.fire(fired, out).await?;
                self.walk = Some(walk);
                return Ok(Progress::More);
            }
        }
        self.panes.fire(fired, out).await?;
        self.clock = due.ended;
        self.forget(self.clock)?;
        Ok(Progress::Done)
    }

    /// Where to gather: where the last step stopped, or else the next window that is due.
    async fn next_gathering(
        &mut self,
        walk: &mut Walk,
        due: Due,
    ) -> Result<Option<Gathering>, OperatorError> {
        if let Some(gathering) = walk.gathering.take() {
            return Ok(Some(gathering));
        }
        if self.count.is_some() {
            return Ok(None);
        }
        let is_due =
            |w: &Window| w.max_time() <= due.ended || due.early.is_some_and(|before| w.start < before);
        let Some(window) = self.next_window(walk.position).filter(is_due) else { return Ok(None) };
        let ended = window.max_time() <= due.ended;
        let pane =
            if self.layout.longest_slice().is_some() { self.merged(window, ended).await? } else { window };
        Ok(Some(Gathering { window, pane, cursor: Cursor::default() }))
    }

    /// A pane with the accumulators of all slices of a window: its only slice, or one that [`SharedWindows::leave`]
    /// drops.
    async fn merged(&mut self, window: Window, ended: bool) -> Result<Window, OperatorError> {
        if let Some(running) = self.running.as_mut().filter(|_| ended)
            && let Some(pane) = running.window(window, &mut self.panes).await?
        {
            return Ok(pane);
        }
        let slices = self.slices_of(window);
        if let [only] = slices[..] {
            return Ok(only);
        }
        for &slice in &slices {
            self.panes.merge(window, slice).await?;
        }
        if let Some(running) = self.running.as_mut().filter(|_| ended) {
            running.observe(window, &slices, &self.panes);
        }
        Ok(window)
    }

    /// Drops what is not needed any more of a window that has been gathered.
    fn leave(&mut self, window: Window, pane: Window, due: Due) -> Result<(), OperatorError> {
        if self.spec.purging || !self.layout.is_filled(pane) {
            self.panes.state_mut().clear(pane)?;
        }
        if window.max_time() <= due.ended { self.forget(window.max_time()) } else { Ok(()) }
    }

    /// Drops the panes for which no row can come once the clock stands at `clock`.
    fn forget(&mut self, clock: i64) -> Result<(), OperatorError> {
        while let Some(pane) = self.next_pane(None).filter(|&pane| self.forget_at(pane) <= clock) {
            self.panes.state_mut().clear(pane)?;
            if let Some(count) = &mut self.count {
                count.clear(pane)?;
            }
        }
        Ok(())
    }

    /// Takes up what is left of a snapshot: an image comes first.
    fn restore_windows(&mut self, mut parts: Vec<StatePart>) -> Result<(), OperatorError> {
        parts.sort_by_key(|part| part.form != StateForm::Store);
        parts.iter().try_for_each(|part| self.panes.state_mut().restore(part))?;
        self.interval.wait(self.now(), !self.is_empty());
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.next_pane(None).is_none()
    }

    fn now(&self) -> i64 {
        self.panes.calls.ctx().clock.now()
    }
}

#[async_trait(?Send)]
impl Operator for SharedWindows {
    async fn open(&mut self) -> Result<(), OperatorError> {
        self.panes.calls.open().await
    }

    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let batch = self.entry.accept(batch, &self.panes.calls, out)?;
        if batch.is_empty() {
            return Ok(());
        }
        let in_time = |step| !self.is_late(self.layout.last_pane(step));
        let (kept, steps, late) = assign::restrict(batch.clone(), self.steps(&batch), in_time);
        self.entry.emit_late(&batch, late, &self.panes.calls, out);
        for pass in 0..self.layout.passes() {
            let panes = assign::panes(&steps, &self.layout, pass);
            let (rows, panes, _) = assign::restrict(kept.clone(), panes, |pane| !self.is_late(pane));
            if !rows.is_empty() {
                self.add(&rows, &panes, out).await?;
            }
        }
        if self.interval.waiting().is_none() {
            self.interval.wait(self.now(), !self.is_empty());
        }
        Ok(())
    }

    async fn watermark(&mut self, watermark: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        if self.spec.clock == Clock::Event {
            let early = self.interval.passed_by_watermark(self.clock, watermark);
            let due = Due { ended: watermark.max(self.clock), early };
            if self.advance(due, out).await? == Progress::More {
                return Ok(Progress::More);
            }
        }
        out.watermark(watermark);
        Ok(Progress::Done)
    }

    async fn processing_time(&mut self, now: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        let passed = self.interval.passed_by_clock(now);
        let ended = if self.spec.clock == Clock::Processing { self.clock.max(now - 1) } else { self.clock };
        let progress = self.advance(Due { ended, early: passed.then_some(i64::MAX) }, out).await?;
        if progress == Progress::Done && passed {
            self.interval.wait(now, !self.is_empty());
        }
        Ok(progress)
    }

    fn next_wakeup(&self) -> Option<i64> {
        let clock = self.spec.clock == Clock::Processing;
        let end = if clock { self.next_window(self.clock).map(|window| window.end) } else { None };
        self.interval.waiting().into_iter().chain(end).min()
    }

    async fn before_barrier(&mut self, _barrier: &Barrier, out: &mut Collector) -> Result<(), OperatorError> {
        self.panes.calls.lifecycle(Lifecycle::BeforeBarrier, out).await?;
        match &mut self.running {
            Some(running) => running.reset(&mut self.panes),
            None => Ok(()),
        }
    }

    async fn snapshot(&mut self, request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        // At a barrier that has been done, but after the end of input there is none.
        if let Some(running) = &mut self.running {
            running.reset(&mut self.panes)?;
        }
        let max = self.panes.calls.ctx().max_parallelism;
        let name = StateName { name: WINDOWS, version: self.panes.calls.version() };
        let mut parts = self.panes.state_mut().snapshot(name, max, request)?;
        parts.push(number(CLOCK, self.clock));
        if let Some(count) = &mut self.count {
            parts.extend(count.snapshot(max, request)?);
        }
        parts.extend(self.panes.calls.calls().snapshot());
        Ok(parts)
    }

    async fn restore(&mut self, parts: Vec<StatePart>) -> Result<(), OperatorError> {
        let mut parts = self.panes.calls.migrated(parts).await?;
        self.clock = take_clock(CLOCK, &mut parts)?;
        self.panes.calls.calls_mut().restore(&mut parts)?;
        if let Some(count) = &mut self.count {
            count.restore(&mut parts)?;
        }
        self.restore_windows(parts)
    }

    async fn restore_piece(&mut self, piece: StatePart) -> Result<(), OperatorError> {
        let mut pieces = self.panes.calls.migrated(vec![piece]).await?;
        if let Some(count) = &mut self.count {
            count.restore(&mut pieces)?;
        }
        self.restore_windows(pieces)
    }

    async fn end_of_input(&mut self, out: &mut Collector) -> Result<Progress, OperatorError> {
        self.panes.calls.lifecycle(Lifecycle::EndOfInput, out).await?;
        let mut dropped = 0;
        if self.spec.clock == Clock::Processing {
            while let Some(window) = self.next_window(self.clock) {
                dropped += 1;
                self.clock = window.max_time();
            }
        }
        self.panes.calls.calls().add(|m| &m.timers_dropped, dropped);
        self.interval.stop();
        Ok(Progress::Done)
    }

    async fn close(&mut self) -> Result<(), OperatorError> {
        self.panes.calls.close().await
    }
}

fn groups_of(window: &CallWindow) -> std::ops::Range<u32> {
    window.first_group..window.first_group + window.groups
}

//! Sessions: windows that every key has for itself, which rows make longer and join.

use arrow_array::UInt32Array;
use async_trait::async_trait;
use millstream_operator::{
    Collector, Operator, OperatorContext, OperatorError, Progress, Rejected, UserFunction,
};
use millstream_state::{
    Cursor, MemorySessionAccumulators, MemorySessionContents, Overflows, SessionAccumulators,
    SessionContents, SessionState, StateName,
};
use millstream_types::{
    Barrier, Batch, Clock, EncodedKeys, Lifecycle, MIN_WATERMARK, SnapshotRequest, StateForm, StatePart,
    Window,
};

use super::{
    Trigger, WindowFunction, WindowSpec,
    calls::WindowCalls,
    columns::pick,
    entry::Entry,
    fired::Fired,
    interval::Interval,
    panes::{groups_without_rows, keys_of_groups},
    session_count::SessionCount,
};
use crate::{
    kept::{CLOCK, WINDOWS, content_columns},
    project::kept_rows,
    subtask_state::{number, take_clock},
};

/// Sessions of all keys.
pub(super) struct SessionWindows {
    spec: WindowSpec,
    gap: i64,
    entry: Entry,
    calls: WindowCalls,
    store: Store,
    count: Option<SessionCount>,
    /// How far the clock has come: sessions whose last time is not after it have fired.
    clock: i64,
    interval: Interval,
    /// How far sessions that are not over have been fired early, between two steps of that.
    early: Option<Cursor>,
    keys: EncodedKeys,
}

enum Store {
    Accumulators(Box<dyn SessionAccumulators>),
    Contents(Box<dyn SessionContents>),
}

impl SessionWindows {
    pub(super) fn new(
        mut spec: WindowSpec,
        gap: i64,
        function: Box<dyn UserFunction>,
        ctx: OperatorContext,
        overflows: &Overflows<'_>,
    ) -> Self {
        if spec.clock == Clock::Processing {
            spec.lateness = 0;
        }
        let store = match &spec.function {
            WindowFunction::Aggregate { accumulator, .. } => {
                let (lateness, overflow) = (spec.lateness, overflows());
                let state = MemorySessionAccumulators::with_overflow(accumulator, lateness, overflow);
                Store::Accumulators(Box::new(state))
            }
            WindowFunction::Window { columns } => {
                let columns = content_columns(columns, spec.input.times);
                let (lateness, overflow) = (spec.lateness, overflows());
                let state = MemorySessionContents::with_overflow(&columns, lateness, overflow);
                Store::Contents(Box::new(state))
            }
        };
        let count = match spec.trigger {
            Trigger::Count(every) => Some(SessionCount::new(every, gap, spec.lateness, overflows())),
            Trigger::AtEnd | Trigger::Continuous { .. } => None,
        };
        Self {
            gap,
            entry: Entry::new(&spec),
            calls: WindowCalls::new(&spec, function, ctx),
            store,
            count,
            clock: MIN_WATERMARK,
            interval: Interval::new(spec.trigger),
            early: None,
            keys: EncodedKeys::new(),
            spec,
        }
    }

    fn state(&self) -> &dyn SessionState {
        match &self.store {
            Store::Accumulators(state) => &**state,
            Store::Contents(state) => &**state,
        }
    }

    fn state_mut(&mut self) -> &mut dyn SessionState {
        match &mut self.store {
            Store::Accumulators(state) => &mut **state,
            Store::Contents(state) => &mut **state,
        }
    }

    fn now(&self) -> i64 {
        self.calls.ctx().clock.now()
    }

    fn times(&self, batch: &Batch) -> Vec<i64> {
        match self.spec.clock {
            Clock::Event => batch.times().to_vec(),
            Clock::Processing | Clock::Expiry => {
                vec![self.now().max(self.clock.saturating_add(1)); batch.rows()]
            }
        }
    }

    /// Puts rows into sessions, without those that are late, which are dealt with. Returns the rows that are in.
    fn assign(&mut self, batch: Batch, times: &[i64], out: &mut Collector) -> Result<Batch, OperatorError> {
        self.entry.encode(&batch, &mut self.keys)?;
        let (gap, clock) = (self.gap, self.clock);
        let state = match &mut self.store {
            Store::Accumulators(state) => &mut **state as &mut dyn SessionState,
            Store::Contents(state) => &mut **state,
        };
        let late = state.assign(&self.keys, times, gap, clock)?;
        if late.is_empty() {
            return Ok(batch);
        }
        state.rollback();
        let refused: Vec<Rejected> = late.iter().map(|&row| rejected(row)).collect();
        let kept = kept_rows(batch.rows(), &refused);
        self.entry.emit_late(&batch, late, &self.calls, out);
        let times: Vec<i64> = kept.values().iter().map(|&row| times[row as usize]).collect();
        // A late row leaves all sessions as they are, so that without it the others join the same ones.
        self.assign(batch.take(&kept), &times, out)
    }

    /// Adds rows to their sessions and fires those that are over, or have as many rows as the trigger wants.
    async fn add(&mut self, batch: Batch, out: &mut Collector) -> Result<(), OperatorError> {
        let times = self.times(&batch);
        let batch = self.assign(batch, &times, out)?;
        if batch.is_empty() {
            return Ok(());
        }
        let counted = match &mut self.count {
            Some(count) => {
                let times = if self.spec.clock == Clock::Event { batch.times().to_vec() } else { times };
                Some(count.add(&self.keys, &times, self.clock)?)
            }
            None => None,
        };
        let unchanged = self.store_rows(&batch, out).await?;
        let due = match counted {
            Some(due) => due,
            None if self.spec.lateness == 0 => Vec::new(),
            None => self.over_groups(),
        };
        let due: Vec<u32> = due.into_iter().filter(|group| unchanged.binary_search(group).is_err()).collect();
        self.fire_groups(&due, out).await
    }

    /// Stores rows that have been put into sessions. Returns the sessions that they have left as they were.
    async fn store_rows(&mut self, batch: &Batch, out: &mut Collector) -> Result<Vec<u32>, OperatorError> {
        match &mut self.store {
            Store::Contents(state) => {
                state.append(&self.calls.contents(batch))?;
                Ok(Vec::new())
            }
            Store::Accumulators(state) => {
                let result = accumulate(&mut self.calls, &mut **state, batch).await;
                let (rejected, unchanged) = result.inspect_err(|_| state.rollback())?;
                self.calls.output().row_errors().refuse(batch, &rejected, out)?;
                Ok(unchanged)
            }
        }
    }

    /// The groups of the last call whose sessions are over already.
    fn over_groups(&self) -> Vec<u32> {
        let windows = self.state().windows();
        (0..windows.len() as u32).filter(|&group| windows[group as usize].max_time() <= self.clock).collect()
    }

    /// Fires groups of the last call, ascending.
    async fn fire_groups(&mut self, groups: &[u32], out: &mut Collector) -> Result<(), OperatorError> {
        if groups.is_empty() {
            return Ok(());
        }
        let mut fired = Fired::default();
        match &self.store {
            Store::Accumulators(state) => {
                let windows = state.windows();
                let keys = keys_of_groups(state.grouping(), &self.keys, groups);
                fired.push_keys(groups.iter().map(|&group| windows[group as usize]), keys);
                fired.push_part(pick(&state.read()?.values, groups));
            }
            Store::Contents(state) => {
                let slice = state.read_groups(groups)?;
                fired.push_rows(slice.windows, slice.keys, &slice.values.offsets, slice.values.items);
            }
        }
        if self.spec.purging {
            self.state_mut().purge_groups(groups);
        }
        self.fire(fired, out).await
    }

    async fn fire(&mut self, fired: Fired, out: &mut Collector) -> Result<(), OperatorError> {
        match &self.store {
            Store::Accumulators(_) => self.calls.finish(fired, out).await,
            Store::Contents(_) => self.calls.apply(fired, out).await,
        }
    }

    /// Fires sessions that are over at `now`, then early those of `early`, one call of the function a step.
    async fn advance(
        &mut self,
        now: i64,
        early: Option<i64>,
        out: &mut Collector,
    ) -> Result<Progress, OperatorError> {
        let mut fired = Fired::default();
        while self.early.is_none() && self.take_due(now, &mut fired)? {
            if fired.size() >= self.spec.fired_rows {
                self.fire(fired, out).await?;
                return Ok(Progress::More);
            }
        }
        self.clock = now;
        if let Some(before) = early {
            let cursor = self.early.take().unwrap_or_default();
            self.early = self.take_early(cursor, before, &mut fired)?;
        }
        self.fire(fired, out).await?;
        Ok(if self.early.is_some() { Progress::More } else { Progress::Done })
    }

    /// Takes sessions that are over, as many as a call may still get; says whether there were any.
    fn take_due(&mut self, now: i64, fired: &mut Fired) -> Result<bool, OperatorError> {
        let limit = self.spec.fired_rows.saturating_sub(fired.size()).max(1);
        // Under a count trigger sessions end without firing, and keep what they have for late rows to add to.
        let purge = self.spec.purging && self.count.is_none();
        let mut ignored = Fired::default();
        let fired = if self.count.is_some() { &mut ignored } else { fired };
        if let Some(count) = &mut self.count {
            count.forget(now)?;
        }
        match &mut self.store {
            Store::Accumulators(state) => {
                let slice = state.take_due(now, limit, purge)?;
                let found = !slice.windows.is_empty();
                if found {
                    fired.push_keys(slice.windows, slice.keys);
                    fired.push_part(slice.values);
                }
                Ok(found)
            }
            Store::Contents(state) => {
                let slice = state.take_due(now, limit, purge)?;
                let found = !slice.windows.is_empty();
                if found {
                    fired.push_rows(slice.windows, slice.keys, &slice.values.offsets, slice.values.items);
                }
                Ok(found)
            }
        }
    }

    /// Takes sessions that are not over and start before a time, from `cursor` on; returns where to go on.
    fn take_early(
        &mut self,
        cursor: Cursor,
        before: i64,
        fired: &mut Fired,
    ) -> Result<Option<Cursor>, OperatorError> {
        let limit = self.spec.fired_rows.saturating_sub(fired.size()).max(1);
        let clock = self.clock;
        let open = |w: &Window| w.max_time() > clock && w.start < before;
        let mut keys = EncodedKeys::new();
        let mut windows = Vec::new();
        let next = match &mut self.store {
            Store::Accumulators(state) => {
                let slice = state.scan(cursor, limit)?;
                let rows = positions(&slice.windows, open);
                select(&slice.keys, &slice.windows, &rows, &mut keys, &mut windows);
                fired.push_keys(windows.iter().copied(), keys.clone());
                fired.push_part(pick(&slice.values, &rows));
                slice.next
            }
            Store::Contents(state) => {
                let slice = state.scan(cursor, limit)?;
                let sessions = positions(&slice.windows, open);
                select(&slice.keys, &slice.windows, &sessions, &mut keys, &mut windows);
                let run = |&s: &u32| slice.values.offsets[s as usize]..slice.values.offsets[s as usize + 1];
                let rows: Vec<u32> = sessions.iter().flat_map(run).collect();
                let lengths = sessions.iter().map(|s| run(s).len() as u32);
                let ends = lengths.scan(0, |end, length| {
                    *end += length;
                    Some(*end)
                });
                let offsets: Vec<u32> = std::iter::once(0).chain(ends).collect();
                let rows = pick(&slice.values.items, &rows);
                fired.push_rows(windows.iter().copied(), keys.clone(), &offsets, rows);
                slice.next
            }
        };
        if self.spec.purging {
            self.purge(&keys, &windows)?;
        }
        Ok(next)
    }

    /// Takes up what is left of a snapshot: an image comes first.
    fn restore_sessions(&mut self, mut parts: Vec<StatePart>) -> Result<(), OperatorError> {
        parts.sort_by_key(|part| part.form != StateForm::Store);
        parts.iter().try_for_each(|part| self.state_mut().restore(part))?;
        self.interval.wait(self.now(), self.state().session_count() > 0);
        Ok(())
    }

    /// Empties sessions that have fired early: a call finds them by their start and is taken back.
    fn purge(&mut self, keys: &EncodedKeys, windows: &[Window]) -> Result<(), OperatorError> {
        let starts: Vec<i64> = windows.iter().map(|w| w.start).collect();
        let state = self.state_mut();
        state.assign(keys, &starts, 1, MIN_WATERMARK)?;
        let groups: Vec<u32> = (0..state.grouping().groups() as u32).collect();
        state.purge_groups(&groups);
        state.rollback();
        Ok(())
    }
}

/// Merges sessions that rows have joined, adds the rows, and writes what comes of it. Returns the rows that are
/// refused and the sessions that keep what they had.
async fn accumulate(
    calls: &mut WindowCalls,
    state: &mut dyn SessionAccumulators,
    batch: &Batch,
) -> Result<(Vec<Rejected>, Vec<u32>), OperatorError> {
    while let Some(step) = state.next_merge()? {
        let merged = calls.merge(&step.into, &step.other).await?;
        state.finish_merge(&merged)?;
    }
    let accumulators = state.read()?;
    let made = calls.accumulate(batch, &state.grouping().group_of_row, &accumulators).await?;
    let unchanged = match made.rejected.is_empty() {
        true => Vec::new(),
        false => groups_without_rows(state.grouping(), &made.rejected),
    };
    state.write(&made.accumulators, &unchanged)?;
    Ok((made.rejected, unchanged))
}

fn rejected(row: u32) -> Rejected {
    Rejected { row, reason: String::new(), retryable: false }
}

fn positions(windows: &[Window], wanted: impl Fn(&Window) -> bool) -> Vec<u32> {
    (0..windows.len() as u32).filter(|&i| wanted(&windows[i as usize])).collect()
}

fn select(
    keys: &EncodedKeys,
    windows: &[Window],
    positions: &[u32],
    into_keys: &mut EncodedKeys,
    into_windows: &mut Vec<Window>,
) {
    for &i in positions {
        into_keys.push(keys.key(i as usize), keys.hash(i as usize));
        into_windows.push(windows[i as usize]);
    }
}

#[async_trait(?Send)]
impl Operator for SessionWindows {
    async fn open(&mut self) -> Result<(), OperatorError> {
        self.calls.open().await
    }

    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let batch = self.entry.accept(batch, &self.calls, out)?;
        if batch.is_empty() {
            return Ok(());
        }
        if self.count.is_some() {
            self.entry.encode(&batch, &mut self.keys)?;
            for rows in SessionCount::rounds(&self.keys) {
                self.add(batch.take(&UInt32Array::from(rows)), out).await?;
            }
        } else {
            self.add(batch, out).await?;
        }
        if self.interval.waiting().is_none() {
            self.interval.wait(self.now(), self.state().session_count() > 0);
        }
        Ok(())
    }

    async fn watermark(&mut self, watermark: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        if self.spec.clock == Clock::Event {
            let from = if self.early.is_some() { MIN_WATERMARK } else { self.clock };
            let early = self.interval.passed_by_watermark(from, watermark);
            if self.advance(watermark.max(self.clock), early, out).await? == Progress::More {
                return Ok(Progress::More);
            }
        }
        out.watermark(watermark);
        Ok(Progress::Done)
    }

    async fn processing_time(&mut self, now: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        let passed = self.interval.passed_by_clock(now);
        let ended = if self.spec.clock == Clock::Processing { self.clock.max(now - 1) } else { self.clock };
        let progress = self.advance(ended, passed.then_some(i64::MAX), out).await?;
        if progress == Progress::Done && passed {
            self.interval.wait(now, self.state().session_count() > 0);
        }
        Ok(progress)
    }

    fn next_wakeup(&self) -> Option<i64> {
        let clock = self.spec.clock == Clock::Processing;
        let end = if clock { self.state().next_time().map(|last| last.saturating_add(1)) } else { None };
        self.interval.waiting().into_iter().chain(end).min()
    }

    async fn snapshot(&mut self, request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        let max = self.calls.ctx().max_parallelism;
        let name = StateName { name: WINDOWS, version: self.calls.version() };
        let mut parts = self.state_mut().snapshot(name, max, request)?;
        parts.push(number(CLOCK, self.clock));
        if let Some(count) = &mut self.count {
            parts.extend(count.snapshot(max, request)?);
        }
        parts.extend(self.calls.calls().snapshot());
        Ok(parts)
    }

    async fn restore(&mut self, parts: Vec<StatePart>) -> Result<(), OperatorError> {
        let mut parts = self.calls.migrated(parts).await?;
        self.clock = take_clock(CLOCK, &mut parts)?;
        self.calls.calls_mut().restore(&mut parts)?;
        if let Some(count) = &mut self.count {
            count.restore(&mut parts)?;
        }
        self.restore_sessions(parts)
    }

    async fn restore_piece(&mut self, piece: StatePart) -> Result<(), OperatorError> {
        let mut pieces = self.calls.migrated(vec![piece]).await?;
        if let Some(count) = &mut self.count {
            count.restore(&mut pieces)?;
        }
        self.restore_sessions(pieces)
    }

    async fn before_barrier(&mut self, _barrier: &Barrier, out: &mut Collector) -> Result<(), OperatorError> {
        self.calls.lifecycle(Lifecycle::BeforeBarrier, out).await
    }

    async fn end_of_input(&mut self, out: &mut Collector) -> Result<Progress, OperatorError> {
        self.calls.lifecycle(Lifecycle::EndOfInput, out).await?;
        if self.spec.clock == Clock::Processing {
            self.calls.calls().add(|m| &m.timers_dropped, self.state().session_count());
        }
        self.interval.stop();
        Ok(Progress::Done)
    }

    async fn close(&mut self) -> Result<(), OperatorError> {
        self.calls.close().await
    }
}

//! What windows of all keys hold: accumulators or rows, pane by pane, and how they come in and out.

use millstream_operator::{Collector, OperatorContext, OperatorError, Rejected, UserFunction};
use millstream_state::{
    Cursor, Grouping, KeyTable, MemoryAccumulators, MemoryContents, Overflow, WindowAccumulators,
    WindowContents, WindowState,
};
use millstream_types::{Batch, EncodedKeys, Window};

use super::{WindowFunction, WindowSpec, assign::Part, calls::WindowCalls, columns::pick, fired::Fired};
use crate::kept::content_columns;

/// The panes of one subtask with the function that fills and empties them.
pub(super) struct Panes {
    pub(super) calls: WindowCalls,
    store: Store,
    fired_rows: usize,
    /// Groups of the last call that it left as they were, ascending.
    unchanged: Vec<u32>,
}

enum Store {
    Accumulators(Box<dyn WindowAccumulators>),
    Contents(Box<dyn WindowContents>),
}

impl Panes {
    pub(super) fn new(
        spec: &WindowSpec,
        function: Box<dyn UserFunction>,
        ctx: OperatorContext,
        overflow: Option<Overflow>,
    ) -> Self {
        let store = match &spec.function {
            WindowFunction::Aggregate { accumulator, .. } => {
                Store::Accumulators(Box::new(MemoryAccumulators::with_overflow(accumulator, overflow)))
            }
            WindowFunction::Window { columns } => {
                let columns = content_columns(columns, spec.input.times);
                Store::Contents(Box::new(MemoryContents::with_overflow(&columns, overflow)))
            }
        };
        let calls = WindowCalls::new(spec, function, ctx);
        Self { calls, store, fired_rows: spec.fired_rows.max(1), unchanged: Vec::new() }
    }

    pub(super) fn state(&self) -> &dyn WindowState {
        match &self.store {
            Store::Accumulators(state) => &**state,
            Store::Contents(state) => &**state,
        }
    }

    pub(super) fn state_mut(&mut self) -> &mut dyn WindowState {
        match &mut self.store {
            Store::Accumulators(state) => &mut **state,
            Store::Contents(state) => &mut **state,
        }
    }

    /// Adds rows to their panes: every row is in one part. Returns the rows that the function refuses.
    pub(super) async fn add(
        &mut self,
        batch: &Batch,
        keys: &EncodedKeys,
        parts: &[Part],
    ) -> Result<Vec<Rejected>, OperatorError> {
        self.unchanged.clear();
        let state = self.state_mut();
        state.begin(batch.rows())?;
        for part in parts {
            state.resolve(part.window, keys, part.rows.as_deref())?;
        }
        match &mut self.store {
            Store::Contents(state) => {
                state.append(&self.calls.contents(batch))?;
                Ok(Vec::new())
            }
            Store::Accumulators(state) => {
                let accumulators = state.read()?;
                let group_of_row = &state.grouping().group_of_row;
                let made = match self.calls.accumulate(batch, group_of_row, &accumulators).await {
                    Ok(made) => made,
                    Err(error) => {
                        state.rollback();
                        return Err(error);
                    }
                };
                if !made.rejected.is_empty() {
                    self.unchanged = groups_without_rows(state.grouping(), &made.rejected);
                }
                state.write(&made.accumulators, &self.unchanged)?;
                Ok(made.rejected)
            }
        }
    }

    /// Groups of the last [`Panes::add`], as many a call as it may get, without those that it left as they were.
    pub(super) fn in_calls(&mut self, groups: &[u32]) -> Result<Vec<Vec<u32>>, OperatorError> {
        let changed = groups.iter().copied().filter(|group| self.unchanged.binary_search(group).is_err());
        let groups: Vec<u32> = changed.collect();
        let sizes = match &mut self.store {
            Store::Accumulators(_) => Vec::new(),
            Store::Contents(state) => state.rows_of_groups(&groups)?,
        };
        let mut calls: Vec<Vec<u32>> = Vec::new();
        let mut room = 0;
        for (at, &group) in groups.iter().enumerate() {
            if room == 0 {
                calls.push(Vec::new());
                room = self.fired_rows;
            }
            room = room.saturating_sub(sizes.get(at).map_or(1, |&rows| rows as usize));
            calls.last_mut().expect("there is one once there is room").push(group);
        }
        Ok(calls)
    }

    /// Gathers groups of the last [`Panes::add`] to fire.
    pub(super) fn gather_groups(
        &mut self,
        keys: &EncodedKeys,
        groups: Vec<u32>,
        fired: &mut Fired,
    ) -> Result<(), OperatorError> {
        let windows: Vec<Window> = groups.iter().map(|&group| self.window_of(group)).collect();
        match &mut self.store {
            Store::Accumulators(state) => {
                let cells = state.read()?;
                fired.push_keys(windows, keys_of_groups(state.grouping(), keys, &groups));
                fired.push_part(pick(&cells.values, &groups));
            }
            Store::Contents(state) => {
                let slice = state.read_groups(&groups)?;
                fired.push_rows(windows, slice.keys, &slice.rows.offsets, slice.rows.items);
            }
        }
        Ok(())
    }

    /// Gathers keys of a window to fire, from `cursor` on; returns where to go on.
    pub(super) fn gather(
        &mut self,
        window: Window,
        pane: Window,
        cursor: Cursor,
        fired: &mut Fired,
    ) -> Result<Option<Cursor>, OperatorError> {
        let limit = self.fired_rows.saturating_sub(fired.size()).max(1);
        match &mut self.store {
            Store::Accumulators(state) => {
                let slice = state.scan(pane, cursor, limit)?;
                fired.push_accumulators(window, slice.keys, slice.accumulators);
                Ok(slice.next)
            }
            Store::Contents(state) => {
                let slice = state.scan(pane, cursor, limit)?;
                let windows = std::iter::repeat_n(window, slice.keys.len());
                fired.push_rows(windows, slice.keys, &slice.rows.offsets, slice.rows.items);
                Ok(slice.next)
            }
        }
    }

    /// Whether what has been gathered is enough for a call.
    pub(super) fn is_full(&self, fired: &Fired) -> bool {
        fired.size() >= self.fired_rows
    }

    /// Emits what the function makes of gathered groups.
    pub(super) async fn fire(&mut self, fired: Fired, out: &mut Collector) -> Result<(), OperatorError> {
        match &self.store {
            Store::Accumulators(_) => self.calls.finish(fired, out).await,
            Store::Contents(_) => self.calls.apply(fired, out).await,
        }
    }

    /// The panes of at most a length that lie within a span, in order.
    pub(super) fn slices(&self, within: Window, longest: i64) -> Vec<Window> {
        let mut slices = Vec::new();
        let mut from = Window::new(within.start, within.start.saturating_add(1));
        while let Some(pane) = self.state().next_window(Some(from)).filter(|pane| pane.end <= within.end) {
            let fits = pane.start >= within.start && pane.end - pane.start <= longest;
            slices.extend(fits.then_some(pane));
            from = behind(pane);
        }
        slices
    }

    /// Merges all accumulators of a pane into those of another.
    pub(super) async fn merge(&mut self, into: Window, from: Window) -> Result<(), OperatorError> {
        let Store::Accumulators(state) = &mut self.store else { return Ok(()) };
        let mut cursor = Some(Cursor::default());
        while let Some(at) = cursor {
            let step = state.merge(into, from, at, self.fired_rows)?;
            let merged = self.calls.merge(&step.into, &step.other).await?;
            state.finish_merge(&merged)?;
            cursor = step.next;
        }
        Ok(())
    }

    /// Gathers some keys of a window that is made of these panes, leaving the panes as they are.
    pub(super) async fn gather_merged(
        &mut self,
        window: Window,
        panes: &[Window],
        keys: &EncodedKeys,
        fired: &mut Fired,
    ) -> Result<(), OperatorError> {
        let Store::Accumulators(state) = &mut self.store else { return Ok(()) };
        let mut merged = None;
        for &pane in panes {
            state.begin(keys.len())?;
            state.resolve(pane, keys, None)?;
            let cells = state.read()?;
            state.rollback();
            merged = Some(match merged {
                None => cells,
                Some(before) => self.calls.merge_cells(before, cells).await?,
            });
        }
        if let Some(cells) = merged {
            fired.push_accumulators(window, keys.clone(), cells.values);
        }
        Ok(())
    }

    /// The distinct keys of those of some groups of the last [`Panes::add`] that it changed.
    pub(super) fn changed_keys(&self, keys: &EncodedKeys, groups: &[u32]) -> EncodedKeys {
        let changed = groups.iter().filter(|group| self.unchanged.binary_search(group).is_err());
        let all = keys_of_groups(self.state().grouping(), keys, changed);
        let (mut seen, mut distinct) = (KeyTable::new(), EncodedKeys::new());
        for i in 0..all.len() {
            if seen.insert(all.key(i), all.hash(i)).1 {
                distinct.push(all.key(i), all.hash(i));
            }
        }
        distinct
    }

    fn window_of(&self, group: u32) -> Window {
        let windows = self.state().call_windows();
        let at = windows.partition_point(|w| w.first_group + w.groups <= group);
        windows[at].window
    }
}

/// The groups that have no row but refused ones, ascending.
pub(super) fn groups_without_rows(grouping: &Grouping, rejected: &[Rejected]) -> Vec<u32> {
    let mut taken = vec![false; grouping.groups()];
    let mut refused = rejected.iter().map(|r| r.row as usize).peekable();
    for (row, &group) in grouping.group_of_row.iter().enumerate() {
        if refused.next_if_eq(&row).is_none() {
            taken[group as usize] = true;
        }
    }
    (0..taken.len() as u32).filter(|&group| !taken[group as usize]).collect()
}

/// The keys of some groups of a call over rows with `keys`.
pub(super) fn keys_of_groups<'a>(
    grouping: &Grouping,
    keys: &EncodedKeys,
    groups: impl IntoIterator<Item = &'a u32>,
) -> EncodedKeys {
    let mut found = EncodedKeys::new();
    for &group in groups {
        let row = grouping.first_row_of_group[group as usize] as usize;
        found.push(keys.key(row), keys.hash(row));
    }
    found
}

/// The next position behind a pane in the order of window ends.
pub(super) fn behind(pane: Window) -> Window {
    Window::new(pane.start.saturating_add(1), pane.end)
}

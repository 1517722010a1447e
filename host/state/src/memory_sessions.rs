//! Accumulators and contents of sessions in memory, and what has no room there in a store.

use millstream_types::{
    Cells, Column, Columns, EncodedKeys, MaxParallelism, Runs, SnapshotRequest, StateForm, StatePart, Window,
};

use crate::{
    Cursor, Grouping, MergeStep, Overflow, SessionAccumulators, SessionContents, SessionSlice, SessionState,
    StateError, StateName,
    cell_store::CellStore,
    list_store::ListStore,
    sessions::{Sessions, StoredSlice},
    shape,
    slot_store::SlotStore,
    value_state::interleave_columns,
    window_state::Place,
};

/// Accumulators of sessions.
pub struct MemorySessionAccumulators {
    sessions: Sessions<CellStore>,
    /// The accumulators of the call's groups, once merging has begun.
    merged: Option<Cells>,
    /// The groups of the last merge step.
    merging: Vec<u32>,
    /// How many of the absorbed sessions have been merged: they are sorted by round.
    steps: Vec<Vec<(u32, u32)>>,
}

impl MemorySessionAccumulators {
    /// No session yet; accumulators of these columns, kept for `lateness` milliseconds after a session's end.
    pub fn new(columns: &[Column], lateness: i64) -> Self {
        Self::with_overflow(columns, lateness, None)
    }

    /// The same with a place for what has no room in memory.
    pub fn with_overflow(columns: &[Column], lateness: i64, overflow: Option<Overflow>) -> Self {
        let sessions = Sessions::new(columns, lateness, overflow);
        Self { sessions, merged: None, merging: Vec::new(), steps: Vec::new() }
    }

    fn slice(&self, slots: &[u32], next: Option<Cursor>) -> SessionSlice<Columns> {
        let (keys, windows) = self.sessions.describe(slots);
        SessionSlice { keys, windows, values: self.sessions.store.read_values(slots), next }
    }

    /// The stored sessions that have been taken up, a list a round: in a round, a group merges one of them. The last
    /// list is the first round.
    fn plan_merges(&mut self) {
        let mut rounds: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut merges = vec![0; self.sessions.grouping.groups()];
        for &(slot, group) in
            self.sessions.absorbed.iter().filter(|(s, _)| self.sessions.store.is_present(*s))
        {
            let round = &mut merges[group as usize];
            if *round == rounds.len() {
                rounds.push(Vec::new());
            }
            rounds[*round].push((slot, group));
            *round += 1;
        }
        rounds.reverse();
        self.steps = rounds;
    }
}

impl SessionState for MemorySessionAccumulators {
    fn assign(
        &mut self,
        keys: &EncodedKeys,
        times: &[i64],
        gap: i64,
        clock: i64,
    ) -> Result<Vec<u32>, StateError> {
        let late = self.sessions.assign(keys, times, gap, clock)?;
        self.merged = None;
        self.plan_merges();
        Ok(late)
    }

    fn grouping(&self) -> &Grouping {
        &self.sessions.grouping
    }

    fn windows(&self) -> Vec<Window> {
        self.sessions.windows()
    }

    fn rollback(&mut self) {
        self.merged = None;
        self.steps.clear();
        self.sessions.rollback();
    }

    fn next_time(&self) -> Option<i64> {
        self.sessions.next_time()
    }

    fn session_count(&self) -> usize {
        self.sessions.len()
    }

    fn purge_groups(&mut self, groups: &[u32]) {
        groups
            .iter()
            .for_each(|&g| self.sessions.store.remove(self.sessions.grouping.slot_of_group[g as usize]));
    }

    fn snapshot(
        &mut self,
        name: StateName<'_>,
        max: MaxParallelism,
        _request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError> {
        self.sessions.snapshot(name, StateForm::SessionAccumulators, max)
    }

    fn restore(&mut self, part: &StatePart) -> Result<(), StateError> {
        self.sessions.restore_part(part, StateForm::SessionAccumulators)
    }
}

impl SessionAccumulators for MemorySessionAccumulators {
    fn next_merge(&mut self) -> Result<Option<MergeStep>, StateError> {
        let Some(step) = self.steps.pop() else { return Ok(None) };
        let before = match self.merged.take() {
            Some(cells) => cells,
            None => self.read()?,
        };
        let (slots, groups): (Vec<u32>, Vec<u32>) = step.into_iter().unzip();
        let places: Vec<_> = groups.iter().map(|&g| (0, g as usize)).collect();
        let into = interleave_columns(&[&before.values], &places);
        self.merged = Some(before);
        self.merging = groups;
        Ok(Some(MergeStep { into, other: self.sessions.store.read_values(&slots), next: None }))
    }

    fn finish_merge(&mut self, merged: &Columns) -> Result<(), StateError> {
        shape::check(NAME, &self.sessions.columns, merged, self.merging.len())?;
        if let Some(cells) = &mut self.merged {
            let mut places: Vec<_> = (0..cells.values.rows).map(|group| (0, group)).collect();
            self.merging.iter().enumerate().for_each(|(i, &group)| places[group as usize] = (1, i));
            cells.values = interleave_columns(&[&cells.values, merged], &places);
        }
        Ok(())
    }

    fn read(&self) -> Result<Cells, StateError> {
        let stored = || self.sessions.store.read(&self.sessions.grouping.slot_of_group);
        Ok(self.merged.clone().unwrap_or_else(stored))
    }

    fn write(&mut self, accumulators: &Columns, skipped: &[u32]) -> Result<(), StateError> {
        let groups = self.sessions.grouping.groups();
        shape::check(NAME, &self.sessions.columns, accumulators, groups)?;
        let slots = &self.sessions.grouping.slot_of_group;
        if let Some(merged) = self.merged.take() {
            self.sessions.store.write(slots, &merged);
        }
        let kept: Vec<usize> = (0..groups).filter(|&g| skipped.binary_search(&(g as u32)).is_err()).collect();
        let slots: Vec<u32> = kept.iter().map(|&g| slots[g]).collect();
        self.sessions.store.write_rows(&slots, accumulators, kept.iter().copied());
        let created = &self.sessions.grouping.created;
        let unused: Vec<u32> = skipped.iter().filter(|g| created.binary_search(g).is_ok()).copied().collect();
        self.sessions.commit(&unused);
        Ok(())
    }

    fn take_due(&mut self, now: i64, limit: usize, purge: bool) -> Result<SessionSlice<Columns>, StateError> {
        let due = self.sessions.take_due(now, at_most(limit))?;
        let slice = self.slice(&due, None);
        due.iter().for_each(|&slot| self.sessions.leave(slot, purge));
        Ok(slice)
    }

    fn scan(&mut self, cursor: Cursor, limit: usize) -> Result<SessionSlice<Columns>, StateError> {
        match cursor.0 {
            Place::Slot(slot) => {
                let (slots, next) = self.sessions.scan(slot, at_most(limit));
                Ok(self.slice(&slots, next))
            }
            Place::Stored(from) => {
                let read = self.sessions.scan_stored(&from, |rows| rows.rows() >= limit)?;
                let StoredSlice { keys, windows, entries, next } = read;
                Ok(SessionSlice { keys, windows, values: entries.finish(), next })
            }
        }
    }
}

/// Contents of sessions.
pub struct MemorySessionContents {
    sessions: Sessions<ListStore>,
}

impl MemorySessionContents {
    /// No session yet; rows of these columns, kept for `lateness` milliseconds after a session's end.
    pub fn new(columns: &[Column], lateness: i64) -> Self {
        Self::with_overflow(columns, lateness, None)
    }

    /// The same with a place for what has no room in memory.
    pub fn with_overflow(columns: &[Column], lateness: i64, overflow: Option<Overflow>) -> Self {
        Self { sessions: Sessions::new(columns, lateness, overflow) }
    }

    fn slice(&self, slots: &[u32], next: Option<Cursor>) -> Result<SessionSlice<Runs>, StateError> {
        let (keys, windows) = self.sessions.describe(slots);
        Ok(SessionSlice { keys, windows, values: self.sessions.store.read(slots.iter().copied())?, next })
    }
}

impl SessionState for MemorySessionContents {
    fn assign(
        &mut self,
        keys: &EncodedKeys,
        times: &[i64],
        gap: i64,
        clock: i64,
    ) -> Result<Vec<u32>, StateError> {
        self.sessions.assign(keys, times, gap, clock)
    }

    fn grouping(&self) -> &Grouping {
        &self.sessions.grouping
    }

    fn windows(&self) -> Vec<Window> {
        self.sessions.windows()
    }

    fn rollback(&mut self) {
        self.sessions.rollback();
    }

    fn next_time(&self) -> Option<i64> {
        self.sessions.next_time()
    }

    fn session_count(&self) -> usize {
        self.sessions.len()
    }

    fn purge_groups(&mut self, groups: &[u32]) {
        groups
            .iter()
            .for_each(|&g| self.sessions.store.remove(self.sessions.grouping.slot_of_group[g as usize]));
    }

    fn snapshot(
        &mut self,
        name: StateName<'_>,
        max: MaxParallelism,
        _request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError> {
        self.sessions.snapshot(name, StateForm::SessionContents, max)
    }

    fn restore(&mut self, part: &StatePart) -> Result<(), StateError> {
        self.sessions.restore_part(part, StateForm::SessionContents)
    }
}

impl SessionContents for MemorySessionContents {
    fn append(&mut self, rows: &Columns) -> Result<(), StateError> {
        let Grouping { group_of_row, slot_of_group, .. } = &self.sessions.grouping;
        shape::check(NAME, &self.sessions.columns, rows, group_of_row.len())?;
        for &(slot, group) in &self.sessions.absorbed {
            self.sessions.store.move_rows(slot, slot_of_group[group as usize]);
        }
        let assigned = group_of_row.iter().enumerate().filter(|&(_, &group)| group != Grouping::NONE);
        let places = assigned.map(|(row, &group)| (slot_of_group[group as usize], row));
        self.sessions.store.append(places, rows);
        self.sessions.commit(&[]);
        Ok(())
    }

    fn rows_of_groups(&self) -> Vec<u32> {
        let rows = |&slot: &u32| self.sessions.store.rows(slot) as u32;
        self.sessions.grouping.slot_of_group.iter().map(rows).collect()
    }

    fn read_groups(&self, groups: &[u32]) -> Result<SessionSlice<Runs>, StateError> {
        let slots: Vec<u32> =
            groups.iter().map(|&g| self.sessions.grouping.slot_of_group[g as usize]).collect();
        self.slice(&slots, None)
    }

    fn take_due(&mut self, now: i64, limit: usize, purge: bool) -> Result<SessionSlice<Runs>, StateError> {
        let due = self.sessions.take_due(now, rows_at_most(limit))?;
        let slice = self.slice(&due, None)?;
        due.iter().for_each(|&slot| self.sessions.leave(slot, purge));
        Ok(slice)
    }

    fn scan(&mut self, cursor: Cursor, limit: usize) -> Result<SessionSlice<Runs>, StateError> {
        match cursor.0 {
            Place::Slot(slot) => {
                let (slots, next) = self.sessions.scan(slot, rows_at_most(limit));
                self.slice(&slots, next)
            }
            Place::Stored(from) => {
                let mut rows = 0;
                let read = self.sessions.scan_stored(&from, |lists| {
                    rows += lists.last().map_or(0, |(rows, _)| *rows as usize);
                    rows >= limit
                })?;
                let StoredSlice { keys, windows, entries, next } = read;
                Ok(SessionSlice { keys, windows, values: self.sessions.store.decode(&entries)?, next })
            }
        }
    }
}

/// Enough once there are `limit` sessions.
fn at_most(limit: usize) -> impl FnMut(&CellStore, u32) -> bool {
    let mut sessions = 0;
    move |_, _| {
        sessions += 1;
        sessions >= limit
    }
}

/// Enough once there are `limit` rows.
fn rows_at_most(limit: usize) -> impl FnMut(&ListStore, u32) -> bool {
    let mut rows = 0;
    move |store, slot| {
        rows += store.rows(slot);
        rows >= limit
    }
}

/// How messages name what sessions keep.
const NAME: &str = "session";

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use arrow_array::{Int64Array, cast::AsArray, types::Int64Type};
    use millstream_types::{DataType, MAX_WATERMARK, MIN_WATERMARK, hash_key};
    use proptest::prelude::*;

    use super::*;

    const NAME_OF_TEST: StateName<'_> = StateName { name: "session", version: 1 };

    fn columns() -> Vec<Column> {
        vec![Column { name: "sum".into(), data_type: DataType::Int64, nullable: false }]
    }

    fn keys(names: &[&str]) -> EncodedKeys {
        let mut keys = EncodedKeys::new();
        names.iter().for_each(|n| keys.push(n.as_bytes(), hash_key(n.as_bytes())));
        keys
    }

    fn ints(columns: &Columns) -> Vec<i64> {
        columns.arrays[0].as_primitive::<Int64Type>().values().to_vec()
    }

    fn of(values: Vec<i64>) -> Columns {
        Columns::new(values.len(), vec![Arc::new(Int64Array::from(values))])
    }

    /// Adds rows (key, time, value) up in sessions of gap 10; returns the positions of late rows.
    fn add(state: &mut MemorySessionAccumulators, rows: &[(&str, i64, i64)], clock: i64) -> Vec<u32> {
        let names: Vec<&str> = rows.iter().map(|r| r.0).collect();
        let times: Vec<i64> = rows.iter().map(|r| r.1).collect();
        let late = state.assign(&keys(&names), &times, 10, clock).expect("in memory");
        while let Some(step) = state.next_merge().expect("in memory") {
            let merged = ints(&step.into).iter().zip(ints(&step.other)).map(|(a, b)| a + b).collect();
            state.finish_merge(&of(merged)).expect("fits");
        }
        let cells = state.read().expect("in memory");
        let mut sums: Vec<i64> =
            ints(&cells.values).iter().zip(&cells.present).map(|(&s, p)| if p { s } else { 0 }).collect();
        for (row, &group) in state.grouping().group_of_row.iter().enumerate() {
            if group != Grouping::NONE {
                sums[group as usize] += rows[row].2;
            }
        }
        state.write(&of(sums), &[]).expect("fits");
        late
    }

    fn shown(slice: &SessionSlice<Columns>) -> Vec<String> {
        let keys = slice.keys.iter().map(String::from_utf8_lossy);
        let each = keys.zip(&slice.windows).zip(ints(&slice.values));
        each.map(|((key, w), sum)| format!("{key} {}..{} {sum}", w.start, w.end)).collect()
    }

    fn due(state: &mut MemorySessionAccumulators, now: i64) -> Vec<String> {
        shown(&state.take_due(now, 100, false).expect("in memory"))
    }

    #[test]
    fn rows_that_touch_are_one_session_of_their_key() {
        let mut state = MemorySessionAccumulators::new(&columns(), 0);
        add(&mut state, &[("a", 0, 1), ("b", 5, 10), ("a", 10, 2), ("a", 21, 4)], MIN_WATERMARK);
        assert_eq!(state.session_count(), 3);
        assert_eq!(due(&mut state, 18), ["b 5..15 10"]);
        assert_eq!(due(&mut state, 19), ["a 0..20 3"]);
        assert_eq!(due(&mut state, MAX_WATERMARK), ["a 21..31 4"]);
        assert_eq!((state.session_count(), state.next_time()), (0, None));
    }

    #[test]
    fn a_row_between_sessions_merges_what_they_have() {
        let mut state = MemorySessionAccumulators::new(&columns(), 0);
        add(&mut state, &[("a", 0, 1), ("a", 20, 2), ("a", 40, 4), ("a", 60, 8)], MIN_WATERMARK);
        assert_eq!(state.session_count(), 4);
        add(&mut state, &[("a", 30, 16), ("a", 10, 32), ("a", 100, 64)], MIN_WATERMARK);
        assert_eq!(due(&mut state, 90), ["a 0..50 55", "a 60..70 8"]);
        assert_eq!(due(&mut state, MAX_WATERMARK), ["a 100..110 64"]);
    }

    #[test]
    fn late_rows_are_told_and_lateness_keeps_sessions() {
        let mut state = MemorySessionAccumulators::new(&columns(), 5);
        add(&mut state, &[("a", 0, 1)], MIN_WATERMARK);
        assert_eq!(due(&mut state, 9), ["a 0..10 1"]);
        assert_eq!(add(&mut state, &[("a", 0, 2), ("b", 2, 2), ("c", -5, 9)], 12), [2]);
        assert_eq!(state.windows(), [Window::new(0, 10), Window::new(2, 12)]);
        assert_eq!(due(&mut state, 12), Vec::<String>::new(), "the caller fires what is over already");
        add(&mut state, &[("a", 4, 4)], 12);
        assert_eq!(due(&mut state, 13), ["a 0..14 7"], "a late row has made it longer");
        assert_eq!(due(&mut state, 17), Vec::<String>::new());
        assert_eq!(state.session_count(), 1, "b has been forgotten at 11 + 5");
        assert_eq!(due(&mut state, 18), Vec::<String>::new());
        assert_eq!((state.session_count(), state.next_time()), (0, None));
    }

    #[test]
    fn a_call_rolled_back_leaves_everything_as_it_was() {
        let mut state = MemorySessionAccumulators::new(&columns(), 0);
        add(&mut state, &[("a", 0, 1), ("a", 20, 2)], MIN_WATERMARK);
        state.assign(&keys(&["a", "a", "b"]), &[10, 50, 0], 10, MIN_WATERMARK).expect("in memory");
        assert_eq!(state.windows(), [Window::new(0, 30), Window::new(50, 60), Window::new(0, 10)]);
        state.rollback();
        assert_eq!(state.session_count(), 2);
        add(&mut state, &[("a", 3, 4)], MIN_WATERMARK);
        assert_eq!(due(&mut state, MAX_WATERMARK), ["a 0..13 5", "a 20..30 2"]);
    }

    #[test]
    fn skipped_groups_keep_what_they_have() {
        let mut state = MemorySessionAccumulators::new(&columns(), 0);
        add(&mut state, &[("a", 0, 1)], MIN_WATERMARK);
        state.assign(&keys(&["a", "b", "c"]), &[5, 0, 0], 10, MIN_WATERMARK).expect("in memory");
        state.write(&of(vec![90, 91, 7]), &[0, 1]).expect("fits");
        assert_eq!(due(&mut state, MAX_WATERMARK), ["c 0..10 7", "a 0..15 1"]);
    }

    #[test]
    fn contents_keep_their_rows_through_merges() {
        let mut state = MemorySessionContents::new(&columns(), 0);
        let mut add = |rows: &[(&str, i64, i64)]| {
            let names: Vec<&str> = rows.iter().map(|r| r.0).collect();
            let times: Vec<i64> = rows.iter().map(|r| r.1).collect();
            state.assign(&keys(&names), &times, 10, MIN_WATERMARK).expect("in memory");
            state.append(&of(rows.iter().map(|r| r.2).collect())).expect("fits");
            state.rows_of_groups()
        };
        assert_eq!(add(&[("a", 0, 1), ("a", 20, 2), ("b", 0, 3)]), [1, 1, 1]);
        assert_eq!(add(&[("a", 10, 4), ("a", 11, 5)]), [4]);
        let slice = state.take_due(MAX_WATERMARK, 1, false).expect("in memory");
        assert_eq!((slice.values.offsets, ints(&slice.values.items)), (vec![0, 1], vec![3]));
        let slice = state.take_due(MAX_WATERMARK, 1, false).expect("in memory");
        assert_eq!((slice.windows, ints(&slice.values.items)), (vec![Window::new(0, 30)], vec![1, 2, 4, 5]));
        assert_eq!(state.session_count(), 0);
    }

    #[test]
    fn sessions_that_grow_take_no_memory() {
        let mut state = MemorySessionAccumulators::new(&columns(), 0);
        (0..10_000).for_each(|time| _ = add(&mut state, &[("a", time, 1)], MIN_WATERMARK));
        assert_eq!(due(&mut state, MAX_WATERMARK), ["a 0..10009 10000"]);
    }

    #[test]
    fn sessions_are_there_again_after_a_restore() {
        let max = MaxParallelism::new(4).expect("in range");
        let mut state = MemorySessionAccumulators::new(&columns(), 5);
        add(&mut state, &[("a", 0, 1), ("b", 3, 2), ("a", 40, 4), ("c", 20, 8)], MIN_WATERMARK);
        assert_eq!(due(&mut state, 9), ["a 0..10 1"]);
        let part = state.snapshot(NAME_OF_TEST, max, &SnapshotRequest::in_full(1)).expect("between calls");
        let mut restored = MemorySessionAccumulators::new(&columns(), 5);
        restored.restore(&part[0]).expect("its own state");
        assert_eq!(
            restored.snapshot(NAME_OF_TEST, max, &SnapshotRequest::in_full(1)).expect("between calls"),
            part,
            "the same bytes"
        );
        for state in [&mut state, &mut restored] {
            assert_eq!(due(state, 12), ["b 3..13 2"], "the first session of a has been handed out before");
            assert_eq!(state.session_count(), 4);
            add(state, &[("c", 28, 16)], 12);
            assert_eq!(due(state, 37), ["c 20..38 24"]);
            assert_eq!(due(state, MAX_WATERMARK), ["a 40..50 4"]);
        }
    }

    /// Sessions of a model: per key, window by start with its sum.
    #[derive(Default)]
    struct Model(BTreeMap<u8, Vec<(Window, i64)>>);

    impl Model {
        fn add(&mut self, key: u8, time: i64, value: i64, clock: i64) -> bool {
            let mut joined = (Window::new(time, time + 10), value);
            let sessions = self.0.entry(key).or_default();
            let (touching, mut others): (Vec<_>, Vec<_>) =
                sessions.drain(..).partition(|s| s.0.touches(&joined.0));
            touching.iter().for_each(|s| joined = (joined.0.cover(&s.0), joined.1 + s.1));
            let late = joined.0.max_time() <= clock;
            if late {
                others.extend(touching)
            } else {
                others.push(joined)
            }
            *sessions = others;
            late
        }

        fn due(&mut self, now: i64) -> Vec<String> {
            let mut due = Vec::new();
            for (key, sessions) in &mut self.0 {
                sessions.retain(|(w, sum)| {
                    let over = w.max_time() <= now;
                    if over {
                        due.push(format!("{key} {}..{} {sum}", w.start, w.end));
                    }
                    !over
                });
            }
            due.sort();
            due
        }
    }

    proptest! {
        #[test]
        fn behaves_like_a_list_of_sessions(
            calls in prop::collection::vec((prop::collection::vec((0u8..3, 0i64..200, 1i64..9), 0..12), 0i64..40), 1..25),
        ) {
            let (mut state, mut model, mut clock) = (MemorySessionAccumulators::new(&columns(), 0), Model::default(), MIN_WATERMARK);
            for (rows, advance) in calls {
                let named: Vec<(String, i64, i64)> = rows.iter().map(|&(k, t, v)| (k.to_string(), t, v)).collect();
                let named: Vec<(&str, i64, i64)> = named.iter().map(|(k, t, v)| (k.as_str(), *t, *v)).collect();
                let late = add(&mut state, &named, clock);
                let model_late: Vec<u32> =
                    (0..).zip(&rows).filter(|(_, r)| model.add(r.0, r.1, r.2, clock)).map(|(i, _)| i).collect();
                prop_assert_eq!(late, model_late);
                clock = clock.max(0) + advance;
                let mut fired = Vec::new();
                loop {
                    let slice = state.take_due(clock, 2, false).expect("in memory");
                    if slice.windows.is_empty() {
                        break;
                    }
                    fired.extend(shown(&slice));
                }
                fired.sort();
                prop_assert_eq!(fired, model.due(clock));
                prop_assert_eq!(state.session_count(), model.0.values().map(Vec::len).sum::<usize>());
            }
        }
    }
}

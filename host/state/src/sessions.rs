//! Sessions in memory: which there are, how rows join them, when they end.
//!
//! Each key has its sessions in order; they are disjoint and do not touch. A session has a slot of its own, by which
//! its accumulator or rows are kept. A call changes the order and the windows at once and notes what was there before;
//! what is stored changes only when the call ends well.
//!
//! With an [`Overflow`] keys that have had no rows for the longest time are evicted with all their sessions ([`spill`]).

mod image;
mod snapshot;
mod spill;

use millstream_types::{Column, EncodedKeys, MIN_WATERMARK, Window};
use smallvec::SmallVec;

pub(crate) use self::image::StoredSlice;
use self::spill::Spill;
use crate::{
    Cursor, Grouping, KeyTable, Overflow, StateError, row_codec::RowCodec, slot_store::SessionStore,
    timer_wheel::TimerWheel,
};

/// Sessions with what is kept for them.
pub(crate) struct Sessions<S> {
    pub(crate) columns: Vec<Column>,
    codec: RowCodec,
    lateness: i64,
    keys: KeyTable,
    /// The sessions of each key, by its slot.
    of_key: Vec<Order>,
    sessions: Vec<Session>,
    free: Vec<u32>,
    pub(crate) store: S,
    wheel: TimerWheel,
    key_grouping: Grouping,
    pub(crate) grouping: Grouping,
    /// Sessions that others have taken up in the current call, with the group that has them now.
    pub(crate) absorbed: Vec<(u32, u32)>,
    /// The clock of the current call.
    clock: i64,
    undo: Undo,
    /// What is not in memory, where there may be any.
    spill: Option<Spill>,
}

/// The slots of a key's sessions in order of time.
type Order = SmallVec<[u32; 2]>;

#[derive(Clone, Debug)]
struct Session {
    window: Window,
    /// The slot of its key.
    key: u32,
    /// The session that has taken it up in the current call.
    absorbed_by: Option<u32>,
    /// Its group in the current call.
    group: u32,
    /// The time for which the wheel has an entry that counts; an earlier one than is needed is put off when it comes.
    scheduled: Option<i64>,
    /// The last time with which it has been handed out as over, or came into being as such.
    over: Option<i64>,
    occupied: bool,
}

impl Session {
    fn new(key: u32, window: Window) -> Self {
        let (absorbed_by, scheduled, over) = (None, None, None);
        Self { window, key, absorbed_by, group: Grouping::NONE, scheduled, over, occupied: true }
    }

    /// When something happens to it next: it is over, or, if it has been that, forgotten.
    fn next_time(&self, lateness: i64) -> i64 {
        let last = self.window.max_time();
        if self.over == Some(last) { last.saturating_add(lateness) } else { last }
    }
}

/// What a call has changed.
#[derive(Default)]
struct Undo {
    /// By key slot, as it was.
    orders: Vec<(u32, Order)>,
    windows: Vec<(u32, Window)>,
    opened: Vec<u32>,
    /// Whether the order of a key of the call has been noted, by its group.
    noted: Vec<bool>,
}

impl<S: SessionStore> Sessions<S> {
    pub(crate) fn new(columns: &[Column], lateness: i64, overflow: Option<Overflow>) -> Self {
        Self {
            columns: columns.to_vec(),
            codec: RowCodec::new(columns),
            lateness,
            keys: KeyTable::new(),
            of_key: Vec::new(),
            sessions: Vec::new(),
            free: Vec::new(),
            store: S::new(columns),
            wheel: TimerWheel::new(),
            key_grouping: Grouping::default(),
            grouping: Grouping::default(),
            absorbed: Vec::new(),
            clock: MIN_WATERMARK,
            undo: Undo::default(),
            spill: overflow.map(Spill::new),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.in_memory() + self.spill.as_ref().map_or(0, Spill::sessions)
    }

    fn in_memory(&self) -> usize {
        self.sessions.len() - self.free.len()
    }

    pub(crate) fn next_time(&self) -> Option<i64> {
        let stored = self.spill.as_ref().and_then(Spill::next_time);
        self.wheel.next_time().into_iter().chain(stored).min()
    }

    /// Puts rows into sessions; returns those whose session is forgotten at `clock`.
    pub(crate) fn assign(
        &mut self,
        keys: &EncodedKeys,
        times: &[i64],
        gap: i64,
        clock: i64,
    ) -> Result<Vec<u32>, StateError> {
        self.make_room()?;
        self.key_grouping.start(keys.len());
        self.keys.resolve(keys, &mut self.key_grouping);
        self.of_key.resize(self.keys.slots(), Order::new());
        if self.spill.is_some() {
            self.enter(self.key_grouping.created_slots())?;
        }
        self.grouping.start(keys.len());
        self.absorbed.clear();
        self.clock = clock;
        self.undo = Undo { noted: vec![false; self.key_grouping.groups()], ..Undo::default() };
        let mut late = Vec::new();
        let mut joined = Vec::with_capacity(times.len());
        for (row, &time) in times.iter().enumerate() {
            let session = self.join(row, Window::new(time, time.saturating_add(gap)));
            if session.is_none() {
                late.push(row as u32);
            }
            joined.push(session);
        }
        self.number_groups(&joined);
        self.remove_keys_without_sessions();
        Ok(late)
    }

    /// The session of a row that opens `window`, or none if that is forgotten.
    fn join(&mut self, row: usize, window: Window) -> Option<u32> {
        let key_group = self.key_grouping.group_of_row[row] as usize;
        let key = self.key_grouping.slot_of_group[key_group];
        let order = &self.of_key[key as usize];
        let first = order.partition_point(|&s| self.sessions[s as usize].window.end < window.start);
        let touching: Order = order[first..]
            .iter()
            .copied()
            .take_while(|&s| self.sessions[s as usize].window.touches(&window))
            .collect();
        let cover = touching.iter().fold(window, |w, &s| w.cover(&self.sessions[s as usize].window));
        if cover.max_time().saturating_add(self.lateness) <= self.clock {
            return None;
        }
        if let [only] = touching[..]
            && self.sessions[only as usize].window == cover
        {
            return Some(only);
        }
        self.note_order(key_group, key);
        let kept = touching.iter().copied().find(|&s| self.store.is_present(s)).or(touching.first().copied());
        let kept = kept.unwrap_or_else(|| self.open(key, window));
        self.undo.windows.push((kept, self.sessions[kept as usize].window));
        self.sessions[kept as usize].window = cover;
        for &other in touching.iter().filter(|&&s| s != kept) {
            self.sessions[other as usize].absorbed_by = Some(kept);
            self.absorbed.push((other, kept));
        }
        let order = &mut self.of_key[key as usize];
        order.drain(first..first + touching.len());
        order.insert(first, kept);
        Some(kept)
    }

    fn open(&mut self, key: u32, window: Window) -> u32 {
        let session = Session::new(key, window);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.sessions[slot as usize] = session;
                slot
            }
            None => {
                self.sessions.push(session);
                self.sessions.len() as u32 - 1
            }
        };
        self.store.grow(self.sessions.len());
        self.undo.opened.push(slot);
        slot
    }

    fn note_order(&mut self, key_group: usize, key: u32) {
        if !std::mem::replace(&mut self.undo.noted[key_group], true) {
            self.undo.orders.push((key, self.of_key[key as usize].clone()));
        }
    }

    /// Numbers the sessions that rows have joined, now that it is known which has taken up which.
    fn number_groups(&mut self, joined: &[Option<u32>]) {
        for (row, session) in joined.iter().enumerate() {
            let Some(slot) = session.map(|s| self.kept_by(s)) else { continue };
            let group = self.sessions[slot as usize].group;
            let known = self.grouping.slot_of_group.get(group as usize) == Some(&slot);
            let group = if known { group } else { self.new_group(slot, row) };
            self.grouping.group_of_row[row] = group;
        }
        let mut absorbed = std::mem::take(&mut self.absorbed);
        for (_, by) in &mut absorbed {
            *by = self.sessions[self.kept_by(*by) as usize].group;
        }
        self.absorbed = absorbed;
    }

    fn new_group(&mut self, slot: u32, row: usize) -> u32 {
        let group = self.grouping.groups() as u32;
        self.sessions[slot as usize].group = group;
        self.grouping.slot_of_group.push(slot);
        self.grouping.first_row_of_group.push(row as u32);
        if !self.store.is_present(slot) {
            self.grouping.created.push(group);
        }
        group
    }

    /// The session that a session is part of now.
    fn kept_by(&self, mut slot: u32) -> u32 {
        while let Some(by) = self.sessions[slot as usize].absorbed_by {
            slot = by;
        }
        slot
    }

    pub(crate) fn windows(&self) -> Vec<Window> {
        self.grouping.slot_of_group.iter().map(|&s| self.sessions[s as usize].window).collect()
    }

    /// Ends a call that went well: forgets sessions that others have taken up and those of `unused` groups, and sees to
    /// it that the others end.
    pub(crate) fn commit(&mut self, unused: &[u32]) {
        for (slot, _) in std::mem::take(&mut self.absorbed) {
            self.store.remove(slot);
            self.release(slot);
        }
        self.undo = Undo::default();
        for group in 0..self.grouping.groups() as u32 {
            let slot = self.grouping.slot_of_group[group as usize];
            if unused.binary_search(&group).is_ok() {
                self.forget(slot);
            } else {
                self.schedule(slot);
            }
        }
        self.grouping.created.clear();
    }

    /// Sees to it that a session is met in the wheel when it is over, or forgotten if it already is over.
    fn schedule(&mut self, slot: u32) {
        let session = &mut self.sessions[slot as usize];
        let last = session.window.max_time();
        if last <= self.clock {
            session.over = Some(last);
        }
        let time = session.next_time(self.lateness);
        if session.scheduled.is_none_or(|scheduled| scheduled > time) {
            session.scheduled = Some(time);
            self.wheel.insert(time, slot);
        }
    }

    /// Ends a call and takes back what it changed.
    pub(crate) fn rollback(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        for (slot, _) in std::mem::take(&mut self.absorbed) {
            self.sessions[slot as usize].absorbed_by = None;
        }
        undo.windows.iter().rev().for_each(|&(slot, window)| self.sessions[slot as usize].window = window);
        for (key, order) in undo.orders {
            self.of_key[key as usize] = order;
        }
        undo.opened.into_iter().for_each(|slot| self.release(slot));
        self.remove_keys_without_sessions();
        self.grouping.start(0);
    }

    fn remove_keys_without_sessions(&mut self) {
        for &key in &self.key_grouping.slot_of_group {
            if self.of_key[key as usize].is_empty() && self.keys.is_occupied(key) {
                self.keys.remove(key);
            }
        }
    }

    /// Sessions that are over at `now` and have not been handed out as such, until `full` says that they are enough.
    /// Those that are to be forgotten are. The ones handed out stay until [`Sessions::leave`].
    pub(crate) fn take_due(
        &mut self,
        now: i64,
        mut full: impl FnMut(&S, u32) -> bool,
    ) -> Result<Vec<u32>, StateError> {
        self.make_room()?;
        loop {
            let read = self.read_due(now)?;
            let due = self.take_due_in_memory(read.until, &mut full);
            // What has been read may only have been forgotten.
            if !due.is_empty() || !read.more {
                return Ok(due);
            }
        }
    }

    fn take_due_in_memory(&mut self, now: i64, full: &mut impl FnMut(&S, u32) -> bool) -> Vec<u32> {
        let mut due = Vec::new();
        while let Some(entry) = self.wheel.pop_due(now) {
            let session = &mut self.sessions[entry.slot as usize];
            if !session.occupied || session.scheduled != Some(entry.time) {
                continue;
            }
            session.scheduled = None;
            let last = session.window.max_time();
            if session.next_time(self.lateness) > entry.time {
                self.schedule(entry.slot);
            } else if session.over == Some(last) {
                self.forget(entry.slot);
            } else if self.store.is_present(entry.slot) {
                due.push(entry.slot);
                if full(&self.store, entry.slot) {
                    break;
                }
            } else {
                self.leave(entry.slot, false);
            }
        }
        due
    }

    /// Lets go of a session that is over and has been handed out.
    pub(crate) fn leave(&mut self, slot: u32, purge: bool) {
        if self.lateness == 0 {
            return self.forget(slot);
        }
        if purge {
            self.store.remove(slot);
        }
        let session = &mut self.sessions[slot as usize];
        session.over = Some(session.window.max_time());
        self.schedule(slot);
    }

    /// Forgets a session with what is stored for it.
    fn forget(&mut self, slot: u32) {
        let key = self.sessions[slot as usize].key;
        self.store.remove(slot);
        self.release(slot);
        self.of_key[key as usize].retain(|s| *s != slot);
        if self.of_key[key as usize].is_empty() && self.keys.is_occupied(key) {
            self.keys.remove(key);
        }
    }

    fn release(&mut self, slot: u32) {
        self.sessions[slot as usize].occupied = false;
        self.free.push(slot);
    }

    /// Sessions with something stored from `cursor` on, until `full` says that they are enough, and where to go on.
    pub(crate) fn scan(
        &self,
        from: u32,
        mut full: impl FnMut(&S, u32) -> bool,
    ) -> (Vec<u32>, Option<Cursor>) {
        let end = self.sessions.len() as u32;
        let mut stored =
            (from..end).filter(|&s| self.sessions[s as usize].occupied && self.store.is_present(s));
        let mut found = Vec::new();
        while let Some(slot) = stored.next() {
            found.push(slot);
            if full(&self.store, slot) {
                return (found, stored.next().map(Cursor::slot).or_else(|| self.first_stored()));
            }
        }
        (found, self.first_stored())
    }

    /// The keys and windows of sessions.
    pub(crate) fn describe(&self, slots: &[u32]) -> (EncodedKeys, Vec<Window>) {
        let mut keys = EncodedKeys::new();
        let sessions = || slots.iter().map(|&slot| &self.sessions[slot as usize]);
        sessions().for_each(|s| keys.push(self.keys.key(s.key), self.keys.table_hash(s.key)));
        (keys, sessions().map(|s| s.window).collect())
    }
}

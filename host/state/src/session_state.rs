//! State of sessions: windows that every key has for itself.
//!
//! A row opens the session `[time, time + gap)` of its key; sessions that overlap or touch become one. So a call may
//! join sessions that have been kept before, whose accumulators the function has to merge.
//!
//! A call goes like this: `assign`, then for accumulators `next_merge` and `finish_merge` until there is none,
//! `read` and `write`, and for contents `append`; or `rollback` to leave everything as it was. Groups are sessions.
//!
//! A session is over when the clock reaches its last time and is forgotten when it reaches that plus the lateness.

use millstream_types::{
    Cells, Columns, EncodedKeys, MaxParallelism, Runs, SnapshotRequest, StatePart, Window,
};

use crate::{Cursor, Grouping, MergeStep, StateError, StateName};

/// What sessions of every kind of state can do.
pub trait SessionState: Send {
    /// Puts rows into sessions of their keys: row i at `times[i]`. Returns the rows that belong to none, ascending,
    /// because the session that they would be in is forgotten at `clock`. Groups whose session is over at `clock`, as
    /// rows within the lateness find it, are never due: it is up to the caller to fire them.
    fn assign(
        &mut self,
        keys: &EncodedKeys,
        times: &[i64],
        gap: i64,
        clock: i64,
    ) -> Result<Vec<u32>, StateError>;

    /// The sessions of the call: `created` are those for which nothing is stored, `slot_of_group` are positions of
    /// sessions.
    fn grouping(&self) -> &Grouping;

    /// The window of each group, as it is with the rows of the call.
    fn windows(&self) -> Vec<Window>;

    /// Ends the call and forgets what is new in it.
    fn rollback(&mut self);

    /// A time before which no session is over or forgotten, if there is one.
    fn next_time(&self) -> Option<i64>;

    /// How many sessions there are.
    fn session_count(&self) -> usize;

    /// Drops what is stored for groups of the last call; the sessions stay.
    fn purge_groups(&mut self, groups: &[u32]);

    /// All sessions as parts of a snapshot, keys by their group of `max`: what is in memory, and an image of the store if
    /// there is anything in it. Not during a call.
    fn snapshot(
        &mut self,
        name: StateName<'_>,
        max: MaxParallelism,
        request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError>;

    /// Adds what a part of a snapshot has. Not during a call. An image comes before anything else.
    fn restore(&mut self, part: &StatePart) -> Result<(), StateError>;
}

/// An accumulator for each session.
pub trait SessionAccumulators: SessionState {
    /// Accumulators of sessions that have become one, if any are left; to be merged before anything else.
    fn next_merge(&mut self) -> Result<Option<MergeStep>, StateError>;

    /// Sets what the function made of the last step.
    fn finish_merge(&mut self, merged: &Columns) -> Result<(), StateError>;

    /// The accumulators of the call's sessions, merged; absent for new ones.
    fn read(&self) -> Result<Cells, StateError>;

    /// Sets the accumulators of all sessions of the call but for the `skipped` ones (ascending), which keep theirs; new
    /// ones among these are forgotten. Ends the call, but the groups stay known until the next one.
    fn write(&mut self, accumulators: &Columns, skipped: &[u32]) -> Result<(), StateError>;

    /// Up to `limit` sessions that are over at `now`, in order of their end, and only once. They are forgotten at once
    /// where there is no lateness, and `purge` drops their accumulators. None means that none is left.
    fn take_due(&mut self, now: i64, limit: usize, purge: bool) -> Result<SessionSlice<Columns>, StateError>;

    /// Up to `limit` sessions with an accumulator from `cursor` on, whether over or not.
    fn scan(&mut self, cursor: Cursor, limit: usize) -> Result<SessionSlice<Columns>, StateError>;
}

/// All rows of each session.
pub trait SessionContents: SessionState {
    /// Appends the rows of the call, those that were assigned, to their sessions. Ends the call, but the groups stay
    /// known until the next one.
    fn append(&mut self, rows: &Columns) -> Result<(), StateError>;

    /// How many rows each group of the call has by now, appended ones included.
    fn rows_of_groups(&self) -> Vec<u32>;

    /// The rows of some groups of the call, appended ones included: run i belongs to `groups[i]`.
    fn read_groups(&self, groups: &[u32]) -> Result<SessionSlice<Runs>, StateError>;

    /// As [`SessionAccumulators::take_due`]; no further sessions once there are `limit` rows.
    fn take_due(&mut self, now: i64, limit: usize, purge: bool) -> Result<SessionSlice<Runs>, StateError>;

    /// As [`SessionAccumulators::scan`]; no further sessions once there are `limit` rows.
    fn scan(&mut self, cursor: Cursor, limit: usize) -> Result<SessionSlice<Runs>, StateError>;
}

/// Some sessions with what is kept for them: row or run i belongs to session i.
#[derive(Clone, Debug)]
pub struct SessionSlice<V> {
    /// The keys. Their hashes are good for state tables only: the lower half is not the key's.
    pub keys: EncodedKeys,
    /// The windows.
    pub windows: Vec<Window>,
    /// The accumulators or rows.
    pub values: V,
    /// Where a scan goes on, if it does.
    pub next: Option<Cursor>,
}

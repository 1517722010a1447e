//! State of windows: accumulators and contents, window first.
//!
//! A window is a namespace of its own with a key table of its own. The rows of a batch that fall into one window are
//! resolved by one probe each, a fired window is a scan in slot order, and clearing it drops the table: no key is
//! looked up when a window ends. Windows of all keys (tumbling, sliding, global) live here; sessions, which every
//! key has for itself, live in [`crate::SessionState`].
//!
//! A call goes like this: `begin`, one `resolve` for each window that rows fall into, `read` and `write` (or `append`),
//! or `rollback` to leave everything as it was. Groups are numbered over all windows of the call, so that one call of
//! the function takes a whole batch.

use millstream_types::{
    Cells, Columns, EncodedKeys, MaxParallelism, Runs, SnapshotRequest, StatePart, Window,
};

use crate::{Grouping, StateError};

/// What windows of every kind of state can do.
pub trait WindowState: Send {
    /// Starts a call over a batch of `rows` rows. What has no room in memory is evicted now, if it may be.
    fn begin(&mut self, rows: usize) -> Result<(), StateError>;

    /// Finds or makes the groups of rows that fall into `window`: all rows of `keys`, or those named. A row belongs to
    /// one window a call.
    fn resolve(&mut self, window: Window, keys: &EncodedKeys, rows: Option<&[u32]>)
    -> Result<(), StateError>;

    /// The groups of the call so far.
    fn grouping(&self) -> &Grouping;

    /// The windows of the call with their groups: window, first group, number of groups.
    fn call_windows(&self) -> &[CallWindow];

    /// Ends the call and forgets what is new in it.
    fn rollback(&mut self);

    /// The first window at or behind `(end, start)` of `from`, in order of end, then start; all of them from `None`.
    fn next_window(&self, from: Option<Window>) -> Option<Window>;

    /// About how many keys a window has; none if there is no such window.
    fn keys_of(&self, window: Window) -> usize;

    /// Drops a window with all that it has.
    fn clear(&mut self, window: Window) -> Result<(), StateError>;

    /// Drops groups of the current call, whose writes have been made.
    fn remove_groups(&mut self, groups: &[u32]) -> Result<(), StateError>;

    /// All windows as parts of a snapshot, keys by their group of `max`: what is in memory, and an image of the store if
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

/// An accumulator for each key of each window.
pub trait WindowAccumulators: WindowState {
    /// The accumulators of the call's groups; absent for new ones.
    fn read(&self) -> Result<Cells, StateError>;

    /// Sets the accumulators of all groups of the call, but for the `skipped` ones (ascending), which stay as they are;
    /// new ones among these are forgotten. Ends the call, but the groups stay known until the next `begin`.
    fn write(&mut self, accumulators: &Columns, skipped: &[u32]) -> Result<(), StateError>;

    /// Up to `limit` keys of a window with their accumulators, from `cursor` on, which starts at 0.
    /// No call may begin between two steps of a scan.
    fn scan(&mut self, window: Window, cursor: Cursor, limit: usize) -> Result<AccumulatorSlice, StateError>;

    /// Brings up to `limit` keys of `from`, from `cursor` on, into `into`. Keys that `into` does not have are copied at
    /// once; for those that it has, the step holds both accumulators, and what the function makes of them is to be
    /// handed to [`WindowAccumulators::finish_merge`] before anything else. `from` stays as it is.
    fn merge(
        &mut self,
        into: Window,
        from: Window,
        cursor: Cursor,
        limit: usize,
    ) -> Result<MergeStep, StateError>;

    /// Sets the accumulators of the last merge step's keys.
    fn finish_merge(&mut self, merged: &Columns) -> Result<(), StateError>;
}

/// All rows for each key of each window.
pub trait WindowContents: WindowState {
    /// Appends each row of the batch to its group; rows without a group are left out. Ends the call.
    fn append(&mut self, rows: &Columns) -> Result<(), StateError>;

    /// How many rows some groups of the call have by now, appended ones included.
    fn rows_of_groups(&mut self, groups: &[u32]) -> Result<Vec<u32>, StateError>;

    /// The rows of some groups of the call, appended ones included: key and run i belong to `groups[i]`.
    fn read_groups(&mut self, groups: &[u32]) -> Result<ContentSlice, StateError>;

    /// Keys of a window with their rows in order of arrival, from `cursor` on: at least one key, and no further ones
    /// once there are `limit` rows. No call may begin between two steps of a scan.
    fn scan(&mut self, window: Window, cursor: Cursor, limit: usize) -> Result<ContentSlice, StateError>;
}

/// The groups that a call has in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallWindow {
    /// The window.
    pub window: Window,
    /// Its first group.
    pub first_group: u32,
    /// How many groups it has.
    pub groups: u32,
}

/// A position in a window or among sessions: where a scan goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor(pub(crate) Place);

/// What is in memory comes before what is in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Slot(u32),
    /// The key of a row.
    Stored(Vec<u8>),
}

impl Default for Place {
    fn default() -> Self {
        Self::Slot(0)
    }
}

impl Cursor {
    pub(crate) fn slot(slot: u32) -> Self {
        Self(Place::Slot(slot))
    }

    pub(crate) fn stored(row_key: Vec<u8>) -> Self {
        Self(Place::Stored(row_key))
    }
}

/// Under which name windows or sessions are in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateName<'a> {
    /// The name.
    pub name: &'a str,
    /// The version of the columns.
    pub version: u32,
}

/// Some keys of a window with their accumulators, one row a key.
#[derive(Clone, Debug)]
pub struct AccumulatorSlice {
    /// The keys. Their hashes are good for state tables only: the lower half is not the key's.
    pub keys: EncodedKeys,
    /// The accumulators.
    pub accumulators: Columns,
    /// Where the next slice starts, if there is one.
    pub next: Option<Cursor>,
}

/// Some keys of a window with their rows: run i belongs to key i.
#[derive(Clone, Debug)]
pub struct ContentSlice {
    /// The keys. Their hashes are good for state tables only: the lower half is not the key's.
    pub keys: EncodedKeys,
    /// The rows.
    pub rows: Runs,
    /// Where the next slice starts, if there is one.
    pub next: Option<Cursor>,
}

/// Accumulators to merge, pairwise.
#[derive(Clone, Debug)]
pub struct MergeStep {
    /// What the function merges into.
    pub into: Columns,
    /// What it merges.
    pub other: Columns,
    /// Where the next step starts, if there is one.
    pub next: Option<Cursor>,
}

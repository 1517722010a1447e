//! Contents of windows in memory, and what has no room there in a store.

use millstream_types::{
    Column, Columns, EncodedKeys, MaxParallelism, SnapshotRequest, StateForm, StatePart, Window,
};

use crate::{
    CallWindow, ContentSlice, Cursor, Grouping, Overflow, StateError, StateName, WindowContents, WindowState,
    list_store::ListStore, namespaces::Namespaces, shape,
};

/// Contents of windows: a list of rows for each key of each window. What has been evicted of a key stays where it is until
/// it is read: rows that come later are a list of their own.
pub struct MemoryContents {
    windows: Namespaces<ListStore>,
}

impl MemoryContents {
    /// No window yet; rows of these columns.
    pub fn new(columns: &[Column]) -> Self {
        Self::with_overflow(columns, None)
    }

    /// The same with a place for what has no room in memory.
    pub fn with_overflow(columns: &[Column], overflow: Option<Overflow>) -> Self {
        Self { windows: Namespaces::new(columns, overflow) }
    }
}

impl WindowState for MemoryContents {
    fn begin(&mut self, rows: usize) -> Result<(), StateError> {
        self.windows.begin(rows)
    }

    fn resolve(
        &mut self,
        window: Window,
        keys: &EncodedKeys,
        rows: Option<&[u32]>,
    ) -> Result<(), StateError> {
        self.windows.resolve(window, keys, rows)
    }

    fn grouping(&self) -> &Grouping {
        &self.windows.grouping
    }

    fn call_windows(&self) -> &[CallWindow] {
        &self.windows.call
    }

    fn rollback(&mut self) {
        self.windows.rollback();
    }

    fn next_window(&self, from: Option<Window>) -> Option<Window> {
        self.windows.next_window(from)
    }

    fn keys_of(&self, window: Window) -> usize {
        self.windows.keys_of(window)
    }

    fn clear(&mut self, window: Window) -> Result<(), StateError> {
        self.windows.clear(window)
    }

    fn remove_groups(&mut self, groups: &[u32]) -> Result<(), StateError> {
        self.windows.remove_pieces(groups)?;
        self.windows.remove_groups(groups);
        Ok(())
    }

    fn snapshot(
        &mut self,
        name: StateName<'_>,
        max: MaxParallelism,
        _request: &SnapshotRequest,
    ) -> Result<Vec<StatePart>, StateError> {
        self.windows.snapshot(name, StateForm::Contents, max)
    }

    fn restore(&mut self, part: &StatePart) -> Result<(), StateError> {
        self.windows.restore_part(part, StateForm::Contents)
    }
}

impl WindowContents for MemoryContents {
    fn append(&mut self, rows: &Columns) -> Result<(), StateError> {
        let group_of_row = std::mem::take(&mut self.windows.grouping.group_of_row);
        shape::check(NAME, &self.windows.columns, rows, group_of_row.len())?;
        self.windows.for_each_part(|namespace, groups, slots| {
            let rows_of_part =
                group_of_row.iter().enumerate().filter(|&(_, &g)| groups.contains(&(g as usize)));
            namespace
                .store
                .append(rows_of_part.map(|(row, &g)| (slots[g as usize - groups.start], row)), rows);
        });
        self.windows.grouping.group_of_row = group_of_row;
        self.windows.grouping.created.clear();
        Ok(())
    }

    fn rows_of_groups(&mut self, groups: &[u32]) -> Result<Vec<u32>, StateError> {
        self.windows.rows_of_groups(groups)
    }

    fn read_groups(&mut self, groups: &[u32]) -> Result<ContentSlice, StateError> {
        self.windows.read_groups(groups)
    }

    fn scan(&mut self, window: Window, cursor: Cursor, limit: usize) -> Result<ContentSlice, StateError> {
        self.windows.scan(window, cursor, limit)
    }
}

/// How messages name contents.
const NAME: &str = "window contents";

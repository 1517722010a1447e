//! Contents of windows in memory.

use millstream_types::{
    Column, Columns, EncodedKeys, MaxParallelism, SnapshotRequest, StateForm, StatePart, Window,
};

use crate::{
    CallWindow, ContentSlice, Cursor, Grouping, StateError, WindowContents, WindowState,
    list_store::ListStore, namespaces::Namespaces, shape, snapshot,
};

/// Contents of windows in memory: a list of rows for each key of each window.
pub struct MemoryContents {
    columns: Vec<Column>,
    windows: Namespaces<ListStore>,
}

impl MemoryContents {
    /// No window yet; rows of these columns.
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), windows: Namespaces::new(columns) }
    }
}

impl WindowState for MemoryContents {
    fn begin(&mut self, rows: usize) {
        self.windows.begin(rows);
    }

    fn resolve(
        &mut self,
        window: Window,
        keys: &EncodedKeys,
        rows: Option<&[u32]>,
    ) -> Result<(), StateError> {
        self.windows.resolve(window, keys, rows);
        Ok(())
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
        self.windows.get(window).map_or(0, |n| n.keys.len())
    }

    fn clear(&mut self, window: Window) -> Result<(), StateError> {
        self.windows.clear(window);
        Ok(())
    }

    fn remove_groups(&mut self, groups: &[u32]) -> Result<(), StateError> {
        self.windows.remove_groups(groups);
        Ok(())
    }

    fn snapshot(
        &mut self,
        name: &str,
        max: MaxParallelism,
        _request: &SnapshotRequest,
    ) -> Result<StatePart, StateError> {
        Ok(snapshot::part(name, StateForm::Contents, &self.columns, self.windows.chunks(max)))
    }

    fn restore(&mut self, part: &StatePart) -> Result<(), StateError> {
        snapshot::check(part, &self.columns)?;
        part.chunks.iter().try_for_each(|chunk| self.windows.restore(&chunk.bytes))
    }
}

impl WindowContents for MemoryContents {
    fn append(&mut self, rows: &Columns) -> Result<(), StateError> {
        let group_of_row = std::mem::take(&mut self.windows.grouping.group_of_row);
        shape::check(NAME, &self.columns, rows, group_of_row.len())?;
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

    fn rows_of_groups(&self) -> Vec<u32> {
        let slots = &self.windows.grouping.slot_of_group;
        let rows = self.windows.parts().flat_map(|(namespace, groups)| {
            slots[groups].iter().map(|&slot| namespace.store.rows(slot) as u32)
        });
        rows.collect()
    }

    fn read_groups(&self, groups: &[u32]) -> Result<ContentSlice, StateError> {
        let (mut keys, mut offsets, mut parts) = (EncodedKeys::new(), vec![0], Vec::new());
        for &group in groups {
            let found = self.windows.parts().find(|(_, range)| range.contains(&(group as usize)));
            let slot = self.windows.grouping.slot_of_group[group as usize];
            if let Some((namespace, _)) = found {
                keys.push(namespace.keys.key(slot), namespace.keys.table_hash(slot));
                let run = namespace.store.read([slot].into_iter())?;
                offsets.push(offsets.last().copied().unwrap_or(0) + run.items.rows as u32);
                parts.push(run.items);
            }
        }
        let items = crate::join::columns(&parts).unwrap_or_else(|| self.no_rows());
        Ok(ContentSlice { keys, rows: millstream_types::Runs { offsets, items }, next: None })
    }

    fn scan(&self, window: Window, cursor: Cursor, limit: usize) -> Result<ContentSlice, StateError> {
        let Some(namespace) = self.windows.get(window) else {
            let rows = millstream_types::Runs { offsets: vec![0], items: self.no_rows() };
            return Ok(ContentSlice { keys: EncodedKeys::new(), rows, next: None });
        };
        let (mut slots, mut rows) = (Vec::new(), 0);
        let mut occupied =
            (cursor.0..namespace.keys.slots() as u32).filter(|&s| namespace.keys.is_occupied(s)).peekable();
        while let Some(slot) = occupied.next_if(|_| rows < limit) {
            rows += namespace.store.rows(slot);
            slots.push(slot);
        }
        let next = occupied.next().map(Cursor);
        let rows = namespace.store.read(slots.iter().copied())?;
        Ok(ContentSlice { keys: namespace.keys_at(&slots), rows, next })
    }
}

impl MemoryContents {
    fn no_rows(&self) -> Columns {
        crate::row_codec::RowCodec::new(&self.columns).reader(0).finish()
    }
}

/// How messages name contents.
const NAME: &str = "window contents";

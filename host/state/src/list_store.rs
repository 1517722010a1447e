//! Lists of rows by slot.

use millstream_types::{Column, Columns, Runs};

use crate::{
    StateError,
    row_codec::RowCodec,
    slot_store::{SessionStore, SlotStore, WindowStore},
};

/// A list of encoded rows a slot.
#[derive(Clone, Debug)]
pub(crate) struct ListStore {
    codec: RowCodec,
    lists: Vec<List>,
    /// What all lists have room for.
    bytes: usize,
}

/// Encoded rows, one behind the other.
#[derive(Clone, Debug, Default)]
struct List {
    rows: u32,
    bytes: Vec<u8>,
}

impl ListStore {
    /// How many rows a slot has.
    pub(crate) fn rows(&self, slot: u32) -> usize {
        self.lists[slot as usize].rows as usize
    }

    /// The encoded rows of a slot, one behind the other.
    pub(crate) fn encoded(&self, slot: u32) -> &[u8] {
        &self.lists[slot as usize].bytes
    }

    /// What a slot takes without its rows.
    pub(crate) const BYTES_PER_SLOT: usize = size_of::<List>();

    /// The bytes that rows take.
    pub(crate) fn bytes_elsewhere(&self) -> usize {
        self.bytes
    }

    /// Gives a slot encoded rows in the place of those that it has.
    pub(crate) fn put_encoded(&mut self, slot: u32, rows: u32, bytes: Vec<u8>) {
        self.bytes += bytes.capacity();
        let before = std::mem::replace(&mut self.lists[slot as usize], List { rows, bytes });
        self.bytes -= before.bytes.capacity();
    }

    /// Appends row `rows[i]` to the list of slot `slots[i]`, in order.
    pub(crate) fn append(&mut self, slots: impl Iterator<Item = (u32, usize)>, columns: &Columns) {
        let writer = self.codec.writer(columns);
        for (slot, row) in slots {
            let list = &mut self.lists[slot as usize];
            let before = list.bytes.capacity();
            writer.write(row, &mut list.bytes);
            list.rows += 1;
            self.bytes += list.bytes.capacity() - before;
        }
    }

    /// The lists of some slots.
    pub(crate) fn read(&self, slots: impl ExactSizeIterator<Item = u32>) -> Result<Runs, StateError> {
        let mut offsets = Vec::with_capacity(slots.len() + 1);
        offsets.push(0);
        let mut reader = self.codec.reader(slots.len());
        for slot in slots {
            let list = &self.lists[slot as usize];
            reader.read_all(&list.bytes, list.rows as usize)?;
            offsets.push(reader.rows() as u32);
        }
        Ok(Runs { offsets, items: reader.finish() })
    }

    /// Lists that have been read, as runs.
    pub(crate) fn decode(&self, lists: &[(u32, Vec<u8>)]) -> Result<Runs, StateError> {
        let mut offsets = vec![0];
        let mut reader = self.codec.reader(lists.len());
        for (rows, bytes) in lists {
            reader.read_all(bytes, *rows as usize)?;
            offsets.push(reader.rows() as u32);
        }
        Ok(Runs { offsets, items: reader.finish() })
    }

    /// Appends the rows of one slot to another's and empties it.
    pub(crate) fn move_rows(&mut self, from: u32, into: u32) {
        let moved = std::mem::take(&mut self.lists[from as usize]);
        let list = &mut self.lists[into as usize];
        self.bytes -= moved.bytes.capacity() + list.bytes.capacity();
        list.bytes.extend_from_slice(&moved.bytes);
        list.rows += moved.rows;
        self.bytes += list.bytes.capacity();
    }
}

impl SlotStore for ListStore {
    fn new(columns: &[Column]) -> Self {
        Self { codec: RowCodec::new(columns), lists: Vec::new(), bytes: 0 }
    }

    fn grow(&mut self, slots: usize) {
        if slots > self.lists.len() {
            self.lists.resize_with(slots, List::default);
        }
    }

    fn remove(&mut self, slot: u32) {
        self.bytes -= std::mem::take(&mut self.lists[slot as usize]).bytes.capacity();
    }
}

impl WindowStore for ListStore {
    const IN_PIECES: bool = true;

    fn bytes(&self) -> (usize, usize) {
        (Self::BYTES_PER_SLOT, self.bytes)
    }

    fn clear(&mut self) {
        self.lists.clear();
        self.bytes = 0;
    }

    fn copy_from(&mut self, other: &Self) {
        self.lists.clone_from(&other.lists);
        self.bytes = self.lists.iter().map(|list| list.bytes.capacity()).sum();
    }
}

impl SessionStore for ListStore {
    fn bytes(&self) -> (usize, usize) {
        (Self::BYTES_PER_SLOT, self.bytes)
    }

    fn is_present(&self, slot: u32) -> bool {
        self.rows(slot) > 0
    }
}

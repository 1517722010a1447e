//! State in memory as the chunks of a snapshot, and back. `host/snapshot/FORMAT.md` specifies the bytes.
//!
//! A chunk has what one key group has of one state: entries, each a key and what is stored for it. Slots are sorted by key
//! group first.

use millstream_types::{
    Column, Columns, EncodedKeys, KeyGroup, MaxParallelism, StateChunk, StateForm, StatePart, hash_key,
};

use crate::{
    KeyTable, StateError,
    cell_store::CellStore,
    list_store::ListStore,
    row_codec::{RowCodec, RowReader},
    row_store::RowStore,
};

/// A store by slot whose entries can be written and read.
pub(crate) trait Stored {
    /// Entries that have been read and have no slots yet.
    type Entries;

    /// Appends what each slot has to `out`, and before it what `key` appends.
    fn write(&self, slots: &[u32], codec: &RowCodec, out: &mut Vec<u8>, key: impl FnMut(u32, &mut Vec<u8>));

    /// No entry yet.
    fn entries(codec: &RowCodec) -> Self::Entries;

    /// Reads an entry off the front of `bytes`.
    fn read(entries: &mut Self::Entries, bytes: &mut &[u8]) -> Result<(), StateError>;

    /// Puts entry i at slot `slots[i]`, for which there is room.
    fn put(&mut self, slots: &[u32], entries: Self::Entries);
}

impl Stored for RowStore {
    type Entries = RowReader;

    fn write(
        &self,
        slots: &[u32],
        _codec: &RowCodec,
        out: &mut Vec<u8>,
        mut key: impl FnMut(u32, &mut Vec<u8>),
    ) {
        for slots in slots.chunks(AT_ONCE) {
            self.prefetch(slots);
            for &slot in slots {
                key(slot, out);
                self.encode(slot, out);
            }
        }
    }

    fn entries(codec: &RowCodec) -> RowReader {
        codec.reader(0)
    }

    fn read(entries: &mut RowReader, bytes: &mut &[u8]) -> Result<(), StateError> {
        entries.read(bytes)
    }

    fn put(&mut self, slots: &[u32], entries: RowReader) {
        RowStore::write(self, slots, &entries.finish());
    }
}

/// Of slots that are known to have a value.
impl Stored for CellStore {
    type Entries = RowReader;

    fn write(&self, slots: &[u32], codec: &RowCodec, out: &mut Vec<u8>, key: impl FnMut(u32, &mut Vec<u8>)) {
        Stored::write(self.rows(), slots, codec, out, key);
    }

    fn entries(codec: &RowCodec) -> RowReader {
        codec.reader(0)
    }

    fn read(entries: &mut RowReader, bytes: &mut &[u8]) -> Result<(), StateError> {
        entries.read(bytes)
    }

    fn put(&mut self, slots: &[u32], entries: RowReader) {
        self.write_values(slots, &entries.finish());
    }
}

impl Stored for ListStore {
    type Entries = Vec<(u32, Vec<u8>)>;

    fn write(
        &self,
        slots: &[u32],
        _codec: &RowCodec,
        out: &mut Vec<u8>,
        mut key: impl FnMut(u32, &mut Vec<u8>),
    ) {
        for &slot in slots {
            key(slot, out);
            put_u32(self.rows(slot) as u32, out);
            put_bytes(self.encoded(slot), out);
        }
    }

    fn entries(_codec: &RowCodec) -> Self::Entries {
        Vec::new()
    }

    fn read(entries: &mut Self::Entries, bytes: &mut &[u8]) -> Result<(), StateError> {
        let rows = take_u32(bytes)?;
        entries.push((rows, take_bytes(bytes)?.to_vec()));
        Ok(())
    }

    fn put(&mut self, slots: &[u32], entries: Self::Entries) {
        for (&slot, (rows, bytes)) in slots.iter().zip(entries) {
            self.put_encoded(slot, rows, bytes);
        }
    }
}

/// Slots by the group of their key, without groups that have none.
pub(crate) type SlotsByGroup = Vec<(KeyGroup, Vec<u32>)>;

/// The occupied slots of a table by key group.
pub(crate) fn by_group(keys: &KeyTable, max: MaxParallelism) -> SlotsByGroup {
    let mut slots: Vec<Vec<u32>> = vec![Vec::new(); usize::from(max.groups())];
    keys.occupied().for_each(|slot| slots[usize::from(max.group_of(hash_key(keys.key(slot))).0)].push(slot));
    let groups = slots.into_iter().enumerate().filter(|(_, slots)| !slots.is_empty());
    groups.map(|(group, slots)| (KeyGroup(group as u16), slots)).collect()
}

/// A chunk for each group in which a slot is `wanted`, filled by `write`.
pub(crate) fn chunks(
    groups: &SlotsByGroup,
    wanted: impl Fn(u32) -> bool,
    mut write: impl FnMut(&[u32], &mut Vec<u8>),
) -> Vec<StateChunk> {
    let mut chunks = Vec::new();
    for (group, slots) in groups {
        let slots: Vec<u32> = slots.iter().copied().filter(|&slot| wanted(slot)).collect();
        if !slots.is_empty() {
            let mut bytes = Vec::new();
            write(&slots, &mut bytes);
            chunks.push(StateChunk::whole(*group, bytes));
        }
    }
    chunks
}

/// A part with these columns in their first version.
pub(crate) fn part(name: &str, form: StateForm, columns: &[Column], chunks: Vec<StateChunk>) -> StatePart {
    StatePart {
        name: name.to_owned(),
        form,
        version: 1,
        columns: columns.to_vec(),
        base: None,
        chunks,
        files: None,
    }
}

/// Expects a part to have these columns.
pub(crate) fn check(part: &StatePart, columns: &[Column]) -> Result<(), StateError> {
    if part.columns == columns {
        return Ok(());
    }
    let text = |columns: &[Column]| {
        let column = |c: &Column| format!("{} {}{}", c.name, c.data_type, if c.nullable { "?" } else { "" });
        columns.iter().map(column).collect::<Vec<_>>().join(", ")
    };
    Err(StateError::OtherColumns {
        name: part.name.clone(),
        found: text(&part.columns),
        wanted: text(columns),
    })
}

/// Appends a key to those that are being read.
pub(crate) fn take_key(bytes: &mut &[u8], keys: &mut EncodedKeys) -> Result<(), StateError> {
    let key = take_bytes(bytes)?;
    keys.push(key, hash_key(key));
    Ok(())
}

/// Finds or makes the slots of keys.
pub(crate) fn slots_of(keys: &EncodedKeys, table: &mut KeyTable) -> Vec<u32> {
    (0..keys.len()).map(|i| table.insert(keys.key(i), keys.hash(i)).0).collect()
}

pub(crate) fn put_u32(value: u32, out: &mut Vec<u8>) {
    out.extend(value.to_le_bytes());
}

pub(crate) fn put_i64(value: i64, out: &mut Vec<u8>) {
    out.extend(value.to_le_bytes());
}

pub(crate) fn put_bytes(value: &[u8], out: &mut Vec<u8>) {
    put_u32(value.len() as u32, out);
    out.extend_from_slice(value);
}

pub(crate) fn take_u8(bytes: &mut &[u8]) -> Result<u8, StateError> {
    take::<1>(bytes).map(|[byte]| byte)
}

pub(crate) fn take_u32(bytes: &mut &[u8]) -> Result<u32, StateError> {
    take(bytes).map(u32::from_le_bytes)
}

pub(crate) fn take_u64(bytes: &mut &[u8]) -> Result<u64, StateError> {
    take(bytes).map(u64::from_le_bytes)
}

pub(crate) fn take_i64(bytes: &mut &[u8]) -> Result<i64, StateError> {
    take(bytes).map(i64::from_le_bytes)
}

pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], StateError> {
    let length = take_u32(bytes)? as usize;
    let (taken, rest) = bytes.split_at_checked(length).ok_or(StateError::DamagedChunk)?;
    *bytes = rest;
    Ok(taken)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], StateError> {
    let (taken, rest) = bytes.split_first_chunk::<N>().ok_or(StateError::DamagedChunk)?;
    *bytes = rest;
    Ok(*taken)
}

/// Rows of items as chunks, one a row, and back: how the state of a subtask is kept.
pub fn item_chunks(columns: &[Column], items: &Columns) -> Vec<StateChunk> {
    let codec = RowCodec::new(columns);
    let writer = codec.writer(items);
    let row = |row| {
        let mut bytes = Vec::new();
        writer.write(row, &mut bytes);
        StateChunk::item(bytes)
    };
    (0..items.rows).map(row).collect()
}

/// The rows of chunks that [`item_chunks`] made.
pub fn items_of(columns: &[Column], chunks: &[StateChunk]) -> Result<Columns, StateError> {
    let codec = RowCodec::new(columns);
    let mut reader = codec.reader(chunks.len());
    chunks.iter().try_for_each(|chunk| reader.read_all(&chunk.bytes, 1))?;
    Ok(reader.finish())
}

/// The names under which timers are kept.
pub const EVENT_TIMERS: &str = "event";
/// See [`EVENT_TIMERS`].
pub const PROCESSING_TIMERS: &str = "processing";
/// The name of the part with the times at which what keys have expires.
pub const EXPIRIES: &str = "expiry";

/// Slots whose memory is asked for at once: as many as stay in the cache until they are written.
const AT_ONCE: usize = 256;

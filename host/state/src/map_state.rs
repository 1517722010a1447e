//! A map a key, with what the current call has written.

use std::{
    collections::BTreeMap,
    ops::Bound::{Included, Unbounded},
};

use arrow_buffer::BooleanBufferBuilder;
use millstream_types::{Cells, Column, Entries};

use crate::{MapKeys, StateError, changes::ChangedSlots, row_codec::RowCodec};

/// Maps by slot, and writes not yet applied.
#[derive(Clone, Debug)]
pub(crate) struct MapState {
    codec: RowCodec,
    /// Rows by map key; a slot without entries has no map.
    maps: Vec<Option<Box<Rows>>>,
    /// About what all stored entries take.
    bytes: usize,
    /// By group.
    written: BTreeMap<u32, Written>,
}

type Rows = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// What a call has done to one map.
#[derive(Clone, Debug, Default)]
struct Written {
    /// Whether what is stored no longer counts.
    cleared: bool,
    /// New rows; `None` where one is removed.
    rows: BTreeMap<Box<[u8]>, Option<Box<[u8]>>>,
}

impl MapState {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { codec: RowCodec::new(columns), maps: Vec::new(), bytes: 0, written: BTreeMap::new() }
    }

    pub(crate) fn grow(&mut self, slots: usize) {
        if slots > self.maps.len() {
            self.maps.resize(slots, None);
        }
    }

    pub(crate) fn is_present(&self, slot: u32) -> bool {
        self.maps[slot as usize].is_some()
    }

    /// The stored entries of a slot in map-key order: map key and encoded row.
    pub(crate) fn stored(&self, slot: u32) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.maps[slot as usize].iter().flat_map(|map| map.iter().map(|(key, row)| (&**key, &**row)))
    }

    /// Stores an entry.
    pub(crate) fn put(&mut self, slot: u32, map_key: &[u8], row: &[u8]) {
        let map = self.maps[slot as usize].get_or_insert_default();
        self.bytes += bytes_of(map_key, row);
        if let Some(before) = map.insert(map_key.into(), row.into()) {
            self.bytes -= bytes_of(map_key, &before);
        }
    }

    /// What a slot takes without its entries.
    pub(crate) const BYTES_PER_SLOT: usize = size_of::<Option<Box<Rows>>>();

    /// About how many bytes entries take.
    pub(crate) fn bytes_elsewhere(&self) -> usize {
        self.bytes
    }

    /// How many entries are stored for a slot.
    pub(crate) fn len(&self, slot: u32) -> usize {
        self.maps[slot as usize].as_ref().map_or(0, |map| map.len())
    }

    /// The row that is stored for a map key.
    pub(crate) fn stored_row(&self, slot: u32, map_key: &[u8]) -> Option<&[u8]> {
        self.maps[slot as usize].as_ref()?.get(map_key).map(|row| &**row)
    }

    /// How many entries of a group the call has removed.
    pub(crate) fn removed_in_call(&self, group: u32) -> usize {
        self.written.get(&group).map_or(0, |w| w.rows.values().filter(|row| row.is_none()).count())
    }

    /// Forgets what is stored for a slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        if let Some(map) = self.maps[slot as usize].take() {
            self.bytes -= map.iter().map(|(map_key, row)| bytes_of(map_key, row)).sum::<usize>();
        }
    }

    /// The values of pairs (group, map key), as the call sees them.
    pub(crate) fn read(
        &self,
        groups: &[u32],
        map_keys: MapKeys<'_>,
        slot_of_group: &[u32],
    ) -> Result<Cells, StateError> {
        let mut present = BooleanBufferBuilder::new(groups.len());
        let mut reader = self.codec.reader(groups.len());
        for (i, &group) in groups.iter().enumerate() {
            let row = self.find(group, map_keys.get(i), slot_of_group);
            present.append(row.is_some());
            match row {
                Some(mut row) => reader.read(&mut row)?,
                None => reader.skip(),
            }
        }
        Ok(Cells { present: present.finish(), values: reader.finish() })
    }

    /// Entries of some groups in map-key order from `start` on, at most `limit` a group.
    pub(crate) fn scan(
        &self,
        groups: &[u32],
        start: Option<&[u8]>,
        limit: u32,
        slot_of_group: &[u32],
    ) -> Result<Entries, StateError> {
        let (mut offsets, mut key_offsets, mut key_bytes) = (vec![0], vec![0], Vec::new());
        let mut reader = self.codec.reader(groups.len());
        for &group in groups {
            for (map_key, mut row) in self.rows_from(group, start, slot_of_group).take(limit as usize) {
                reader.read(&mut row)?;
                key_bytes.extend_from_slice(map_key);
                key_offsets.push(key_bytes.len() as u32);
            }
            offsets.push(reader.rows() as u32);
        }
        Ok(Entries { offsets, key_offsets, key_bytes, values: reader.finish() })
    }

    pub(crate) fn write(&mut self, groups: &[u32], map_keys: MapKeys<'_>, cells: &Cells) {
        let writer = self.codec.writer(&cells.values);
        for (i, &group) in groups.iter().enumerate() {
            let row = cells.present.value(i).then(|| {
                let mut row = Vec::new();
                writer.write(i, &mut row);
                row.into_boxed_slice()
            });
            self.written.entry(group).or_default().rows.insert(map_keys.get(i).into(), row);
        }
    }

    pub(crate) fn clear(&mut self, groups: &[u32]) {
        for &group in groups {
            self.written.insert(group, Written { cleared: true, rows: BTreeMap::new() });
        }
    }

    /// Applies the writes; slots that are written are marked in `changed`, those whose map is empty now are added to
    /// `cleared`.
    pub(crate) fn commit(
        &mut self,
        slot_of_group: &[u32],
        cleared: &mut Vec<u32>,
        changed: &mut ChangedSlots,
    ) {
        for (group, written) in std::mem::take(&mut self.written) {
            let slot = slot_of_group[group as usize];
            changed.mark([slot]);
            if written.cleared {
                self.remove(slot);
            }
            let mut map = self.maps[slot as usize].take().unwrap_or_default();
            for (map_key, row) in written.rows {
                let before = map.get(&map_key).map_or(0, |row| bytes_of(&map_key, row));
                self.bytes = self.bytes + row.as_ref().map_or(0, |row| bytes_of(&map_key, row)) - before;
                match row {
                    Some(row) => map.insert(map_key, row),
                    None => map.remove(&map_key),
                };
            }
            if map.is_empty() {
                cleared.push(slot);
            } else {
                self.maps[slot as usize] = Some(map);
            }
        }
    }

    pub(crate) fn rollback(&mut self) {
        self.written.clear();
    }

    fn find(&self, group: u32, map_key: &[u8], slot_of_group: &[u32]) -> Option<&[u8]> {
        let written = self.written.get(&group);
        match written.and_then(|w| w.rows.get(map_key)) {
            Some(row) => row.as_deref(),
            None if written.is_some_and(|w| w.cleared) => None,
            None => {
                self.maps[slot_of_group[group as usize] as usize].as_ref()?.get(map_key).map(|row| &**row)
            }
        }
    }

    /// The rows of a group in map-key order: the stored ones and the written ones merged, of two with the same map key
    /// the written one.
    fn rows_from<'a>(
        &'a self,
        group: u32,
        start: Option<&[u8]>,
        slot_of_group: &[u32],
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let range = (start.map_or(Unbounded, Included), Unbounded);
        let written = self.written.get(&group);
        let stored = self.maps[slot_of_group[group as usize] as usize].as_ref();
        let stored = stored.filter(|_| written.is_none_or(|w| !w.cleared));
        let mut stored = stored.into_iter().flat_map(move |m| m.range::<[u8], _>(range)).peekable();
        let mut written = written.into_iter().flat_map(move |w| w.rows.range::<[u8], _>(range)).peekable();
        std::iter::from_fn(move || {
            loop {
                let next_written = written.peek().map(|(map_key, _)| *map_key);
                if let Some(entry) = stored.next_if(|(map_key, _)| next_written.is_none_or(|w| *map_key < w))
                {
                    return Some((&**entry.0, &**entry.1));
                }
                let (map_key, row) = written.next()?;
                stored.next_if(|(stored, _)| *stored == map_key);
                if let Some(row) = row {
                    return Some((&**map_key, &**row));
                }
            }
        })
    }
}

/// About what an entry takes in memory.
fn bytes_of(map_key: &[u8], row: &[u8]) -> usize {
    map_key.len() + row.len() + ENTRY
}

/// What an entry takes beside its bytes: two boxes and its part of the tree and of the allocator's rounding.
const ENTRY: usize = 64;

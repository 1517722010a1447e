//! Stored state as a table: a row for each stored row or timer, with its key.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{ArrayRef, BinaryViewArray, RecordBatch, TimestampMillisecondArray, UInt32Array};
use arrow_schema::Schema as ArrowSchema;
use millstream_types::{Column, DataType, Dealing, Field, KeyReader, StateForm, StatePart};

use super::walk::{Token, walk};
use crate::{StateError, row_codec::RowCodec};

/// The rows of a part, in the order of its chunks. Columns: those of the key, if it is keyed; the bounds of the window,
/// the time or the key of the map, where it has them; then those of the state. A name that is taken gets a `_`. None where
/// only a connector can read the bytes.
pub fn show_part(part: &StatePart, key: &[Column]) -> Result<Option<RecordBatch>, StateError> {
    if matches!(part.form, StateForm::Splits | StateForm::Enumerator) || opaque(part) {
        return Ok(None);
    }
    let mut table = Table::default();
    let mut rows = RowCodec::new(&part.columns).reader(0);
    for chunk in &part.chunks {
        let timers = matches!(part.form, StateForm::EventTimers | StateForm::ProcessingTimers);
        let mut entry = Entry { timers, ..Entry::default() };
        walk(part.form, &chunk.bytes, &mut rows, |token| table.take(token, &mut entry))?;
    }
    let rows = rows.finish();
    let mut columns = NamedColumns::default();
    if part.form.dealing() == Dealing::ByKeyGroup {
        let types: Vec<DataType> = key.iter().map(|column| column.data_type).collect();
        let keys = KeyReader::new(types).read(table.keys.iter().copied());
        let keys = keys.map_err(|_| StateError::DamagedChunk)?;
        key.iter().zip(keys).for_each(|(column, array)| columns.push(&column.name, column.data_type, array));
    }
    if !table.starts.is_empty() {
        columns.push("window_start", DataType::Timestamp, times(&table.starts));
        columns.push("window_end", DataType::Timestamp, times(&table.ends));
    }
    if !table.times.is_empty() {
        columns.push("time", DataType::Timestamp, times(&table.times));
    }
    if !table.map_keys.is_empty() {
        let keys = BinaryViewArray::from_iter_values(table.map_keys.iter().copied());
        columns.push("map_key", DataType::Binary, Arc::new(keys));
    }
    for (column, array) in part.columns.iter().zip(rows.arrays) {
        columns.push(&column.name, column.data_type, array);
    }
    columns.finish(table.length)
}

/// Whether the rows are the operator's own business: they have no columns, and no form of their own.
fn opaque(part: &StatePart) -> bool {
    part.columns.is_empty()
        && matches!(part.form, StateForm::Items | StateForm::UnionItems | StateForm::Subtask)
}

/// What goes with each row, in columns: those that the form has are as long as the table, the others empty.
#[derive(Default)]
struct Table<'a> {
    length: usize,
    keys: Vec<&'a [u8]>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    times: Vec<i64>,
    map_keys: Vec<&'a [u8]>,
}

/// Where in a chunk the walk is.
#[derive(Default)]
struct Entry<'a> {
    key: Option<&'a [u8]>,
    window: Option<(i64, i64)>,
    time: Option<i64>,
    map_key: Option<&'a [u8]>,
    /// Whether each time is a row: of timers there is nothing else.
    timers: bool,
}

impl<'a> Table<'a> {
    fn take(&mut self, token: Token<'a>, entry: &mut Entry<'a>) {
        match token {
            Token::Key(key) => entry.key = Some(key),
            Token::MapKey(key) => entry.map_key = Some(key),
            Token::Window(start, end) => entry.window = Some((start, end)),
            Token::Time(time) => {
                entry.time = Some(time);
                if entry.timers {
                    self.push(entry);
                }
            }
            Token::Row | Token::RowBlob => self.push(entry),
            Token::Rows(count) => (0..count).for_each(|_| self.push(entry)),
            Token::Count(_) | Token::Flags(_) => {}
        }
    }

    fn push(&mut self, entry: &Entry<'a>) {
        self.length += 1;
        self.keys.extend(entry.key);
        self.starts.extend(entry.window.map(|(start, _)| start));
        self.ends.extend(entry.window.map(|(_, end)| end));
        self.times.extend(entry.time);
        self.map_keys.extend(entry.map_key);
    }
}

/// Columns under names of their own.
#[derive(Default)]
struct NamedColumns {
    names: BTreeSet<String>,
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl NamedColumns {
    fn push(&mut self, name: &str, data_type: DataType, array: ArrayRef) {
        let mut name = name.to_owned();
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        self.fields.push(Field::nullable(name, data_type));
        self.arrays.push(array);
    }

    fn finish(mut self, length: usize) -> Result<Option<RecordBatch>, StateError> {
        if self.arrays.is_empty() {
            // A state of no columns and one key: that it is there is all that there is to show.
            let numbers = UInt32Array::from_iter_values(0..length as u32);
            self.push(
                "row",
                DataType::Int64,
                Arc::new(numbers.unary::<_, arrow_array::types::Int64Type>(i64::from)),
            );
        }
        let fields: Vec<_> = self.fields.iter().map(Field::to_arrow).collect();
        let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), self.arrays);
        batch.map(Some).map_err(|_| StateError::DamagedChunk)
    }
}

fn times(millis: &[i64]) -> ArrayRef {
    let times = TimestampMillisecondArray::from(millis.to_vec());
    Arc::new(times.with_data_type(DataType::Timestamp.to_arrow()))
}

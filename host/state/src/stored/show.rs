//! Stored state as a table: a row for each stored row or timer, with its key.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{ArrayRef, BinaryViewArray, RecordBatch, TimestampMillisecondArray, UInt32Array};
use arrow_schema::Schema as ArrowSchema;
use millstream_types::{Column, DataType, Dealing, Field, KeyReader, StateForm, StatePart};

use super::walk::{Token, walk};
use crate::{StateError, fold::fold, row_codec::RowCodec};

/// The rows of a part, in the order of its chunks. Columns: those of the key, if it is keyed; the bounds of the window,
/// the time or the key of the map, where it has them; then those of the state. A name that is taken gets a `_`. None where
/// only a connector can read the bytes.
pub fn show_part(part: &StatePart, key: &[Column]) -> Result<Option<RecordBatch>, StateError> {
    let bytes = matches!(part.form, StateForm::Splits | StateForm::Enumerator | StateForm::Store);
    if bytes || opaque(part) {
        return Ok(None);
    }
    let part = &*fold(part)?;
    let mut table = Table::default();
    let mut rows = RowCodec::new(&part.columns).reader(0);
    for chunk in &part.chunks {
        let timers =
            matches!(part.form, StateForm::EventTimers | StateForm::ProcessingTimers | StateForm::Expiries);
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

/// Times; null where a window has no bound, which lies at the end of time.
fn times(millis: &[i64]) -> ArrayRef {
    let times = millis.iter().map(|&time| CALENDAR.contains(&time).then_some(time));
    let times = TimestampMillisecondArray::from_iter(times);
    Arc::new(times.with_data_type(DataType::Timestamp.to_arrow()))
}

/// Times that a calendar has, more or less: the quarter of a million years around the epoch.
const CALENDAR: std::ops::Range<i64> = -8_000_000_000_000_000..8_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use arrow_array::{Array, Int64Array, StringViewArray, cast::AsArray, types::*};
    use millstream_types::{Columns, EncodedKeys, KeyGroup, StateChunk, encode_keys};

    use super::*;
    use crate::snapshot::{put_bytes, put_i64, put_u32};

    fn column(name: &str, data_type: DataType) -> Column {
        Column { name: name.into(), data_type, nullable: false }
    }

    fn part(form: StateForm, columns: Vec<Column>, bytes: Vec<u8>) -> StatePart {
        let chunks = vec![StateChunk::whole(KeyGroup(0), bytes)];
        StatePart { name: "s".into(), form, version: 1, columns, base: None, chunks, files: None }
    }

    fn put_key(name: &str, out: &mut Vec<u8>) {
        let column: ArrayRef = Arc::new(StringViewArray::from(vec![name]));
        let mut keys = EncodedKeys::new();
        encode_keys(&[&column], 1, &mut keys).expect("a short key");
        put_bytes(keys.key(0), out);
    }

    fn put_row(n: i64, out: &mut Vec<u8>) {
        let columns = Columns::new(1, vec![Arc::new(Int64Array::from(vec![n]))]);
        RowCodec::new(&[column("n", DataType::Int64)]).writer(&columns).write(0, out);
    }

    /// The names of the columns, and the rows as text, keyed by a text `k`.
    fn shown(part: &StatePart) -> Vec<String> {
        let batch = show_part(part, &[column("k", DataType::Utf8)]).expect("whole").expect("it has rows");
        let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        let cell = |array: &ArrayRef, row: usize| match DataType::from_arrow(array.data_type()) {
            Some(DataType::Utf8) => array.as_string_view().value(row).to_owned(),
            Some(DataType::Binary) => format!("{:?}", array.as_binary_view().value(row)),
            Some(DataType::Timestamp) => {
                array.as_primitive::<TimestampMillisecondType>().value(row).to_string()
            }
            _ => array.as_primitive::<Int64Type>().value(row).to_string(),
        };
        let row = |row: usize| batch.columns().iter().map(|c| cell(c, row)).collect::<Vec<_>>().join(" ");
        std::iter::once(names.join(" ")).chain((0..batch.num_rows()).map(row)).collect()
    }

    #[test]
    fn timers_have_a_row_each() {
        let mut bytes = Vec::new();
        put_key("a", &mut bytes);
        put_u32(2, &mut bytes);
        [5, 9].into_iter().for_each(|time| put_i64(time, &mut bytes));
        assert_eq!(shown(&part(StateForm::EventTimers, Vec::new(), bytes)), ["k time", "a 5", "a 9"]);
    }

    #[test]
    fn windows_have_their_bounds_and_maps_their_keys() {
        let columns = || vec![column("k", DataType::Int64)];
        let mut bytes = Vec::new();
        put_i64(0, &mut bytes);
        put_i64(10, &mut bytes);
        put_u32(2, &mut bytes);
        for (key, n) in [("a", 1), ("b", 2)] {
            put_key(key, &mut bytes);
            put_row(n, &mut bytes);
        }
        let windows = shown(&part(StateForm::Accumulators, columns(), bytes));
        assert_eq!(windows, ["k window_start window_end k_", "a 0 10 1", "b 0 10 2"]);
        let mut bytes = Vec::new();
        put_key("a", &mut bytes);
        put_u32(1, &mut bytes);
        put_bytes(b"x", &mut bytes);
        let mut row = Vec::new();
        put_row(7, &mut row);
        put_bytes(&row, &mut bytes);
        assert_eq!(shown(&part(StateForm::Map, columns(), bytes)), ["k map_key k_", "a [120] 7"]);
        assert_eq!(times(&[i64::MIN, 5, i64::MAX]).null_count(), 2, "a global window has no bounds");
    }

    #[test]
    fn what_only_its_owner_reads_is_not_shown() {
        for form in [StateForm::Splits, StateForm::Enumerator, StateForm::Subtask, StateForm::Items] {
            assert_eq!(show_part(&part(form, Vec::new(), vec![1]), &[]), Ok(None), "{form:?}");
        }
        let other_key = part(StateForm::EventTimers, Vec::new(), {
            let mut bytes = Vec::new();
            put_bytes(&[9], &mut bytes);
            put_u32(1, &mut bytes);
            put_i64(5, &mut bytes);
            bytes
        });
        assert_eq!(show_part(&other_key, &[column("k", DataType::Utf8)]), Err(StateError::DamagedChunk));
    }
}

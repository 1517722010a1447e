//! What decoders make of records: columns, and what does not fit into them.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray};
use arrow_select::{concat::concat, filter::filter};
use millstream_operator::BadRow;
use millstream_types::{Batch, Field, NO_TIME, Schema};

/// Decodes the records of one text format. One file's layout at a time.
pub(crate) trait RecordDecoder {
    /// Turns `records` complete records into rows of the schema. An error says that the format itself is broken
    /// somewhere in them; a single record that has one is a bad row, with that reason.
    fn decode(&mut self, bytes: &[u8], records: usize) -> Result<Decoded, String>;
}

/// Rows of a schema, and those that were left out.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<ArrayRef>,
    /// By position among the records that were given.
    pub(crate) bad: BTreeMap<usize, String>,
}

impl Decoded {
    /// Leaves the bad ones out of `columns`, which have a value for each of `rows` records.
    pub(crate) fn without_bad(rows: usize, columns: Vec<ArrayRef>, bad: BTreeMap<usize, String>) -> Self {
        if bad.is_empty() {
            return Self { rows, columns, bad };
        }
        let good: BooleanArray = (0..rows).map(|row| Some(!bad.contains_key(&row))).collect();
        let keep = |column: &ArrayRef| filter(column, &good).expect("the mask is as long as the columns");
        Self { rows: rows - bad.len(), columns: columns.iter().map(keep).collect(), bad }
    }
}

/// The rows of several pieces in a row.
pub(crate) fn batch(schema: &Schema, pieces: Vec<Decoded>) -> Result<Batch, millstream_types::BatchError> {
    let rows = pieces.iter().map(|p| p.rows).sum::<usize>();
    let mut pieces: Vec<_> = pieces.into_iter().filter(|p| p.rows > 0).collect();
    let columns = match pieces.len() {
        0 => schema.fields().iter().map(|f| arrow_array::new_empty_array(&f.data_type.to_arrow())).collect(),
        1 => pieces.remove(0).columns,
        _ => (0..schema.len())
            .map(|i| {
                let parts: Vec<_> = pieces.iter().map(|p| p.columns[i].as_ref()).collect();
                concat(&parts).expect("the pieces have the schema's types")
            })
            .collect(),
    };
    Batch::new(schema, columns, vec![NO_TIME; rows].into())
}

/// Says of a value what it is and what it should be.
pub(crate) fn wrong_value(field: &Field, found: &str) -> String {
    use millstream_types::DataType::{Binary, Date, Timestamp};
    let hint = match field.data_type {
        Timestamp => " (such as 2013-01-31T10:00:00Z, or milliseconds since 1970; years 0001 to 9999)",
        Date => " (such as 2013-01-31)",
        Binary => " (hexadecimal digits)",
        _ => "",
    };
    format!("column `{}`: found `{}`, expected {}{hint}", field.name, cut(found), field.data_type)
}

/// Says that a row has no value where it needs one.
pub(crate) fn no_value(field: &Field) -> String {
    let Field { name, data_type, .. } = field;
    format!(
        "column `{name}`: found no value, expected {data_type} (`{data_type}?` in the schema would allow that)"
    )
}

/// A bad row with its text as far as it is text.
pub(crate) fn bad_row(file: &Arc<str>, line: u64, reason: String, bytes: &[u8]) -> BadRow {
    // More than enough bytes for the characters that are kept.
    let start = &bytes[..bytes.len().min(4 * SHOWN + 4)];
    let text = String::from_utf8_lossy(start);
    BadRow { position: format!("{file}:{line}"), reason, text: cut(text.trim_end_matches(['\n', '\r'])) }
}

/// Characters of a row or value that a message shows.
const SHOWN: usize = 200;

/// The beginning of a text.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

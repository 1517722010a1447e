//! Keys that are longer than [`Limits::KEY_BYTES`]: which rows have one, so that these alone can be refused.

use std::fmt;

use arrow_array::{ArrayRef, cast::AsArray};
use arrow_schema::DataType as ArrowType;

use crate::{Limits, key::encode_value};

/// A row whose key is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongKey {
    /// The row in its batch.
    pub row: u32,
    /// The encoded length.
    pub bytes: usize,
}

impl fmt::Display for LongKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its key takes {} bytes: at most {} are allowed", self.bytes, Limits::KEY_BYTES)
    }
}

/// The rows whose key is too long, ascending. Costs a look at the length of each text where none is.
pub fn long_keys(columns: &[&ArrayRef], rows: usize) -> Vec<LongKey> {
    if columns.iter().all(|column| is_short(column, columns.len())) {
        return Vec::new();
    }
    let mut encoded = Vec::new();
    let mut length = |row: usize| {
        encoded.clear();
        columns.iter().for_each(|column| encode_value(column, row, &mut encoded));
        encoded.len()
    };
    let keys = (0..rows).map(|row| LongKey { row: row as u32, bytes: length(row) });
    keys.filter(|key| key.bytes > Limits::KEY_BYTES).collect()
}

/// Whether no value of the column can make a key of so many columns too long, whatever it is encoded to.
fn is_short(column: &ArrayRef, columns: usize) -> bool {
    // Each byte becomes two at most, and markers are added.
    let most = (Limits::KEY_BYTES / columns.max(1)).saturating_sub(MARKERS) / 2;
    let views = match column.data_type() {
        ArrowType::Utf8View => column.as_string_view().views(),
        ArrowType::BinaryView => column.as_binary_view().views(),
        _ => return true,
    };
    // A view's lowest four bytes are the length.
    views.iter().fold(0, |longest, &view| longest.max(view as u32)) as usize <= most
}

/// Bytes of an encoded text that are not the text's.
const MARKERS: usize = 3;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BinaryViewArray, Int64Array, StringViewArray};

    use super::*;
    use crate::{EncodedKeys, encode_keys};

    #[test]
    fn exactly_the_rows_that_cannot_be_encoded_are_found() {
        let most = "x".repeat(Limits::KEY_BYTES - 3);
        let text: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some(&most), Some("b")]));
        assert_eq!(long_keys(&[&text], 4), []);
        encode_keys(&[&text], 4, &mut EncodedKeys::new()).expect("none is too long");

        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        let found = long_keys(&[&text, &numbers], 4);
        assert_eq!(found, [LongKey { row: 2, bytes: Limits::KEY_BYTES + 9 }]);
        assert_eq!(found[0].to_string(), "its key takes 65545 bytes: at most 65536 are allowed");
        encode_keys(&[&text, &numbers], 4, &mut EncodedKeys::new()).expect_err("the third is too long");
    }

    #[test]
    fn bytes_that_are_encoded_to_two_count_twice() {
        let zeros: ArrayRef = Arc::new(BinaryViewArray::from(vec![&vec![0; 40_000][..], &[1; 40_000]]));
        assert_eq!(long_keys(&[&zeros], 2), [LongKey { row: 0, bytes: 80_003 }]);
    }
}

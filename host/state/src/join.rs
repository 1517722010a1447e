//! Parts of columns as one.

use arrow_array::ArrayRef;
use arrow_select::concat::concat;
use millstream_types::Columns;

/// Columns of the same types one behind the other; `None` if there are none.
pub fn columns(parts: &[Columns]) -> Option<Columns> {
    let [first, others @ ..] = parts else { return None };
    if others.is_empty() {
        return Some(first.clone());
    }
    let column = |i: usize| -> ArrayRef {
        let arrays: Vec<_> = parts.iter().map(|p| p.arrays[i].as_ref()).collect();
        concat(&arrays).expect("parts of one column have one type")
    };
    let rows = parts.iter().map(|p| p.rows).sum();
    Some(Columns::new(rows, (0..first.arrays.len()).map(column).collect()))
}

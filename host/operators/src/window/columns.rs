//! Columns put together and picked from.

use arrow_array::{ArrayRef, UInt32Array};
use arrow_select::{concat::concat, interleave::interleave, take::take};
use millstream_types::Columns;

/// Parts of the same types one behind the other; none at all are no columns.
pub(super) fn join(mut parts: Vec<Columns>) -> Columns {
    if parts.len() <= 1 {
        return parts.pop().unwrap_or_default();
    }
    let column = |i: usize| {
        let arrays: Vec<_> = parts.iter().map(|p| p.arrays[i].as_ref()).collect();
        concat(&arrays).expect("parts of one column have one type")
    };
    let arrays = (0..parts[0].arrays.len()).map(column).collect();
    Columns::new(parts.iter().map(|p| p.rows).sum(), arrays)
}

/// The rows at these positions, which are within the columns.
pub(super) fn pick(columns: &Columns, rows: &[u32]) -> Columns {
    let indices = UInt32Array::from(rows.to_vec());
    let gather = |array: &ArrayRef| take(array, &indices, None).expect("positions are within the columns");
    Columns::new(rows.len(), columns.arrays.iter().map(gather).collect())
}

/// Rows picked out of several sets of the same types: (set, row).
pub(super) fn weave(sets: &[&Columns], rows: &[(usize, usize)]) -> Columns {
    let column = |i: usize| {
        let arrays: Vec<_> = sets.iter().map(|s| s.arrays[i].as_ref()).collect();
        interleave(&arrays, rows).expect("sets of one column have one type")
    };
    Columns::new(rows.len(), (0..sets[0].arrays.len()).map(column).collect())
}

/// `0, 1, 2, ...`: each for itself.
pub(super) fn identity(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

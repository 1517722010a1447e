//! Whether columns are what a state was declared with.

use arrow_array::Array;
use millstream_types::{Column, Columns};

use crate::StateError;

/// Checks that `found` has the declared columns and `rows` rows.
pub(crate) fn check(
    state: &str,
    declared: &[Column],
    found: &Columns,
    rows: usize,
) -> Result<(), StateError> {
    problem(declared, found, rows)
        .map_or(Ok(()), |problem| Err(StateError::Shape { name: state.to_owned(), problem }))
}

fn problem(declared: &[Column], found: &Columns, rows: usize) -> Option<String> {
    if found.rows != rows {
        return Some(format!("{} rows found, {rows} expected", found.rows));
    }
    if found.arrays.len() != declared.len() {
        return Some(format!("{} columns found, {} declared", found.arrays.len(), declared.len()));
    }
    declared.iter().zip(&found.arrays).find_map(|(column, array)| {
        let name = &column.name;
        if array.len() != rows {
            return Some(format!("column `{name}` has {} rows, {rows} expected", array.len()));
        }
        if *array.data_type() != column.data_type.to_arrow() {
            return Some(format!(
                "column `{name}` is {}, declared is {}",
                array.data_type(),
                column.data_type
            ));
        }
        None
    })
}

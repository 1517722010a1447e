//! Rows on their way into a test and out of it.

use crate::column::{Batch, Column, ColumnSpec, Mismatch};
use crate::field::Field;
use crate::host::native::KeyBytes;
use crate::host::native::rows::{StoredRow, join, split};

/// The half of an input row that tests need: written into columns. `#[derive(Input)]` implements it.
pub trait Given: Sized {
    /// Columns that grow.
    type Builder;

    /// The columns that are given.
    fn columns(plain: &str) -> Vec<ColumnSpec>;
    /// Empty columns with room for so many rows.
    fn builder(rows: usize) -> Self::Builder;
    /// Appends the row.
    fn append_to(self, builder: &mut Self::Builder);
    /// Appends a row that means nothing.
    fn push_absent(builder: &mut Self::Builder);
    /// The finished columns.
    fn finish(builder: Self::Builder) -> Vec<Column>;
}

/// The half of an output row that tests need: read out of columns. `#[derive(Output)]` implements it.
pub trait Seen: Sized {
    /// The row with the batch's lifetime.
    type Row<'a>;
    /// The batch's columns, each seen as its field's type.
    type Reader<'a>;

    /// The columns that are read.
    fn columns(plain: &str) -> Vec<ColumnSpec>;
    /// Looks at a batch.
    fn reader(batch: &Batch) -> Result<Self::Reader<'_>, Mismatch>;
    /// The row at a position.
    fn read<'a>(reader: &Self::Reader<'a>, row: usize) -> Self::Row<'a>;
}

impl<F: Field> Given for F {
    type Builder = F::Builder;

    fn columns(plain: &str) -> Vec<ColumnSpec> {
        <F as crate::Output>::columns(plain)
    }

    fn builder(rows: usize) -> Self::Builder {
        F::builder(rows)
    }

    fn append_to(self, builder: &mut Self::Builder) {
        F::append_to(self, builder);
    }

    fn push_absent(builder: &mut Self::Builder) {
        F::push_null(builder);
    }

    fn finish(builder: Self::Builder) -> Vec<Column> {
        vec![F::finish(builder)]
    }
}

impl<F: Field> Seen for F {
    type Row<'a> = F::Value<'a>;
    type Reader<'a> = F::View<'a>;

    fn columns(plain: &str) -> Vec<ColumnSpec> {
        <F as crate::Input>::columns(plain)
    }

    fn reader(batch: &Batch) -> Result<Self::Reader<'_>, Mismatch> {
        <F as crate::Input>::reader(batch)
    }

    fn read<'a>(reader: &Self::Reader<'a>, row: usize) -> Self::Row<'a> {
        F::value(reader, row)
    }
}

macro_rules! tuple {
    ($($field:ident $index:tt),*) => {
        impl<$($field: Field),*> Given for ($($field,)*) {
            type Builder = <Self as crate::Output>::Builder;

            fn columns(plain: &str) -> Vec<ColumnSpec> {
                <Self as crate::Output>::columns(plain)
            }

            fn builder(rows: usize) -> Self::Builder {
                <Self as crate::Output>::builder(rows)
            }

            fn append_to(self, builder: &mut Self::Builder) {
                <Self as crate::Output>::append_to(self, builder);
            }

            fn push_absent(builder: &mut Self::Builder) {
                <Self as crate::Output>::push_absent(builder);
            }

            fn finish(builder: Self::Builder) -> Vec<Column> {
                <Self as crate::Output>::finish(builder)
            }
        }

        impl<$($field: Field),*> Seen for ($($field,)*) {
            type Row<'a> = <Self as crate::Input>::Row<'a>;
            type Reader<'a> = <Self as crate::Input>::Reader<'a>;

            fn columns(plain: &str) -> Vec<ColumnSpec> {
                <Self as crate::Input>::columns(plain)
            }

            fn reader(batch: &Batch) -> Result<Self::Reader<'_>, Mismatch> {
                <Self as crate::Input>::reader(batch)
            }

            fn read<'a>(reader: &Self::Reader<'a>, row: usize) -> Self::Row<'a> {
                <Self as crate::Input>::read(reader, row)
            }
        }
    };
}

tuple!();
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// Rows as the batch that the host would send, which must have the declared columns.
pub(super) fn batch<T: Given>(rows: Vec<T>, declared: &[ColumnSpec], what: &str) -> Batch {
    check_columns(&T::columns("value"), declared, what);
    let count = rows.len();
    let mut builder = T::builder(count);
    rows.into_iter().for_each(|row| row.append_to(&mut builder));
    Batch { rows: count, columns: T::finish(builder) }
}

/// Fails the test where rows have other columns than the function declares. A row without names of its own fits
/// by its types.
pub(super) fn check_columns(found: &[ColumnSpec], declared: &[ColumnSpec], what: &str) {
    let shape =
        |columns: &[ColumnSpec]| columns.iter().map(|it| (it.r#type, it.nullable)).collect::<Vec<_>>();
    assert!(shape(found) == shape(declared), "{what}: expected columns {declared:?}, found {found:?}");
}

/// The distinct keys of rows, in the order of their first row, and each row's position among them.
pub(super) struct Keys {
    pub(super) rows: Vec<StoredRow>,
    pub(super) bytes: Vec<KeyBytes>,
    pub(super) of_row: Vec<u32>,
}

impl Keys {
    pub(super) fn of<K: Given>(keys: Vec<K>, declared: &[ColumnSpec]) -> Self {
        // A function that does not look at its key declares none; it is grouped by all the same.
        let columns = if declared.is_empty() { K::columns("key") } else { declared.to_vec() };
        let mut distinct = Self { rows: Vec::new(), bytes: Vec::new(), of_row: Vec::new() };
        split(batch(keys, &columns, "key")).into_iter().for_each(|key| distinct.add(key));
        distinct
    }

    fn add(&mut self, key: StoredRow) {
        let bytes = key_bytes(&key);
        let known = self.bytes.iter().position(|known| *known == bytes);
        let position = known.unwrap_or_else(|| {
            self.bytes.push(bytes);
            self.rows.push(key);
            self.rows.len() - 1
        });
        self.of_row.push(position as u32);
    }

    /// The keys as the columns that the function declares.
    pub(super) fn batch(&self, declared: &[ColumnSpec]) -> Batch {
        join(declared, &self.rows.iter().map(Some).collect::<Vec<_>>())
    }
}

/// What tells keys apart.
fn key_bytes(key: &StoredRow) -> KeyBytes {
    format!("{key:?}").into_bytes()
}

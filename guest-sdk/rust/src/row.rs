//! What a row may be: the structs under `#[derive(Input)]`, `#[derive(Output)]`, `#[derive(State)]`, single
//! fields, and tuples of fields.
//!
//! [`Input`] reads rows out of a batch, [`Output`] writes them into columns. A derive implements them with one
//! column a field, so a loop over rows compiles to a loop over slices.

use crate::column::{Batch, Column, ColumnSpec, Mismatch};
use crate::field::Field;
use crate::manifest::Migration;

/// A row that a function reads. Derive it: `#[derive(Input)]`.
pub trait Input: Sized {
    /// The row with the batch's lifetime: `Flight<'a>` for `Flight<'_>`.
    type Row<'a>;
    /// The batch's columns, each seen as its field's type.
    type Reader<'a>;

    /// The columns that are read. A type without column names takes `plain` as its name.
    fn columns(plain: &str) -> Vec<ColumnSpec>;
    /// Looks at a batch; errors if it does not have the declared columns.
    fn reader(batch: &Batch) -> Result<Self::Reader<'_>, Mismatch>;
    /// The row at a position below the batch's rows.
    fn read<'a>(reader: &Self::Reader<'a>, row: usize) -> Self::Row<'a>;
}

/// A row that a function makes. Derive it: `#[derive(Output)]`.
pub trait Output: Sized {
    /// Columns that grow.
    type Builder;

    /// The columns that are made. A type without column names takes `plain` as its name.
    fn columns(plain: &str) -> Vec<ColumnSpec>;
    /// Empty columns with room for so many rows.
    fn builder(rows: usize) -> Self::Builder;
    /// Appends the row.
    fn append_to(self, builder: &mut Self::Builder);
    /// Appends a row that means nothing, to keep a place.
    fn push_absent(builder: &mut Self::Builder);
    /// The finished columns.
    fn finish(builder: Self::Builder) -> Vec<Column>;
}

/// A value that the host keeps: an accumulator or the content of a state. Derive it: `#[derive(State)]`.
///
/// A struct is one column a field, so a savepoint is a readable table; a plain field is one column `value`.
pub trait State: Output + 'static + for<'a> Input<Row<'a> = Self> {
    /// Goes up when the type changes: `#[state(version = 2)]`.
    const VERSION: u32 = 1;

    /// How stored values of earlier versions become values of this one: `#[state(version = 2, migrates(1))]`, with a
    /// [`Migrate`](crate::Migrate) of each.
    fn migrations() -> Vec<Migration> {
        Vec::new()
    }
}

impl<T> State for T where T: Field + 'static + for<'a> Field<Value<'a> = T> {}

impl<F: Field> Input for F {
    type Row<'a> = F::Value<'a>;
    type Reader<'a> = F::View<'a>;

    fn columns(plain: &str) -> Vec<ColumnSpec> {
        vec![column::<F>(plain)]
    }

    fn reader(batch: &Batch) -> Result<Self::Reader<'_>, Mismatch> {
        F::view(batch.column(0)?, batch.rows)
    }

    #[inline(always)]
    fn read<'a>(reader: &Self::Reader<'a>, row: usize) -> Self::Row<'a> {
        F::value(reader, row)
    }
}

impl<F: Field> Output for F {
    type Builder = F::Builder;

    fn columns(plain: &str) -> Vec<ColumnSpec> {
        vec![column::<F>(plain)]
    }

    fn builder(rows: usize) -> Self::Builder {
        F::builder(rows)
    }

    #[inline(always)]
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

/// Declaration of a field's column.
#[doc(hidden)]
pub fn column<F: Field>(name: &str) -> ColumnSpec {
    ColumnSpec { name: name.to_owned(), r#type: F::TYPE, nullable: F::NULLABLE }
}

macro_rules! tuple {
    ($($field:ident $index:tt),*) => {
        #[allow(clippy::unused_unit, reason = "of the tuple without fields")]
        impl<$($field: Field),*> Input for ($($field,)*) {
            type Row<'a> = ($($field::Value<'a>,)*);
            type Reader<'a> = ($($field::View<'a>,)*);

            fn columns(plain: &str) -> Vec<ColumnSpec> {
                let _ = plain;
                vec![$(column::<$field>(&format!("{plain}_{}", $index + 1))),*]
            }

            fn reader(batch: &Batch) -> Result<Self::Reader<'_>, Mismatch> {
                let _ = batch;
                Ok(($($field::view(batch.column($index)?, batch.rows)?,)*))
            }

            #[inline(always)]
            fn read<'a>(reader: &Self::Reader<'a>, row: usize) -> Self::Row<'a> {
                let _ = (reader, row);
                ($($field::value(&reader.$index, row),)*)
            }
        }

        #[allow(clippy::unused_unit, reason = "of the tuple without fields")]
        impl<$($field: Field),*> Output for ($($field,)*) {
            type Builder = ($($field::Builder,)*);

            fn columns(plain: &str) -> Vec<ColumnSpec> {
                <Self as Input>::columns(plain)
            }

            fn builder(rows: usize) -> Self::Builder {
                let _ = rows;
                ($($field::builder(rows),)*)
            }

            #[inline(always)]
            fn append_to(self, builder: &mut Self::Builder) {
                let _ = &builder;
                $(self.$index.append_to(&mut builder.$index);)*
            }

            fn push_absent(builder: &mut Self::Builder) {
                let _ = &builder;
                $($field::push_null(&mut builder.$index);)*
            }

            fn finish(builder: Self::Builder) -> Vec<Column> {
                let _ = &builder;
                vec![$($field::finish(builder.$index)),*]
            }
        }
    };
}

tuple!();
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_rows() {
        let mut builder = <(&str, Option<i64>)>::builder(2);
        [("a", Some(1i64)), ("b", None)].into_iter().for_each(|row| row.append_to(&mut builder));
        let batch = Batch { rows: 2, columns: <(&str, Option<i64>)>::finish(builder) };
        let reader = <(&str, Option<i64>)>::reader(&batch).expect("the same columns");
        assert_eq!(<(&str, Option<i64>)>::read(&reader, 1), ("b", None));
        let names: Vec<_> =
            <(&str, Option<i64>) as Input>::columns("key").into_iter().map(|c| c.name).collect();
        assert_eq!(names, ["key_1", "key_2"]);
    }

    #[test]
    fn a_missing_column_is_an_error() {
        let error = <(i64,)>::reader(&Batch { rows: 0, columns: vec![] }).expect_err("no column");
        assert_eq!(error.to_string(), "expected at least 1 columns, found 0");
    }
}

//! Runs functions natively, row by row or whole jobs' worth, under plain `cargo test`.
use crate::column::{Batch, Column, ColumnSpec, Mismatch};

/// The half of an input row that tests need: written into columns. `#[derive(Input)]` implements it.
pub trait Given: Sized {
    /// Columns that grow.
    type Builder;

    /// The columns that are given.
    fn columns(plain: &str) -> Vec<ColumnSpec>;
    /// Empty columns with room for so many rows.
    fn builder(rows: usize) -> Self::Builder;
    /// Appends the row.
    fn push(self, builder: &mut Self::Builder);
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

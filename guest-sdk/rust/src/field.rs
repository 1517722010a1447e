//! What one field of a row may be, and how it is read from and written to a column.

mod fixed;
mod optional;
mod serialized;
mod text;

use crate::column::{Column, Mismatch, Type};

pub use self::optional::{OptionalBuilder, OptionalView};
pub use self::serialized::Postcard;
pub use self::text::{BytesView, TextView};

/// A type that is one column.
///
/// `bool`, `i32`, `i64`, `f32`, `f64`, [`Timestamp`](crate::Timestamp), [`Date`](crate::Date), `String`,
/// `&str`, `Vec<u8>`, `&[u8]`, [`Postcard`], and `Option` of each. A borrowed one reads without copying.
pub trait Field: Sized {
    /// Logical type of the column.
    const TYPE: Type;
    /// Whether rows may have no value.
    const NULLABLE: bool = false;
    /// A column seen as this type.
    type View<'a>;
    /// The field as it comes out of a column: `Self`, with the column's lifetime.
    type Value<'a>;
    /// A column that grows.
    type Builder;

    /// Looks at a column of `rows` rows; errors if it has another layout or length.
    fn view(column: &Column, rows: usize) -> Result<Self::View<'_>, Mismatch>;
    /// Value of a row below the number of rows that `view` was given.
    fn value<'a>(view: &Self::View<'a>, row: usize) -> Self::Value<'a>;
    /// An empty column with room for so many rows.
    fn builder(rows: usize) -> Self::Builder;
    /// Appends a value.
    fn append_to(self, builder: &mut Self::Builder);
    /// Appends a row without a value.
    fn push_null(builder: &mut Self::Builder);
    /// The finished column.
    fn finish(builder: Self::Builder) -> Column;
}

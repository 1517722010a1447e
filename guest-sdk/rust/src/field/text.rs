//! Fields of variable length: text and bytes, borrowed or owned.
//!
//! This is the SDK's one file with `unsafe`, for one reason: to check a text column for ASCII with the vector
//! unit is ten times as fast as `str::from_utf8` on `wasm32`, and there is no safe way to say that bytes which
//! are all ASCII are a `str`.
#![expect(unsafe_code, reason = "bytes just checked to be ASCII become a str without a second check")]

use super::Field;
use crate::column::{Column, Mismatch, Type, Values, VarValues};

/// A utf8 column, checked once.
#[derive(Clone, Copy, Debug)]
pub struct TextView<'a> {
    offsets: &'a [u32],
    text: &'a str,
}

/// A binary column.
#[derive(Clone, Copy, Debug)]
pub struct BytesView<'a> {
    offsets: &'a [u32],
    bytes: &'a [u8],
}

fn var(column: &Column, rows: usize, expected: Type) -> Result<&VarValues, Mismatch> {
    let Values::Var(values) = &column.values else {
        return Err(Mismatch::layout(expected, &column.values));
    };
    values.check(rows)?;
    Ok(values)
}

fn text(bytes: &[u8]) -> Result<&str, Mismatch> {
    if bytes.iter().fold(0, |seen, byte| seen | byte) < 0x80 {
        // SAFETY: no byte has its highest bit set, so all are ASCII, and ASCII is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).map_err(|error| Mismatch::Utf8 { valid_up_to: error.valid_up_to() })
}

fn text_view(column: &Column, rows: usize) -> Result<TextView<'_>, Mismatch> {
    let values = var(column, rows, Type::Utf8)?;
    Ok(TextView { offsets: &values.offsets, text: text(&values.bytes)? })
}

fn bytes_view(column: &Column, rows: usize) -> Result<BytesView<'_>, Mismatch> {
    let values = var(column, rows, Type::Binary)?;
    Ok(BytesView { offsets: &values.offsets, bytes: &values.bytes })
}

#[inline(always)]
fn range(offsets: &[u32], row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

macro_rules! variable {
    ($field:ty, $type:ident, $view:ident, $make:ident, $value:ty, |$seen:ident, $range:ident| $read:expr, $bytes:expr) => {
        impl Field for $field {
            const TYPE: Type = Type::$type;
            type View<'a> = $view<'a>;
            type Value<'a> = $value;
            type Builder = VarValues;

            fn view(column: &Column, rows: usize) -> Result<Self::View<'_>, Mismatch> {
                $make(column, rows)
            }

            #[inline(always)]
            fn value<'a>($seen: &Self::View<'a>, row: usize) -> Self::Value<'a> {
                let $range = range($seen.offsets, row);
                $read
            }

            fn builder(rows: usize) -> VarValues {
                VarValues::with_capacity(rows, rows * 8)
            }

            #[inline]
            fn append_to(self, builder: &mut VarValues) {
                builder.push($bytes(&self));
            }

            fn push_null(builder: &mut VarValues) {
                builder.push(&[]);
            }

            fn finish(builder: VarValues) -> Column {
                Values::Var(builder).into()
            }
        }
    };
}

variable!(&str, Utf8, TextView, text_view, &'a str, |seen, range| &seen.text[range], str::as_bytes);
variable!(
    String,
    Utf8,
    TextView,
    text_view,
    String,
    |seen, range| seen.text[range].to_owned(),
    str::as_bytes
);
variable!(&[u8], Binary, BytesView, bytes_view, &'a [u8], |seen, range| &seen.bytes[range], <[u8]>::as_ref);
variable!(
    Vec<u8>,
    Binary,
    BytesView,
    bytes_view,
    Vec<u8>,
    |seen, range| seen.bytes[range].to_vec(),
    <[u8]>::as_ref
);

#[cfg(test)]
mod tests {
    use super::*;

    fn column(rows: &[&[u8]]) -> Column {
        let mut values = VarValues::default();
        rows.iter().for_each(|row| values.push(row));
        Values::Var(values).into()
    }

    #[test]
    fn text_is_borrowed_from_the_column() {
        let column = column(&[b"EWR", "Zür".as_bytes(), b""]);
        let view = <&str>::view(&column, 3).expect("a text column");
        assert_eq!((0..3).map(|row| <&str>::value(&view, row)).collect::<Vec<_>>(), ["EWR", "Zür", ""]);
    }

    #[test]
    fn invalid_text_is_an_error() {
        let column = column(&[b"ok", b"\xff"]);
        assert_eq!(<&str>::view(&column, 2).err(), Some(Mismatch::Utf8 { valid_up_to: 2 }));
        assert!(<&[u8]>::view(&column, 2).is_ok());
    }

    #[test]
    fn another_layout_is_an_error() {
        let column = Column::from(Values::Int64(vec![1]));
        assert_eq!(
            String::view(&column, 1).err().map(|error| error.to_string()).as_deref(),
            Some("expected a column of utf8, found one of int64 values")
        );
    }
}

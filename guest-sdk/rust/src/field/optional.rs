//! `Option<T>`: a nullable column.

use super::Field;
use crate::bits::{BitBuilder, is_set};
use crate::column::{Column, Mismatch, Type};

/// A nullable column, seen.
#[derive(Clone, Copy, Debug)]
pub struct OptionalView<'a, V> {
    validity: Option<&'a [u8]>,
    values: V,
}

/// A nullable column that grows.
#[derive(Debug)]
pub struct OptionalBuilder<B> {
    validity: BitBuilder,
    values: B,
}

impl<T: Field> Field for Option<T> {
    const TYPE: Type = T::TYPE;
    const NULLABLE: bool = true;
    type View<'a> = OptionalView<'a, T::View<'a>>;
    type Value<'a> = Option<T::Value<'a>>;
    type Builder = OptionalBuilder<T::Builder>;

    fn view(column: &Column, rows: usize) -> Result<Self::View<'_>, Mismatch> {
        let validity = column.validity.as_deref();
        match validity {
            Some(bitmap) if bitmap.len() < rows.div_ceil(8) => {
                Err(Mismatch::Rows { expected: rows, found: bitmap.len() * 8 })
            }
            _ => Ok(OptionalView { validity, values: T::view(column, rows)? }),
        }
    }

    #[inline(always)]
    fn value<'a>(view: &Self::View<'a>, row: usize) -> Self::Value<'a> {
        view.validity.is_none_or(|bitmap| is_set(bitmap, row)).then(|| T::value(&view.values, row))
    }

    fn builder(rows: usize) -> Self::Builder {
        OptionalBuilder { validity: BitBuilder::with_capacity(rows), values: T::builder(rows) }
    }

    #[inline]
    fn append_to(self, builder: &mut Self::Builder) {
        match self {
            Some(value) => {
                builder.validity.push(true);
                value.append_to(&mut builder.values);
            }
            None => Self::push_null(builder),
        }
    }

    fn push_null(builder: &mut Self::Builder) {
        builder.validity.push(false);
        T::push_null(&mut builder.values);
    }

    fn finish(builder: Self::Builder) -> Column {
        let column = T::finish(builder.values);
        Column { validity: builder.validity.into_validity(), values: column.values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_come_back() {
        let rows = [Some("a"), None, Some("")];
        let mut builder = <Option<&str>>::builder(3);
        rows.iter().for_each(|row| row.append_to(&mut builder));
        let column = <Option<&str>>::finish(builder);
        let view = <Option<&str>>::view(&column, 3).expect("a nullable text column");
        assert_eq!((0..3).map(|row| <Option<&str>>::value(&view, row)).collect::<Vec<_>>(), rows);
    }

    #[test]
    fn no_null_means_no_bitmap() {
        let mut builder = <Option<i64>>::builder(1);
        Some(7i64).append_to(&mut builder);
        assert_eq!(<Option<i64>>::finish(builder).validity, None);
    }

    #[test]
    fn a_short_bitmap_is_an_error() {
        let column = Column { validity: Some(vec![0xff]), ..crate::column::Values::Int64(vec![0; 9]).into() };
        assert!(<Option<i64>>::view(&column, 9).is_err());
    }
}

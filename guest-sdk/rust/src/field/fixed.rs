//! Fields of fixed width: a slice to read, a vector to write.

use super::Field;
use crate::bits::{BitBuilder, is_set};
use crate::column::{Column, Mismatch, Type, Values};
use crate::time::{Date, Timestamp};

macro_rules! fixed {
    ($field:ty, $type:ident, $values:ident($raw:ty), $from:expr, $into:expr) => {
        impl Field for $field {
            const TYPE: Type = Type::$type;
            type View<'a> = &'a [$raw];
            type Value<'a> = Self;
            type Builder = Vec<$raw>;

            #[inline]
            fn view(column: &Column, rows: usize) -> Result<Self::View<'_>, Mismatch> {
                let Values::$values(values) = &column.values else {
                    return Err(Mismatch::layout(Self::TYPE, &column.values));
                };
                match values.len() == rows {
                    true => Ok(values),
                    false => Err(Mismatch::Rows { expected: rows, found: values.len() }),
                }
            }

            #[inline(always)]
            fn value<'a>(view: &Self::View<'a>, row: usize) -> Self::Value<'a> {
                $from(view[row])
            }

            fn builder(rows: usize) -> Self::Builder {
                Vec::with_capacity(rows)
            }

            #[inline(always)]
            fn append_to(self, builder: &mut Self::Builder) {
                builder.push($into(self));
            }

            fn push_null(builder: &mut Self::Builder) {
                builder.push(<$raw>::default());
            }

            fn finish(builder: Self::Builder) -> Column {
                Values::$values(builder).into()
            }
        }
    };
}

fixed!(i32, Int32, Int32(i32), |raw| raw, |value| value);
fixed!(i64, Int64, Int64(i64), |raw| raw, |value| value);
fixed!(f32, Float32, Float32(f32), |raw| raw, |value| value);
fixed!(f64, Float64, Float64(f64), |raw| raw, |value| value);
fixed!(Timestamp, Timestamp, Int64(i64), Timestamp, |value: Timestamp| value.0);
fixed!(Date, Date, Int32(i32), Date, |value: Date| value.0);

impl Field for bool {
    const TYPE: Type = Type::Boolean;
    type View<'a> = &'a [u8];
    type Value<'a> = bool;
    type Builder = BitBuilder;

    fn view(column: &Column, rows: usize) -> Result<Self::View<'_>, Mismatch> {
        let Values::Bits(bits) = &column.values else {
            return Err(Mismatch::layout(Self::TYPE, &column.values));
        };
        match bits.len() >= rows.div_ceil(8) {
            true => Ok(bits),
            false => Err(Mismatch::Rows { expected: rows, found: bits.len() * 8 }),
        }
    }

    #[inline]
    fn value<'a>(view: &Self::View<'a>, row: usize) -> Self::Value<'a> {
        is_set(view, row)
    }

    fn builder(rows: usize) -> BitBuilder {
        BitBuilder::with_capacity(rows)
    }

    #[inline]
    fn append_to(self, builder: &mut BitBuilder) {
        builder.push(self);
    }

    fn push_null(builder: &mut BitBuilder) {
        builder.push(false);
    }

    fn finish(builder: BitBuilder) -> Column {
        Values::Bits(builder.finish()).into()
    }
}

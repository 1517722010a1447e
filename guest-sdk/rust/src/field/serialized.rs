//! Any serde type as one binary column, in postcard's format.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BytesView, Field};
use crate::column::{Column, Mismatch, Type, VarValues};

/// A value of any serde type, stored as one binary column in the postcard format.
///
/// Use it for what is no column: a map, a list, an enum. A savepoint shows it as bytes, and a change of the
/// type is a new version of the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Postcard<T>(pub T);

impl<T: Serialize + DeserializeOwned> Field for Postcard<T> {
    const TYPE: Type = Type::Binary;
    type View<'a> = BytesView<'a>;
    type Value<'a> = Self;
    type Builder = VarValues;

    fn view(column: &Column, rows: usize) -> Result<Self::View<'_>, Mismatch> {
        <&[u8]>::view(column, rows)
    }

    fn value<'a>(view: &Self::View<'a>, row: usize) -> Self::Value<'a> {
        let bytes = <&[u8]>::value(view, row);
        match postcard::from_bytes(bytes) {
            Ok(value) => Self(value),
            Err(error) => panic!(
                "{} bytes of a binary column are no `{}` in postcard ({error}); was the state written by \
                 another version of the function?",
                bytes.len(),
                std::any::type_name::<T>()
            ),
        }
    }

    fn builder(rows: usize) -> VarValues {
        <&[u8]>::builder(rows)
    }

    fn append_to(self, builder: &mut VarValues) {
        match postcard::to_extend(&self.0, std::mem::take(&mut builder.bytes)) {
            Ok(bytes) => builder.bytes = bytes,
            Err(error) => panic!("a `{}` cannot be written in postcard: {error}", std::any::type_name::<T>()),
        }
        builder.offsets.push(builder.bytes.len() as u32);
    }

    fn push_null(builder: &mut VarValues) {
        builder.push(&[]);
    }

    fn finish(builder: VarValues) -> Column {
        <&[u8]>::finish(builder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn maps_come_back() {
        let rows = [BTreeMap::from([(1, 2), (3, 4)]), BTreeMap::new()];
        let mut builder = Postcard::<BTreeMap<i32, u32>>::builder(2);
        rows.iter().for_each(|row| Postcard(row.clone()).append_to(&mut builder));
        let column = Postcard::<BTreeMap<i32, u32>>::finish(builder);
        let view = Postcard::<BTreeMap<i32, u32>>::view(&column, 2).expect("a binary column");
        let read = [0, 1].map(|row| Postcard::<BTreeMap<i32, u32>>::value(&view, row).0);
        assert_eq!(read, rows);
    }

    #[test]
    #[should_panic(expected = "3 bytes of a binary column are no `bool` in postcard")]
    fn foreign_bytes_say_so() {
        let mut values = VarValues::default();
        values.push(&[9, 9, 9]);
        let column = <&[u8]>::finish(values);
        let view = Postcard::<bool>::view(&column, 1).expect("a binary column");
        Postcard::<bool>::value(&view, 0);
    }
}

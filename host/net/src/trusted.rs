//! Arrays of text that have been checked already.
//!
//! Arrow checks each value of an array of text by itself, when the array is made. What comes from another process is checked
//! as one text, many times faster, and then not again.

use std::sync::Arc;

use arrow_array::StringViewArray;
use arrow_array::builder::make_view;
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};

/// The values of so many `lengths`, behind each other in `values`. Says what is wrong if they are no such thing: bytes that
/// are no UTF-8 or belong to no value, a value that begins within a character, or one where `nulls` has none.
pub(crate) fn text(
    lengths: &[u32],
    values: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<StringViewArray, String> {
    let all = std::str::from_utf8(&values).map_err(|error| format!("no UTF-8: {error}"))?;
    let views = views(lengths, &values, nulls.as_ref())?;
    let mut offset = 0;
    for (row, &length) in lengths.iter().enumerate() {
        if !all.is_char_boundary(offset) {
            return Err(format!("no UTF-8: row {row} begins within a character"));
        }
        offset += length as usize;
    }
    let buffers: Arc<[Buffer]> = Arc::new([values]);
    #[expect(unsafe_code, reason = "all values together have been checked, and where each begins")]
    // SAFETY: `views` made each view of the bytes that it shows: it lies within buffer 0, its prefix and inlined bytes are
    // copies, and what it does not use is zero. All bytes are UTF-8 and each value begins and ends at a character. `nulls`
    // has as many bits as there are views, as `views` looked each up.
    Ok(unsafe { StringViewArray::new_unchecked(views, buffers, nulls) })
}

/// Views of values that lie behind each other, all within the buffer 0.
pub(crate) fn views(
    lengths: &[u32],
    values: &[u8],
    nulls: Option<&NullBuffer>,
) -> Result<ScalarBuffer<u128>, String> {
    if let Some(nulls) = nulls.filter(|nulls| nulls.len() != lengths.len()) {
        return Err(format!("{} rows, and a bitmap of {}", lengths.len(), nulls.len()));
    }
    let mut views = Vec::with_capacity(lengths.len());
    let mut offset = 0usize;
    for (row, &length) in lengths.iter().enumerate() {
        if length > 0 && nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Err(format!("row {row} has no value, and one of {length} bytes"));
        }
        let end = offset + length as usize;
        let value =
            values.get(offset..end).ok_or_else(|| format!("the values end before that of row {row}"))?;
        let start = u32::try_from(offset).map_err(|_| "more than 4 GiB of values".to_owned())?;
        views.push(make_view(value, 0, start));
        offset = end;
    }
    match values.len() - offset {
        0 => Ok(views.into()),
        left => Err(format!("{left} bytes belong to no row")),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;

    fn read(values: &str, lengths: &[u32], nulls: Option<Vec<bool>>) -> Result<StringViewArray, String> {
        text(lengths, Buffer::from(values.as_bytes()), nulls.map(NullBuffer::from))
    }

    #[test]
    fn what_is_made_is_what_arrow_would_have_made() {
        let words = ["", "short", "exactly12byt", "thirteen byte", "äöü and something long enough", "ß"];
        let lengths: Vec<u32> = words.iter().map(|word| word.len() as u32).collect();
        let made = read(&words.concat(), &lengths, None).expect("good");
        assert!(made.iter().eq(words.iter().copied().map(Some)));
        let checked = StringViewArray::try_new(made.views().clone(), made.data_buffers().to_vec(), None);
        assert_eq!(checked.expect("arrow finds nothing"), made);
        let made = read("ab", &[1, 0, 1], Some(vec![true, false, true])).expect("good");
        assert_eq!((made.is_null(1), made.value(2)), (true, "b"));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for (values, lengths) in [("äö", &[1u32, 3][..]), ("ab", &[3]), ("ab", &[1]), ("ab", &[1, u32::MAX])]
        {
            assert!(read(values, lengths, None).is_err(), "{values} {lengths:?}");
        }
        assert!(text(&[1], Buffer::from(&[0xffu8][..]), None).is_err());
        assert!(read("a", &[1], Some(vec![false])).is_err());
        assert!(read("a", &[1], Some(vec![true, true])).is_err());
    }
}

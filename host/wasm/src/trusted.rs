//! The only unsafe code of this crate: two places where a check that has been made is not made again.

#![expect(unsafe_code, reason = "each use says what makes it sound")]

use std::sync::Arc;

use arrow_array::StringViewArray;
use arrow_buffer::{Buffer, NullBuffer};
use wasmtime::{Engine, component::Component};

/// A text column over one buffer, which is checked for UTF-8 once as a whole instead of once a row; or the row that
/// is not UTF-8. `offsets` ascend from 0 to the length of `bytes`, and `views` were made from them, row by row.
pub(crate) fn text(
    offsets: &[u32],
    bytes: Vec<u8>,
    views: Vec<u128>,
    nulls: Option<NullBuffer>,
) -> Result<StringViewArray, usize> {
    let whole = std::str::from_utf8(&bytes).map_err(|e| row_of(offsets, e.valid_up_to()))?;
    if !whole.is_ascii()
        && let Some(row) = offsets.iter().position(|&at| !whole.is_char_boundary(at as usize))
    {
        return Err(row.min(views.len().saturating_sub(1)));
    }
    let buffers = Arc::from([Buffer::from_vec(bytes)]);
    // SAFETY: the buffer as a whole is UTF-8 and no value starts or ends inside a character, so every value is; the
    // views lie within the buffer because they were made by slicing it.
    Ok(unsafe { StringViewArray::new_unchecked(views.into(), buffers, nulls) })
}

/// The row whose value holds the byte at `position`.
fn row_of(offsets: &[u32], position: usize) -> usize {
    offsets.partition_point(|&at| at as usize <= position).saturating_sub(1)
}

/// A component that [`Component::serialize`] of this very version of the engine made.
pub(crate) fn deserialize(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the machine code in `bytes` is run as it is, so they must be what this host has written. The only
    // caller is the compile cache, which reads files of its own directory: it belongs to the user that runs the host
    // and nobody else may write to it, the file's name is the digest of module, engine version and settings, and the
    // checksum in its header rules out a torn or rotten file. Modules from users never come this way.
    unsafe { Component::deserialize(engine, bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&[u8]]) -> Result<Vec<String>, usize> {
        let mut offsets = vec![0];
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend_from_slice(value);
            offsets.push(bytes.len() as u32);
        }
        let views = offsets
            .windows(2)
            .map(|p| arrow_array::builder::make_view(&bytes[p[0] as usize..p[1] as usize], 0, p[0]));
        let views = views.collect();
        text(&offsets, bytes, views, None)
            .map(|a| a.iter().map(|v| v.unwrap_or_default().to_owned()).collect())
    }

    #[test]
    fn text_is_taken_whole_and_split_at_characters() {
        assert_eq!(
            check(&[b"a", b"", "größer als zwölf Bytes".as_bytes()]).expect("text")[2],
            "größer als zwölf Bytes"
        );
        assert_eq!(check(&[]).expect("text").len(), 0);
        assert_eq!(check(&[b"a", b"\xff", b"b"]), Err(1));
        assert_eq!(check(&[b"ab", b"c\xc3", b"\xa4"]), Err(2), "a character across two rows");
    }
}

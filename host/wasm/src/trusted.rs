//! The only unsafe code of this crate: places where a check that has been made is not made again, and a parameter that
//! writes itself into the guest's memory.

#![expect(unsafe_code, reason = "each use says what makes it sound")]

use std::{mem::MaybeUninit, sync::Arc};

use arrow_array::{BinaryViewArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer};
use wasmtime::{
    Engine, ValRaw,
    component::{
        __internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LowerContext},
        Component, ComponentType, Lower,
    },
};

use crate::boundary::values::Values;

/// A text column over one buffer, which is checked for UTF-8 once as a whole instead of once a row; or the row that
/// is not UTF-8. The offsets ascend from 0 to the length of `bytes`.
pub(crate) fn text(
    offsets: &[u32],
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<StringViewArray, usize> {
    let whole = std::str::from_utf8(&bytes).map_err(|e| row_of(offsets, e.valid_up_to()))?;
    if !whole.is_ascii()
        && let Some(end) = offsets.iter().position(|&at| !whole.is_char_boundary(at as usize))
    {
        return Err(end.saturating_sub(1));
    }
    let views = views(offsets, &bytes);
    let buffers = Arc::from([Buffer::from_vec(bytes)]);
    // SAFETY: the buffer as a whole is UTF-8 and no value starts or ends inside a character, so every value is; the
    // views have just been made of the buffer, value by value.
    Ok(unsafe { StringViewArray::new_unchecked(views.into(), buffers, nulls) })
}

/// A column of bytes over one buffer. The offsets ascend from 0 to the length of `bytes`.
pub(crate) fn binary(offsets: &[u32], bytes: Vec<u8>, nulls: Option<NullBuffer>) -> BinaryViewArray {
    let views = views(offsets, &bytes);
    let buffers = Arc::from([Buffer::from_vec(bytes)]);
    // SAFETY: the views have just been made of the buffer, value by value.
    unsafe { BinaryViewArray::new_unchecked(views.into(), buffers, nulls) }
}

/// Arrow's view of each value: its length, and its first four bytes and its place or, up to twelve bytes, all of it.
fn views(offsets: &[u32], bytes: &[u8]) -> Vec<u128> {
    let view = |pair: &[u32]| {
        let (start, length) = (pair[0] as usize, pair[1] - pair[0]);
        if length > INLINE as u32 {
            let value = &bytes[start..start + length as usize];
            let prefix = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
            return u128::from(length) | u128::from(prefix) << 32 | u128::from(pair[0]) << 96;
        }
        // Twelve bytes are loaded at once where there are as many, and those of other values masked out.
        let (low, high) = match bytes[start..].first_chunk::<INLINE>() {
            Some(value) => halves(value),
            None => {
                let mut padded = [0; INLINE];
                padded[..length as usize].copy_from_slice(&bytes[start..start + length as usize]);
                halves(&padded)
            }
        };
        let (kept_low, kept_high) = KEPT[length as usize];
        u128::from(length) | u128::from(low & kept_low) << 32 | u128::from(high & kept_high) << 96
    };
    offsets.windows(2).map(view).collect()
}

/// Eight bytes and four as numbers, the first byte the lowest.
fn halves(value: &[u8; INLINE]) -> (u64, u32) {
    let [low @ .., a, b, c, d] = *value;
    (u64::from_le_bytes(low), u32::from_le_bytes([a, b, c, d]))
}

/// By length, the bits of a short value among those of twelve bytes.
const KEPT: [(u64, u32); INLINE + 1] = {
    let mut kept = [(0, 0); INLINE + 1];
    let mut length = 1;
    while length <= INLINE {
        kept[length] = match length <= 8 {
            true => (u64::MAX >> (64 - 8 * length), 0),
            false => (u64::MAX, u32::MAX >> (96 - 8 * length)),
        };
        length += 1;
    }
    kept
};

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

// SAFETY: to the engine this is a `[u8]`: type check, layout and lowered form are those of that type.
unsafe impl ComponentType for Values<'_> {
    type Lower = <[u8] as ComponentType>::Lower;

    const ABI: CanonicalAbiInfo = <[u8] as ComponentType>::ABI;

    fn typecheck(ty: &InterfaceType, types: &InstanceType<'_>) -> wasmtime::Result<()> {
        <[u8] as ComponentType>::typecheck(ty, types)
    }
}

// SAFETY: what `[u8]` is lowered to are the position of its bytes and their number. They are allocated by the guest's
// own `realloc`, whose answer the engine checks, and written through a checked slice of its memory.
unsafe impl Lower for Values<'_> {
    fn linear_lower_to_flat<T>(
        &self,
        context: &mut LowerContext<'_, T>,
        _: InterfaceType,
        to: &mut MaybeUninit<Self::Lower>,
    ) -> wasmtime::Result<()> {
        let at = lower_values(self, context)?;
        to.write([ValRaw::i64(at as i64), ValRaw::i64(self.bytes() as i64)]);
        Ok(())
    }

    fn linear_lower_to_memory<T>(
        &self,
        context: &mut LowerContext<'_, T>,
        _: InterfaceType,
        offset: usize,
    ) -> wasmtime::Result<()> {
        let at = lower_values(self, context)?;
        *context.get(offset) = u32::try_from(at)?.to_le_bytes();
        *context.get(offset + 4) = u32::try_from(self.bytes())?.to_le_bytes();
        Ok(())
    }
}

/// Puts values into memory that the guest allocates for them, and says where.
fn lower_values<T>(values: &Values<'_>, context: &mut LowerContext<'_, T>) -> wasmtime::Result<usize> {
    let bytes = values.bytes();
    let at = context.realloc(0, 0, 1, bytes)?;
    let room = context.as_slice_mut().get_mut(at..at + bytes);
    values.copy_to(
        room.ok_or_else(|| wasmtime::Error::msg("the guest's memory ends before what it allocated"))?,
    );
    Ok(at)
}

/// The longest value that a view holds itself, without a buffer.
const INLINE: usize = 12;

#[cfg(test)]
mod tests {
    use arrow_array::builder::make_view;

    use super::*;

    fn packed(values: &[&[u8]]) -> (Vec<u32>, Vec<u8>) {
        let ends = values.iter().scan(0, |end, value| {
            *end += value.len() as u32;
            Some(*end)
        });
        (std::iter::once(0).chain(ends).collect(), values.concat())
    }

    fn check(values: &[&[u8]]) -> Result<Vec<String>, usize> {
        let (offsets, bytes) = packed(values);
        text(&offsets, bytes, None).map(|a| a.iter().map(|v| v.unwrap_or_default().to_owned()).collect())
    }

    #[test]
    fn views_are_arrows() {
        let long = "0123456789abcdef0123456789".as_bytes();
        for lengths in [vec![0, 1, 4, 11, 12, 13, 26, 0, 12], vec![12, 12], vec![3], vec![13, 3, 0], vec![]] {
            let values: Vec<&[u8]> = lengths.iter().map(|&length| &long[..length]).collect();
            let (offsets, bytes) = packed(&values);
            // What Arrow makes of them itself, each in its place, and what it accepts.
            let made: Vec<u128> = values.iter().zip(&offsets).map(|(v, &at)| make_view(v, 0, at)).collect();
            assert_eq!(views(&offsets, &bytes), made);
            let array = binary(&offsets, bytes.clone(), None);
            let checked =
                BinaryViewArray::try_new(made.into(), vec![Buffer::from_vec(bytes)], None).expect("valid");
            assert_eq!(array, checked);
        }
    }

    #[test]
    fn text_is_taken_whole_and_split_at_characters() {
        assert_eq!(
            check(&[b"a", b"", "größer als zwölf Bytes".as_bytes()]).expect("text")[2],
            "größer als zwölf Bytes"
        );
        assert_eq!(check(&[]).expect("text").len(), 0);
        assert_eq!(check(&[b"a", b"\xff", b"b"]), Err(1));
        assert_eq!(check(&[b"ab", b"c\xc3", b"\xa4"]), Err(1), "a character across two rows");
    }
}

//! Encoding the keys of a batch: a column at a time where the key is one column without nulls, else row by row.

use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, StringViewArray, cast::AsArray, types};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType as ArrowType;

use super::{EncodedKeys, KeyError, NULL, PRESENT};
use crate::{Limits, hash_key};

/// Encodes the key of each row into `keys`, which is cleared first. The columns are ones of the host's types.
/// [`long_keys`](crate::long_keys) finds the rows for which it fails.
pub fn encode_keys(columns: &[&ArrayRef], rows: usize, keys: &mut EncodedKeys) -> Result<(), KeyError> {
    keys.clear();
    let columns: Vec<_> = columns.iter().map(|column| KeyColumn::new(column)).collect();
    let done = match &columns[..] {
        [KeyColumn { nulls: None, values }] => encode_column(values, keys),
        _ => false,
    };
    if !done {
        encode_rows(&columns, rows, keys)?;
    }
    let (offsets, bytes) = (&keys.offsets, &keys.bytes);
    keys.hashes.extend(offsets.windows(2).map(|w| hash_key(&bytes[w[0] as usize..w[1] as usize])));
    Ok(())
}

/// The hash of each row's key, into `hashes`, which is cleared first: [`encode_keys`] for those who only deal rows out.
/// `keys` is used where the bytes of the keys have to be laid out for it.
pub fn hash_keys(
    columns: &[&ArrayRef],
    rows: usize,
    keys: &mut EncodedKeys,
    hashes: &mut Vec<u64>,
) -> Result<(), KeyError> {
    hashes.clear();
    let done = match columns {
        [column] => {
            let KeyColumn { nulls, values } = KeyColumn::new(column);
            nulls.is_none() && hash_column(&values, hashes)
        }
        _ => false,
    };
    if !done {
        encode_keys(columns, rows, keys)?;
        hashes.clear();
        hashes.extend_from_slice(keys.hashes());
    }
    Ok(())
}

/// The hashes of the usual keys, whose bytes are never in memory. Otherwise it says so.
fn hash_column(values: &KeyValues<'_>, hashes: &mut Vec<u64>) -> bool {
    match values {
        KeyValues::Int32(values) => hash_fixed(values, |&value| flip_i32(value), hashes),
        KeyValues::Int64(values) => hash_fixed(values, |&value| flip_i64(value), hashes),
        KeyValues::Text(values) => return hash_views(values.views(), hashes),
        KeyValues::Bytes(values) => return hash_views(values.views(), hashes),
        _ => return false,
    }
    true
}

fn hash_fixed<T, const N: usize>(values: &[T], encode: impl Fn(&T) -> [u8; N], hashes: &mut Vec<u64>) {
    let mut keys = [[PRESENT; LONGEST_FIXED]; STRIDE];
    hashes.reserve(values.len());
    for some in values.chunks(STRIDE) {
        for (key, value) in keys.iter_mut().zip(some) {
            key[1..=N].copy_from_slice(&encode(value));
        }
        hashes.extend(keys.iter().take(some.len()).map(|key| hash_key(&key[..=N])));
    }
}

/// As long as views hold their values and nothing has to be escaped.
fn hash_views(views: &[u128], hashes: &mut Vec<u64>) -> bool {
    let mut keys = [[0; size_of::<u128>()]; STRIDE];
    hashes.reserve(views.len());
    for some in views.chunks(STRIDE) {
        for (key, &view) in keys.iter_mut().zip(some) {
            let length = length(view);
            if length > INLINE || !frame_short(view, length, key) {
                return false;
            }
        }
        let framed = keys.iter().zip(some);
        hashes.extend(framed.map(|(key, &view)| hash_key(&key[..length(view) + FRAME])));
    }
    true
}

/// A column of a key.
struct KeyColumn<'a> {
    nulls: Option<&'a NullBuffer>,
    values: KeyValues<'a>,
}

/// Its values, as they lie in memory.
enum KeyValues<'a> {
    Boolean(&'a BooleanArray),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Text(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
}

impl<'a> KeyColumn<'a> {
    fn new(column: &'a ArrayRef) -> Self {
        let values = match column.data_type() {
            ArrowType::Boolean => KeyValues::Boolean(column.as_boolean()),
            ArrowType::Int32 => KeyValues::Int32(column.as_primitive::<types::Int32Type>().values()),
            ArrowType::Date32 => KeyValues::Int32(column.as_primitive::<types::Date32Type>().values()),
            ArrowType::Int64 => KeyValues::Int64(column.as_primitive::<types::Int64Type>().values()),
            ArrowType::Timestamp(..) => {
                KeyValues::Int64(column.as_primitive::<types::TimestampMillisecondType>().values())
            }
            ArrowType::Float32 => KeyValues::Float32(column.as_primitive::<types::Float32Type>().values()),
            ArrowType::Float64 => KeyValues::Float64(column.as_primitive::<types::Float64Type>().values()),
            ArrowType::Utf8View => KeyValues::Text(column.as_string_view()),
            ArrowType::BinaryView => KeyValues::Bytes(column.as_binary_view()),
            other => unreachable!("no stream has a column of type {other}"),
        };
        Self { nulls: column.nulls().filter(|nulls| nulls.null_count() > 0), values }
    }

    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return out.push(NULL);
        }
        out.push(PRESENT);
        match &self.values {
            KeyValues::Boolean(values) => out.push(u8::from(values.value(row))),
            KeyValues::Int32(values) => out.extend(flip_i32(values[row])),
            KeyValues::Int64(values) => out.extend(flip_i64(values[row])),
            KeyValues::Float32(values) => out.extend(order_f32(values[row])),
            KeyValues::Float64(values) => out.extend(order_f64(values[row])),
            KeyValues::Text(values) => escape(values.value(row).as_bytes(), out),
            KeyValues::Bytes(values) => escape(values.value(row), out),
        }
    }
}

/// Appends one value of a key.
pub(crate) fn encode_value(column: &ArrayRef, row: usize, out: &mut Vec<u8>) {
    KeyColumn::new(column).encode(row, out);
}

/// Any columns, row by row.
fn encode_rows(columns: &[KeyColumn<'_>], rows: usize, keys: &mut EncodedKeys) -> Result<(), KeyError> {
    keys.offsets.reserve(rows);
    for row in 0..rows {
        let start = keys.bytes.len();
        columns.iter().for_each(|column| column.encode(row, &mut keys.bytes));
        let bytes = keys.bytes.len() - start;
        if bytes > Limits::KEY_BYTES {
            return Err(KeyError::TooLong { row, bytes });
        }
        keys.offsets.push(keys.bytes.len() as u32);
    }
    Ok(())
}

/// The usual keys, in loops without a branch a byte. Otherwise it says so and leaves no key.
fn encode_column(values: &KeyValues<'_>, keys: &mut EncodedKeys) -> bool {
    match values {
        KeyValues::Int32(values) => encode_fixed(values, |&value| flip_i32(value), keys),
        KeyValues::Int64(values) => encode_fixed(values, |&value| flip_i64(value), keys),
        KeyValues::Text(values) => return encode_views(values.views(), values.data_buffers(), keys),
        KeyValues::Bytes(values) => return encode_views(values.views(), values.data_buffers(), keys),
        _ => return false,
    }
    true
}

fn encode_fixed<T, const N: usize>(values: &[T], encode: impl Fn(&T) -> [u8; N], keys: &mut EncodedKeys) {
    let width = N + 1;
    keys.bytes.resize(values.len() * width, PRESENT);
    for (slot, value) in keys.bytes.chunks_exact_mut(width).zip(values) {
        slot[1..].copy_from_slice(&encode(value));
    }
    keys.offsets.extend((1..=values.len()).map(|i| (i * width) as u32));
}

/// Text and bytes in which nothing has to be escaped. A value that its view holds is framed in a register and stored as
/// a whole; what is too much of it the next one covers.
fn encode_views(views: &[u128], buffers: &[Buffer], keys: &mut EncodedKeys) -> bool {
    let total = views.iter().map(|&view| length(view) + FRAME).sum::<usize>();
    if u32::try_from(total).is_err() {
        return false;
    }
    keys.bytes.resize(total + size_of::<u128>(), 0);
    let mut at = 0;
    for &view in views {
        let length = length(view);
        let encoded = match length <= INLINE {
            true => frame_short(view, length, &mut keys.bytes[at..at + size_of::<u128>()]),
            false => frame_long(view, length, buffers, &mut keys.bytes[at..at + length + FRAME]),
        };
        if !encoded {
            keys.clear();
            return false;
        }
        at += length + FRAME;
        keys.offsets.push(at as u32);
    }
    keys.bytes.truncate(total);
    true
}

#[inline]
fn frame_short(view: u128, length: usize, slot: &mut [u8]) -> bool {
    let filled = FILLED[length];
    let value = view >> 32 & filled;
    slot.copy_from_slice(&(value << 8 | u128::from(PRESENT)).to_le_bytes());
    !has_zero_byte(value | !filled)
}

fn frame_long(view: u128, length: usize, buffers: &[Buffer], slot: &mut [u8]) -> bool {
    let (buffer, start) = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
    let value = &buffers[buffer][start..start + length];
    slot[0] = PRESENT;
    slot[1..=length].copy_from_slice(value);
    slot[length + 1..].fill(0);
    length + FRAME <= Limits::KEY_BYTES && !value.contains(&0)
}

/// Whether one of sixteen bytes is zero: only from such a byte does subtracting one borrow into a clear high bit.
fn has_zero_byte(bytes: u128) -> bool {
    const ONES: u128 = u128::MAX / 0xff;
    bytes.wrapping_sub(ONES) & !bytes & (ONES << 7) != 0
}

fn length(view: u128) -> usize {
    view as u32 as usize
}

fn flip_i32(value: i32) -> [u8; 4] {
    (value ^ i32::MIN).to_be_bytes()
}

fn flip_i64(value: i64) -> [u8; 8] {
    (value ^ i64::MIN).to_be_bytes()
}

fn order_f32(value: f32) -> [u8; 4] {
    let value = if value.is_nan() { f32::NAN.abs() } else { value + 0.0 };
    let bits = value.to_bits();
    (if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }).to_be_bytes()
}

fn order_f64(value: f64) -> [u8; 8] {
    let value = if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
    let bits = value.to_bits();
    (if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes()
}

fn escape(value: &[u8], out: &mut Vec<u8>) {
    for part in value.split_inclusive(|&b| b == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(0xff);
        }
    }
    out.extend([0, 0]);
}

/// Keys that are laid out before the first of them is hashed. Reading back across the writes that have just made it
/// waits until they have reached the cache, so one key at a time took four times as long.
const STRIDE: usize = 64;
/// An encoded number with its marker, at most.
const LONGEST_FIXED: usize = 9;
/// The marker before text or bytes and the terminator behind it.
const FRAME: usize = 3;
/// The longest value that a view holds itself.
const INLINE: usize = 12;

/// By length, the bits of a value that a view holds.
const FILLED: [u128; INLINE + 1] = {
    let mut filled = [0; INLINE + 1];
    let mut length = 1;
    while length <= INLINE {
        filled[length] = filled[length - 1] << 8 | 0xff;
        length += 1;
    }
    filled
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The same keys from the loop over a column and from the one over rows.
    fn both(values: &[&[u8]]) -> (EncodedKeys, EncodedKeys) {
        let array: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(values));
        let (mut one, mut other) = (EncodedKeys::new(), EncodedKeys::new());
        encode_keys(&[&array], values.len(), &mut one).expect("short keys");
        encode_rows(&[KeyColumn::new(&array)], values.len(), &mut other).expect("short keys");
        (one, other)
    }

    #[test]
    fn the_loops_over_columns_and_over_rows_agree() {
        let long: Vec<u8> = (1..=255).cycle().take(300).collect();
        for length in (0..40).chain([255, 300]) {
            let value = &long[..length];
            let (one, other) = both(&[b"before", value, b"", value, b"a little longer"]);
            assert_eq!((one.offsets, one.bytes), (other.offsets, other.bytes));
            for zero in 0..length {
                let mut value = value.to_vec();
                value[zero] = 0;
                let (one, other) = both(&[b"before", &value, &[0xff, 0x80, 1]]);
                assert_eq!((one.offsets, one.bytes), (other.offsets, other.bytes));
            }
        }
    }

    #[test]
    fn hashes_are_those_of_the_encoded_keys() {
        let texts: [&[u8]; 6] = [b"", b"a", b"twelve bytes", b"thirteen byte", b"a zero\0", b"z"];
        let all: Vec<ArrayRef> = vec![
            Arc::new(arrow_array::Int64Array::from(vec![1, -1, i64::MAX])),
            Arc::new(arrow_array::Int64Array::from(vec![Some(1), None])),
            Arc::new(arrow_array::Int32Array::from(vec![1, -1])),
            Arc::new(arrow_array::Float64Array::from(vec![1.0, f64::NAN])),
            Arc::new(BooleanArray::from(vec![true, false])),
            Arc::new(BinaryViewArray::from_iter_values(&texts[..3])),
            Arc::new(BinaryViewArray::from_iter_values(texts)),
            Arc::new(StringViewArray::from(vec![Some("x"), None])),
            Arc::new(arrow_array::Int64Array::from_iter_values(0..3 * STRIDE as i64 + 1)),
            Arc::new(StringViewArray::from_iter_values((0..2 * STRIDE).map(|i| "a".repeat(i % 13)))),
        ];
        for column in all {
            let (mut encoded, mut scratch, mut hashes) = (EncodedKeys::new(), EncodedKeys::new(), vec![7]);
            encode_keys(&[&column], column.len(), &mut encoded).expect("short keys");
            hash_keys(&[&column], column.len(), &mut scratch, &mut hashes).expect("short keys");
            assert_eq!(hashes, encoded.hashes());
            assert!(encoded.iter().zip(&hashes).all(|(key, hash)| hash_key(key) == *hash));
        }
    }

    #[test]
    fn a_zero_byte_is_seen_wherever_it_is() {
        for at in 0..16 {
            for other in [1_u8, 0x7f, 0x80, 0xff] {
                let mut bytes = [other; 16];
                assert!(!has_zero_byte(u128::from_le_bytes(bytes)));
                bytes[at] = 0;
                assert!(has_zero_byte(u128::from_le_bytes(bytes)));
            }
        }
    }
}

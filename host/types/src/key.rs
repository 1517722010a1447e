//! The encoding of keys: bytes that sort as the key's columns do.
//!
//! Keys reach disk, wire and placement in this form, so it never changes. Per column:
//!
//! | value | bytes |
//! |---|---|
//! | null | `00` |
//! | any other | `01`, then |
//! | boolean | `00` or `01` |
//! | integer, date, timestamp | big endian with the sign bit flipped |
//! | float | its bits big endian, all flipped if negative, else the sign bit; `-0` as `0`, every NaN as one |
//! | text, bytes | the bytes with `00` as `00 FF`, then `00 00` |

mod encode;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, TimestampMillisecondArray,
    builder::BinaryViewBuilder, builder::StringViewBuilder, types,
};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};

pub(crate) use self::encode::encode_value;
pub use self::encode::{encode_keys, hash_keys};
use crate::{DataType, Limits};

/// Encoded keys, one a row, each with its hash.
#[derive(Clone, Debug, Default)]
pub struct EncodedKeys {
    offsets: Vec<u32>,
    bytes: Vec<u8>,
    hashes: Vec<u64>,
}

impl EncodedKeys {
    /// No key yet.
    pub fn new() -> Self {
        Self { offsets: vec![0], bytes: Vec::new(), hashes: Vec::new() }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The bytes of one key.
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        &self.bytes[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// The hash of one key, [`hash_key`](crate::hash_key) of its bytes.
    #[inline]
    pub fn hash(&self, index: usize) -> u64 {
        self.hashes[index]
    }

    /// The hashes of all keys.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Appends a key with its hash.
    pub fn push(&mut self, key: &[u8], hash: u64) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.bytes.extend_from_slice(key);
        self.offsets.push(self.bytes.len() as u32);
        self.hashes.push(hash);
    }

    /// Makes room for `keys` more keys of up to `bytes` bytes in all.
    pub fn reserve(&mut self, keys: usize, bytes: usize) {
        self.offsets.reserve(keys + 1);
        self.bytes.reserve(bytes);
        self.hashes.reserve(keys);
    }

    /// Appends the keys of another set.
    pub fn append(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        let before = self.bytes.len() as u32;
        self.offsets.extend(other.offsets.iter().skip(1).map(|end| before + end));
        self.bytes.extend_from_slice(&other.bytes);
        self.hashes.extend_from_slice(&other.hashes);
    }

    /// Forgets all keys and keeps the memory.
    pub fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.push(0);
        self.bytes.clear();
        self.hashes.clear();
    }

    /// All keys in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.key(i))
    }
}

/// Rows that cannot be keyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A key is longer than [`Limits::KEY_BYTES`].
    #[error("the key of row {row} takes {bytes} bytes: at most {max} are allowed", max = Limits::KEY_BYTES)]
    TooLong {
        /// The row in its batch.
        row: usize,
        /// The encoded length.
        bytes: usize,
    },
    /// Stored bytes are no key of these columns.
    #[error("a stored key is damaged: column {column} of type {data_type} cannot be read")]
    Damaged {
        /// Position of the column in the key.
        column: usize,
        /// Its type.
        data_type: DataType,
    },
}

/// Reads keys back into columns: what a function gets as its key columns, and what `extend` adds to a fired window.
#[derive(Clone, Debug)]
pub struct KeyReader {
    columns: Vec<DataType>,
}

impl KeyReader {
    /// A reader of keys of these columns.
    pub fn new(columns: impl Into<Vec<DataType>>) -> Self {
        Self { columns: columns.into() }
    }

    /// One array a key column, one row a key.
    pub fn read<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>, KeyError> {
        let mut rest: Vec<&[u8]> = keys.collect();
        let read = |(i, &t)| read_column(t, &mut rest).ok_or(KeyError::Damaged { column: i, data_type: t });
        self.columns.iter().enumerate().map(read).collect()
    }
}

fn read_column(data_type: DataType, keys: &mut [&[u8]]) -> Option<ArrayRef> {
    let array: ArrayRef = match data_type {
        DataType::Boolean => {
            let (values, nulls) = fixed(keys, |b: [u8; 1]| b[0] != 0)?;
            Arc::new(BooleanArray::new(values.into(), nulls))
        }
        DataType::Int32 => numbers::<types::Int32Type, 4>(keys, unflip_i32)?,
        DataType::Date => numbers::<types::Date32Type, 4>(keys, unflip_i32)?,
        DataType::Int64 => numbers::<types::Int64Type, 8>(keys, unflip_i64)?,
        DataType::Timestamp => {
            let (values, nulls) = fixed(keys, unflip_i64)?;
            Arc::new(TimestampMillisecondArray::new(values.into(), nulls).with_timezone("UTC"))
        }
        DataType::Float32 => numbers::<types::Float32Type, 4>(keys, unorder_f32)?,
        DataType::Float64 => numbers::<types::Float64Type, 8>(keys, unorder_f64)?,
        DataType::Utf8 => {
            let mut text = StringViewBuilder::with_capacity(keys.len());
            for key in keys {
                text.append_option(unescape(key)?.map(String::from_utf8).transpose().ok()?);
            }
            Arc::new(text.finish())
        }
        DataType::Binary => {
            let mut bytes = BinaryViewBuilder::with_capacity(keys.len());
            for key in keys {
                bytes.append_option(unescape(key)?);
            }
            Arc::new(bytes.finish())
        }
    };
    Some(array)
}

fn numbers<T: ArrowPrimitiveType, const N: usize>(
    keys: &mut [&[u8]],
    decode: impl Fn([u8; N]) -> T::Native,
) -> Option<ArrayRef> {
    let (values, nulls) = fixed(keys, decode)?;
    Some(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}

/// Takes a value of `N` bytes, or a null, off the front of every key. There are no null bits if no key has a null.
fn fixed<T: Default, const N: usize>(
    keys: &mut [&[u8]],
    decode: impl Fn([u8; N]) -> T,
) -> Option<(Vec<T>, Option<NullBuffer>)> {
    let mut values = Vec::with_capacity(keys.len());
    let mut nulls = Vec::new();
    for (row, key) in keys.iter_mut().enumerate() {
        if take_marker(key)? {
            let (value, rest) = key.split_first_chunk::<N>()?;
            *key = rest;
            values.push(decode(*value));
        } else {
            nulls.push(row);
            values.push(T::default());
        }
    }
    let validity = || {
        let mut valid = BooleanBufferBuilder::new(values.len());
        valid.append_n(values.len(), true);
        nulls.iter().for_each(|&row| valid.set_bit(row, false));
        NullBuffer::new(valid.finish())
    };
    let validity = (!nulls.is_empty()).then(validity);
    Some((values, validity))
}

/// Whether a value follows.
fn take_marker(key: &mut &[u8]) -> Option<bool> {
    let (&marker, rest) = key.split_first()?;
    *key = rest;
    match marker {
        NULL => Some(false),
        PRESENT => Some(true),
        _ => None,
    }
}

fn unescape(key: &mut &[u8]) -> Option<Option<Vec<u8>>> {
    if !take_marker(key)? {
        return Some(None);
    }
    let mut value = Vec::new();
    loop {
        let end = key.iter().position(|&b| b == 0)?;
        value.extend_from_slice(&key[..end]);
        let mark = *key.get(end + 1)?;
        *key = &key[end + 2..];
        match mark {
            0 => return Some(Some(value)),
            0xff => value.push(0),
            _ => return None,
        }
    }
}

fn unflip_i32(bytes: [u8; 4]) -> i32 {
    i32::from_be_bytes(bytes) ^ i32::MIN
}

fn unflip_i64(bytes: [u8; 8]) -> i64 {
    i64::from_be_bytes(bytes) ^ i64::MIN
}

fn unorder_f32(bytes: [u8; 4]) -> f32 {
    let bits = u32::from_be_bytes(bytes);
    f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })
}

fn unorder_f64(bytes: [u8; 8]) -> f64 {
    let bits = u64::from_be_bytes(bytes);
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

const NULL: u8 = 0;
const PRESENT: u8 = 1;

#[cfg(test)]
mod tests {
    use arrow_array::{
        Array, BinaryViewArray, Float32Array, Float64Array, Int32Array, Int64Array, StringViewArray,
    };

    use super::*;

    fn encode(columns: &[ArrayRef]) -> EncodedKeys {
        let mut keys = EncodedKeys::new();
        encode_keys(&columns.iter().collect::<Vec<_>>(), columns[0].len(), &mut keys).expect("short keys");
        keys
    }

    fn hex(column: ArrayRef) -> Vec<String> {
        let text = |key: &[u8]| key.iter().map(|b| format!("{b:02x}")).collect();
        encode(&[column]).iter().map(text).collect()
    }

    #[test]
    fn golden_bytes() {
        let ints = Arc::new(Int64Array::from(vec![Some(1), None, Some(-1)]));
        assert_eq!(hex(ints), ["018000000000000001", "00", "017fffffffffffffff"]);
        assert_eq!(
            hex(Arc::new(Int64Array::from(vec![1, -1]))),
            ["018000000000000001", "017fffffffffffffff"]
        );
        assert_eq!(hex(Arc::new(Int32Array::from(vec![258]))), ["0180000102"]);
        assert_eq!(hex(Arc::new(BooleanArray::from(vec![true, false]))), ["0101", "0100"]);
        let floats = Float64Array::from(vec![1.0, -1.0, 0.0, -0.0]);
        let zero = "018000000000000000";
        assert_eq!(hex(Arc::new(floats)), ["01bff0000000000000", "01400fffffffffffff", zero, zero]);
        let nans = Float64Array::from(vec![f64::NAN, -f64::NAN]);
        assert_eq!(hex(Arc::new(nans)), ["01fff8000000000000"; 2]);
        assert_eq!(hex(Arc::new(StringViewArray::from(vec!["AA", ""]))), ["0141410000", "010000"]);
        let bytes = BinaryViewArray::from_iter_values([&b"\0a"[..], b"\0"]);
        assert_eq!(hex(Arc::new(bytes)), ["0100ff610000", "0100ff0000"]);
    }

    #[test]
    fn bytes_sort_as_values_do() {
        let texts = ["", "\0", "\0\0", "\0a", "a", "a\0", "aa", "b"];
        let keys = encode(&[Arc::new(StringViewArray::from(texts.to_vec()))]);
        assert!(keys.iter().collect::<Vec<_>>().is_sorted());
        let floats =
            vec![f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        assert!(encode(&[Arc::new(Float64Array::from(floats))]).iter().collect::<Vec<_>>().is_sorted());
        let ints = vec![i32::MIN, -2, 0, 3, i32::MAX];
        assert!(encode(&[Arc::new(Int32Array::from(ints))]).iter().collect::<Vec<_>>().is_sorted());
    }

    #[test]
    fn what_was_encoded_is_read_back() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringViewArray::from(vec![Some("x\0y"), None, Some("")])),
            Arc::new(Int32Array::from(vec![None, Some(-7), Some(7)])),
            Arc::new(Float32Array::from(vec![Some(-2.5), None, Some(0.0)])),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(TimestampMillisecondArray::from(vec![Some(5), Some(-5), None]).with_timezone("UTC")),
        ];
        let reader = KeyReader::new([
            DataType::Utf8,
            DataType::Int32,
            DataType::Float32,
            DataType::Boolean,
            DataType::Timestamp,
        ]);
        let read = reader.read(encode(&columns).iter()).expect("just encoded");
        assert_eq!(read, columns);
    }

    #[test]
    fn damaged_keys_are_refused() {
        let reader = KeyReader::new([DataType::Int64]);
        let damaged: [&[u8]; 3] = [b"", &[1, 2, 3], &[9, 0, 0, 0, 0, 0, 0, 0, 0]];
        for key in damaged {
            let error = reader.read([key].into_iter()).expect_err("damaged");
            assert_eq!(error, KeyError::Damaged { column: 0, data_type: DataType::Int64 });
        }
    }

    #[test]
    fn a_key_too_long_is_refused() {
        let long: ArrayRef = Arc::new(StringViewArray::from(vec!["x".repeat(Limits::KEY_BYTES)]));
        let error = encode_keys(&[&long], 1, &mut EncodedKeys::new()).expect_err("too long");
        assert_eq!(error, KeyError::TooLong { row: 0, bytes: Limits::KEY_BYTES + 3 });
    }
}

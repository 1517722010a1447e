//! Keys within a map state, as bytes in their order.

use crate::time::{Date, Timestamp};

/// A type that may be the key of a [`MapState`](crate::MapState): its bytes are in its own order, so that a
/// scan of the map goes from the smallest key to the greatest.
pub trait MapKey: Sized + Ord {
    /// The key's bytes.
    fn to_bytes(&self) -> Vec<u8>;
    /// The key again; none if the bytes are those of another type.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

macro_rules! integer {
    ($($signed:ty as $unsigned:ty),*) => {
        $(impl MapKey for $signed {
            fn to_bytes(&self) -> Vec<u8> {
                // With the sign flipped, unsigned big-endian order is signed order.
                (*self as $unsigned ^ 1 << (<$unsigned>::BITS - 1)).to_be_bytes().to_vec()
            }

            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                let bits = <$unsigned>::from_be_bytes(bytes.try_into().ok()?);
                Some((bits ^ 1 << (<$unsigned>::BITS - 1)) as $signed)
            }
        })*
    };
}

integer!(i32 as u32, i64 as u64);

impl MapKey for Timestamp {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        i64::from_bytes(bytes).map(Timestamp)
    }
}

impl MapKey for Date {
    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        i32::from_bytes(bytes).map(Date)
    }
}

impl MapKey for String {
    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

impl MapKey for Vec<u8> {
    fn to_bytes(&self) -> Vec<u8> {
        self.clone()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_in_the_order_of_the_keys() {
        let keys = [i64::MIN, -300, -1, 0, 1, 255, 256, i64::MAX];
        let bytes: Vec<_> = keys.iter().map(MapKey::to_bytes).collect();
        assert!(bytes.is_sorted());
        assert!(keys.iter().zip(&bytes).all(|(key, bytes)| i64::from_bytes(bytes) == Some(*key)));
    }

    #[test]
    fn bytes_of_another_type_are_no_key() {
        assert_eq!(i32::from_bytes(&[1, 2]), None);
        assert_eq!(String::from_bytes(&[0xff]), None);
    }
}

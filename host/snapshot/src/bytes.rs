//! Numbers, texts and lists as bytes: the alphabet of `FORMAT.md`.

use crate::SnapshotError;

/// Writes values one behind the other.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend(value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.bytes.extend(value.to_le_bytes());
    }

    /// The length as a `u32`, then the bytes. What is longer does not get here: state of that size has files.
    pub(crate) fn blob(&mut self, value: &[u8]) {
        self.u32(u32::try_from(value.len()).expect("inline values are short"));
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.u32(u32::try_from(items.len()).expect("lists of a job's parts are short"));
        items.iter().for_each(|item| write(self, item));
    }
}

/// Reads values one behind the other.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, SnapshotError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, SnapshotError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, SnapshotError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, SnapshotError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, SnapshotError> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, SnapshotError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.malformed(format!("{other} is neither 0 nor 1"))),
        }
    }

    pub(crate) fn blob(&mut self) -> Result<&'a [u8], SnapshotError> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<String, SnapshotError> {
        let text = std::str::from_utf8(self.blob()?).map(str::to_owned);
        text.map_err(|e| self.malformed(format!("no UTF-8: {e}")))
    }

    /// A list. Its length is not believed before its items are there.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, SnapshotError>,
    ) -> Result<Vec<T>, SnapshotError> {
        let length = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// Expects that nothing is left.
    pub(crate) fn end(self) -> Result<(), SnapshotError> {
        let left = self.bytes.len() - self.at;
        if left == 0 { Ok(()) } else { Err(self.malformed(format!("{left} bytes too many"))) }
    }

    pub(crate) fn malformed(&self, problem: String) -> SnapshotError {
        SnapshotError::Malformed { at: self.at, problem }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let bytes = self.take(N)?;
        Ok(*bytes.first_chunk().expect("as many as were asked for"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], SnapshotError> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..length) else {
            return Err(self.malformed(format!("{length} bytes expected, {} left", rest.len())));
        };
        self.at += length;
        Ok(taken)
    }
}

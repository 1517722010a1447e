//! Objects that are written piece by piece, as they would not fit into memory.

use bytes::{Bytes, BytesMut};
use millstream_snapshot::Checksum;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload, path::Path as Key};

use crate::{Storage, StorageError};

/// An object that is being written. It is there once [`Upload::finish`] returns, and not at all before.
#[derive(Debug)]
pub struct Upload {
    storage: Storage,
    path: String,
    /// What is not a part yet.
    rest: BytesMut,
    /// The bytes of a part.
    part: usize,
    /// Begun with the first part that is full: small objects are put at once.
    parts: Option<Box<dyn MultipartUpload>>,
    length: u64,
    checksum: Checksum,
}

/// What has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// How many bytes.
    pub length: u64,
    /// What they hash to.
    pub checksum: u64,
}

impl Upload {
    pub(crate) fn new(storage: Storage, path: String) -> Self {
        let (rest, checksum) = (BytesMut::new(), Checksum::default());
        let part = if storage.is_folder() { PART_IN_A_FOLDER } else { PART };
        Self { storage, path, rest, part, parts: None, length: 0, checksum }
    }

    /// Appends bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), StorageError> {
        self.length += bytes.len() as u64;
        self.checksum.update(bytes);
        let mut left = bytes;
        while !left.is_empty() {
            let (now, later) = left.split_at(left.len().min(self.part - self.rest.len()));
            self.rest.extend_from_slice(now);
            left = later;
            if self.rest.len() == self.part {
                let part = self.rest.split().freeze();
                self.put_part(part).await?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and makes the object durable.
    pub async fn finish(mut self) -> Result<Uploaded, StorageError> {
        match self.complete().await {
            Ok(()) => Ok(Uploaded { length: self.length, checksum: self.checksum.digest() }),
            Err(error) => {
                self.abort().await;
                Err(error)
            }
        }
    }

    async fn complete(&mut self) -> Result<(), StorageError> {
        let rest = self.rest.split().freeze();
        if self.parts.is_none() {
            return self.storage.put(&self.path, rest).await;
        }
        if !rest.is_empty() {
            self.put_part(rest).await?;
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let completed = parts.complete().await;
        completed.map(drop).map_err(|e| self.failed(e))
    }

    /// Takes back what has been written.
    pub async fn abort(mut self) {
        if let Some(mut parts) = self.parts.take()
            && let Err(error) = parts.abort().await
        {
            tracing::debug!(path = self.storage.name_of(&self.path), %error, "parts of an object are left");
        }
    }

    async fn put_part(&mut self, part: Bytes) -> Result<(), StorageError> {
        if self.parts.is_none() {
            let begun = self.storage.store().put_multipart(&Key::from(self.path.as_str())).await;
            self.parts = Some(begun.map_err(|e| self.failed(e))?);
        }
        let Some(parts) = &mut self.parts else { return Ok(()) };
        let put = parts.put_part(PutPayload::from_bytes(part)).await;
        put.map_err(|e| self.failed(e))
    }

    fn failed(&self, error: object_store::Error) -> StorageError {
        StorageError::access(self.storage.name_of(&self.path), "write the object", error)
    }
}

/// Bytes of a part: object stores take no smaller ones, but for the last.
const PART: usize = 5 << 20;
/// A folder takes any, and the job has its memory for other things.
const PART_IN_A_FOLDER: usize = 1 << 20;

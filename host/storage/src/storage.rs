//! A place for snapshots, whatever it is.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{TryStreamExt, stream::BoxStream};
use object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion, WriteMultipart,
    local::LocalFileSystem, path::Path as Key,
};

use crate::{StorageError, place::Place, s3};

/// A place with objects by path. Clones share it.
#[derive(Clone, Debug)]
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    /// How messages and commands name it, wherever they are read: absolute, without a slash at the end.
    name: String,
    /// The folder, if it is one of this machine.
    folder: Option<Arc<Path>>,
}

impl Storage {
    /// Opens `s3://BUCKET/PREFIX`, or `file:PATH` or a plain path, from `base` on if it is relative; makes the folder.
    pub fn open(location: &str, base: &Path) -> Result<Self, StorageError> {
        match Place::parse(location)? {
            Place::Folder(path) => Self::folder(&base.join(path)),
            Place::S3 { bucket, prefix } => {
                let name = Place::S3 { bucket, prefix }.to_string();
                Ok(Self { store: s3::open(bucket, prefix)?, name, folder: None })
            }
        }
    }

    /// Opens a place that somebody has stored something in: a folder has to be there.
    pub fn open_existing(location: &str) -> Result<Self, StorageError> {
        if let Place::Folder(path) = Place::parse(location)?
            && !path.is_dir()
        {
            let problem = "there is no such folder".to_owned();
            return Err(StorageError::Location { location: location.to_owned(), problem });
        }
        Self::open(location, Path::new(""))
    }

    /// A folder of this machine. What has been put there outlives the machine: files and folders are synced.
    pub fn folder(folder: &Path) -> Result<Self, StorageError> {
        let folder = &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let name = folder.display().to_string().trim_end_matches('/').to_owned();
        let access = |source| StorageError::Access { path: name.clone(), action: "make the folder", source };
        fs::create_dir_all(folder).map_err(|e| access(Box::new(e)))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|e| access(Box::new(e)))?;
        let store = store.with_fsync(true).with_automatic_cleanup(true);
        Ok(Self { store: Arc::new(store), name, folder: Some(folder.as_path().into()) })
    }

    /// Whether it is a folder of this machine.
    pub(crate) fn is_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// The location by which commands in other folders find what `location` names here.
    pub fn absolute(location: &str) -> Result<String, StorageError> {
        Ok(match Place::parse(location)? {
            Place::Folder(path) => {
                let absolute = path.canonicalize().or_else(|_| std::path::absolute(path));
                absolute.unwrap_or_else(|_| path.to_owned()).display().to_string()
            }
            place => place.to_string(),
        })
    }

    pub(crate) fn store(&self) -> &dyn ObjectStore {
        &*self.store
    }

    /// How messages and commands name what is at a path.
    pub fn name_of(&self, path: &str) -> String {
        format!("{}/{path}", self.name)
    }

    /// Where an object lies as a file, if it does.
    pub(crate) fn file(&self, path: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(path))
    }

    /// Where something lies that is named relative to this place, or absolutely.
    pub(crate) fn location(&self, name: &str) -> String {
        let is_absolute = Path::new(name).is_absolute() || matches!(Place::parse(name), Ok(Place::S3 { .. }));
        if is_absolute { name.to_owned() } else { self.name_of(name) }
    }

    /// What [`Storage::name_of`] was given, if it has named it; else the name as it is.
    pub(crate) fn relative<'a>(&self, name: &'a str) -> &'a str {
        name.strip_prefix(&self.name).and_then(|below| below.strip_prefix('/')).unwrap_or(name)
    }

    /// Writes an object, all of it or nothing. It is durable when this returns.
    pub async fn put(&self, path: &str, bytes: impl Into<Bytes>) -> Result<(), StorageError> {
        self.put_with(path, bytes.into(), PutMode::Overwrite).await
    }

    /// Writes an object that must not be there yet.
    pub async fn create(&self, path: &str, bytes: impl Into<Bytes>) -> Result<(), StorageError> {
        self.put_with(path, bytes.into(), PutMode::Create).await
    }

    async fn put_with(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<(), StorageError> {
        let in_parts = self.folder.is_none() && mode == PutMode::Overwrite && bytes.len() > PART;
        let put = match in_parts {
            true => self.put_parts(path, bytes).await,
            false => self.put_whole(path, bytes, mode).await.map(drop),
        };
        put.map_err(|e| StorageError::access(self.name_of(path), "write the object", e))
    }

    /// Writes an object by one request, and says which version of it that has made.
    pub(crate) async fn put_whole(
        &self,
        path: &str,
        bytes: Bytes,
        mode: PutMode,
    ) -> object_store::Result<UpdateVersion> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(&key(path), PutPayload::from_bytes(bytes), options).await?;
        Ok(UpdateVersion { e_tag: put.e_tag, version: put.version })
    }

    /// Writes an object by a request for each part of it, so that each is short and one that fails is repeated alone.
    async fn put_parts(&self, path: &str, bytes: Bytes) -> object_store::Result<()> {
        let mut upload =
            WriteMultipart::new_with_chunk_size(self.store.put_multipart(&key(path)).await?, PART);
        for start in (0..bytes.len()).step_by(PART) {
            if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE).await {
                let _ = upload.abort().await;
                return Err(error);
            }
            upload.put(bytes.slice(start..bytes.len().min(start + PART)));
        }
        upload.finish().await.map(drop)
    }

    /// Reads an object with its version; none if it is not there.
    pub(crate) async fn get_version(
        &self,
        path: &str,
    ) -> object_store::Result<Option<(Bytes, UpdateVersion)>> {
        let found = match self.store.get(&key(path)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        Ok(Some((found.bytes().await?, version)))
    }

    /// Reads an object; none if it is not there.
    pub async fn get(&self, path: &str) -> Result<Option<Bytes>, StorageError> {
        let read = async { self.store.get(&key(path)).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(StorageError::access(self.name_of(path), "read the object", e)),
        }
    }

    /// Deletes an object. That it is gone already is no error.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), StorageError> {
        match self.store.delete(&key(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(StorageError::access(self.name_of(path), "delete the object", e)),
        }
    }

    /// How long an object is; none if it is not there.
    pub(crate) async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        match self.store.head(&key(path)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(StorageError::access(self.name_of(path), "look at the object", e)),
        }
    }

    /// Reads parts of an object.
    pub(crate) async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>, StorageError> {
        let read = self.store.get_ranges(&key(path), ranges).await;
        read.map_err(|e| StorageError::access(self.name_of(path), "read the object", e))
    }

    /// Reads an object as it comes.
    pub(crate) async fn get_pieces(
        &self,
        path: &str,
    ) -> Result<BoxStream<'static, object_store::Result<Bytes>>, StorageError> {
        let read = self.store.get(&key(path)).await;
        let read = read.map_err(|e| StorageError::access(self.name_of(path), "read the object", e))?;
        Ok(read.into_stream())
    }

    /// The names of what lies directly in a folder: folders, then objects.
    pub(crate) async fn list(&self, folder: &str) -> Result<(Vec<String>, Vec<String>), StorageError> {
        let folder_key = (!folder.is_empty()).then(|| key(folder));
        let listed = self.store.list_with_delimiter(folder_key.as_ref()).await;
        let listed = listed.map_err(|e| StorageError::access(self.name_of(folder), "list the folder", e))?;
        let name = |key: &Key| key.filename().unwrap_or_default().to_owned();
        let objects = listed.objects.iter().map(|object| name(&object.location));
        Ok((listed.common_prefixes.iter().map(name).collect(), objects.collect()))
    }

    /// The paths of all objects below a folder.
    pub(crate) async fn list_all(&self, folder: &str) -> Result<Vec<String>, StorageError> {
        let listed: Result<Vec<_>, _> = self.store.list(Some(&key(folder))).try_collect().await;
        let listed = listed.map_err(|e| StorageError::access(self.name_of(folder), "list the folder", e))?;
        Ok(listed.into_iter().map(|object| object.location.to_string()).collect())
    }

    /// Deletes everything below a folder, what `first` names before all else. What is gone already is no error.
    pub(crate) async fn delete_all(&self, folder: &str, first: &str) -> Result<(), StorageError> {
        let failed = |e| StorageError::access(self.name_of(folder), "delete the folder", e);
        let folder_key = (!folder.is_empty()).then(|| key(folder));
        let first = key(&format!("{folder}/{first}"));
        let listed: Vec<_> = self.store.list(folder_key.as_ref()).try_collect().await.map_err(failed)?;
        let keys = listed.into_iter().map(|object| object.location).filter(|key| *key != first);
        for key in std::iter::once(first.clone()).chain(keys) {
            match self.store.delete(&key).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(())
    }
}

/// Objects that are larger are written in parts of this size, where each is a request.
const PART: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 4;

/// The key of a path. What may stand in one stands there as it is, so that other tools find it by its name.
fn key(path: &str) -> Key {
    Key::parse(path).unwrap_or_else(|_| Key::from(path))
}

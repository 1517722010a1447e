//! A place for snapshots, whatever it is.

use std::{
    fs::{self, File, TryLockError},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, local::LocalFileSystem, path::Path as Key,
};

use crate::StorageError;

/// A place with objects by path. Clones share it.
#[derive(Clone, Debug)]
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    /// How messages and commands name it, wherever they are read: absolute, without a slash at the end.
    name: String,
    folder: Arc<Path>,
}

impl Storage {
    /// Opens `file:PATH` or a plain path, from `base` on if it is relative; makes the folder.
    pub fn open(location: &str, base: &Path) -> Result<Self, StorageError> {
        let path = match location.split_once(':') {
            Some(("file", path)) => path.strip_prefix("//").unwrap_or(path),
            // A letter alone is a drive.
            Some((scheme, _)) if scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                let problem = format!(
                    "there is no storage `{scheme}:` in this version; expected `file:PATH` or a path"
                );
                return Err(StorageError::Location { location: location.to_owned(), problem });
            }
            _ => location,
        };
        if path.is_empty() {
            let problem = "expected the path of a folder".to_owned();
            return Err(StorageError::Location { location: location.to_owned(), problem });
        }
        Self::folder(&base.join(path))
    }

    /// A folder of this machine. What has been put there outlives the machine: files and folders are synced.
    pub fn folder(folder: &Path) -> Result<Self, StorageError> {
        let folder = &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let name = folder.display().to_string().trim_end_matches('/').to_owned();
        let access = |source| StorageError::Access { path: name.clone(), action: "make the folder", source };
        fs::create_dir_all(folder).map_err(|e| access(Box::new(e)))?;
        let store = LocalFileSystem::new_with_prefix(folder).map_err(|e| access(Box::new(e)))?;
        let store = store.with_fsync(true).with_automatic_cleanup(true);
        Ok(Self { store: Arc::new(store), name, folder: folder.as_path().into() })
    }

    /// How messages and commands name what is at a path.
    pub fn name_of(&self, path: &str) -> String {
        format!("{}/{path}", self.name)
    }

    /// Takes hold of an object for as long as the lock lives; none if another process, or this one, has it. The system lets
    /// go of it when a process ends, however that happens.
    pub(crate) fn lock(&self, path: &str) -> Result<Option<File>, StorageError> {
        let failed = |e: std::io::Error| StorageError::Access {
            path: self.name_of(path),
            action: "lock the file",
            source: Box::new(e),
        };
        let opened = File::options().create(true).truncate(false).write(true).open(self.folder.join(path));
        let file = opened.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(failed(e)),
        }
    }

    /// Where something lies that is named relative to this place, or absolutely.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
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
        let options = PutOptions { mode, ..PutOptions::default() };
        let put = self.store.put_opts(&Key::from(path), PutPayload::from_bytes(bytes), options).await;
        put.map(drop).map_err(|e| StorageError::access(self.name_of(path), "write the object", e))
    }

    /// Reads an object; none if it is not there.
    pub async fn get(&self, path: &str) -> Result<Option<Bytes>, StorageError> {
        let read = async { self.store.get(&Key::from(path)).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(StorageError::access(self.name_of(path), "read the object", e)),
        }
    }

    /// Deletes an object. That it is gone already is no error.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), StorageError> {
        match self.store.delete(&Key::from(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(StorageError::access(self.name_of(path), "delete the object", e)),
        }
    }

    /// How long an object is; none if it is not there.
    pub(crate) async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        match self.store.head(&Key::from(path)).await {
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
        let read = self.store.get_ranges(&Key::from(path), ranges).await;
        read.map_err(|e| StorageError::access(self.name_of(path), "read the object", e))
    }

    /// The names of what lies directly in a folder: folders, then objects.
    pub(crate) async fn list(&self, folder: &str) -> Result<(Vec<String>, Vec<String>), StorageError> {
        let folder_key = (!folder.is_empty()).then(|| Key::from(folder));
        let listed = self.store.list_with_delimiter(folder_key.as_ref()).await;
        let listed = listed.map_err(|e| StorageError::access(self.name_of(folder), "list the folder", e))?;
        let name = |key: &Key| key.filename().unwrap_or_default().to_owned();
        let objects = listed.objects.iter().map(|object| name(&object.location));
        Ok((listed.common_prefixes.iter().map(name).collect(), objects.collect()))
    }

    /// The paths of all objects below a folder.
    pub(crate) async fn list_all(&self, folder: &str) -> Result<Vec<String>, StorageError> {
        let listed: Result<Vec<_>, _> = self.store.list(Some(&Key::from(folder))).try_collect().await;
        let listed = listed.map_err(|e| StorageError::access(self.name_of(folder), "list the folder", e))?;
        Ok(listed.into_iter().map(|object| object.location.to_string()).collect())
    }

    /// Deletes everything below a folder, what `first` names before all else. What is gone already is no error.
    pub(crate) async fn delete_all(&self, folder: &str, first: &str) -> Result<(), StorageError> {
        let failed = |e| StorageError::access(self.name_of(folder), "delete the folder", e);
        let folder_key = (!folder.is_empty()).then(|| Key::from(folder));
        let first = Key::from(format!("{folder}/{first}"));
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

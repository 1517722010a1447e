//! The hold on a run, so that one process at a time goes on with it.

use std::{
    fs::{File, TryLockError},
    path::Path,
};

use crate::{Storage, StorageError, lease::Lease};

/// The hold on a run. It ends with the process, or when this is dropped.
#[derive(Debug)]
pub struct RunLock(Held);

#[derive(Debug)]
enum Held {
    /// The system lets go when the file is closed, however that happens.
    File(#[expect(dead_code, reason = "it is held, not used")] File),
    /// Where there are no locks: an object that is renewed.
    Lease(Lease),
}

impl RunLock {
    /// Takes hold of an object; none if another process, or this one, has it.
    pub(crate) async fn take(storage: &Storage, path: &str) -> Result<Option<Self>, StorageError> {
        let held = match storage.file(path) {
            Some(file) => lock(&file, &storage.name_of(path))?.map(Held::File),
            None => Lease::take(storage, path).await?.map(Held::Lease),
        };
        Ok(held.map(Self))
    }

    /// Waits for as long as the run is held. Says why it is not any more: another process has it, or may have it.
    pub async fn lost(&mut self) -> String {
        match &mut self.0 {
            Held::File(_) => std::future::pending().await,
            Held::Lease(lease) => lease.lost().await,
        }
    }

    /// Lets go, so that the next one need not wait.
    pub async fn release(self) {
        if let Held::Lease(lease) = self.0 {
            lease.release().await;
        }
    }
}

fn lock(file: &Path, name: &str) -> Result<Option<File>, StorageError> {
    let failed = |e: std::io::Error| StorageError::Access {
        path: name.to_owned(),
        action: "lock the file",
        source: Box::new(e),
    };
    let opened = File::options().create(true).truncate(false).write(true).open(file).map_err(failed)?;
    match opened.try_lock() {
        Ok(()) => Ok(Some(opened)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

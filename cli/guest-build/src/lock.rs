//! One preparation of the compiler at a time, whatever number of builds ask for one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::progress::{Progress, Step};

/// The lock could not be taken.
#[derive(Debug, thiserror::Error)]
#[error("cannot lock {path}, which keeps two builds from preparing the compiler at once")]
pub struct LockError {
    /// The file that is locked.
    pub path: PathBuf,
    /// Why it could not be.
    pub source: io::Error,
}

/// The right to install packages and to write into the compiler's folders, until it is dropped. It ends with the
/// process too, so that a build that was killed holds nobody up.
#[derive(Debug)]
pub(crate) struct PreparationLock {
    _file: File,
}

impl PreparationLock {
    /// Takes the lock in this folder, or says that it waits and waits.
    pub(crate) fn take(folder: &Path, progress: Progress<'_>) -> Result<Self, LockError> {
        let path = folder.join("lock");
        let failed = |source| LockError { path: path.clone(), source };
        fs::create_dir_all(folder).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        if file.try_lock().is_err() {
            progress(&Step::WaitingForLock { lock: path.clone() });
            file.lock().map_err(failed)?;
        }
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_build_waits_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let held = PreparationLock::take(folder.path(), &|_| panic!("nobody holds it yet")).expect("locks");
        let (tell, told) = std::sync::mpsc::channel();
        let path = folder.path().to_owned();
        let waiter = std::thread::spawn(move || {
            PreparationLock::take(&path, &|step| tell.send(step.clone()).expect("the test listens"))
        });
        let step = told.recv().expect("the waiter says that it waits");
        assert!(matches!(step, Step::WaitingForLock { .. }));
        drop(held);
        waiter.join().expect("no panic").expect("locks after the first");
    }
}

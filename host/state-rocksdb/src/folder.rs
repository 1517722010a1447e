//! Folders for state on disk that end with their job, also if that is killed.
//!
//! A job has one folder, with a file in it that is locked as long as its process lives. Whoever makes a folder beside it
//! removes those whose lock nobody holds.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// The folder of a job's state on disk, removed when this is dropped.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    next: AtomicU64,
    _lock: File,
}

impl StateFolder {
    /// A new folder in `parent`, which is made if it is not there. Takes away what processes that were killed have left.
    pub fn create(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        sweep(parent);
        let process = std::process::id();
        for number in 0u64.. {
            let path = parent.join(format!("{PREFIX}{process}-{number}"));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    // It gets its name once it is locked: whoever finds it unlocked takes the folder away.
                    let unnamed = path.join(LOCK_IN_THE_MAKING);
                    let lock = File::create(&unnamed)?;
                    lock.lock()?;
                    fs::rename(unnamed, path.join(LOCK))?;
                    return Ok(Self { path, next: AtomicU64::new(0), _lock: lock });
                }
            }
        }
        unreachable!("numbers do not end")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it that no one else is given.
    pub fn next(&self) -> PathBuf {
        self.path.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes folders of jobs that are no more.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_ours = path.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with(PREFIX));
        // One that has no lock yet is being made.
        let Some(lock) = Some(path.join(LOCK)).filter(|_| is_ours).and_then(|lock| File::open(lock).ok())
        else {
            continue;
        };
        if lock.try_lock().is_ok() {
            remove(&path);
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path) {
        let folder = path.display();
        tracing::warn!(%folder, %error, "state on disk that is not needed any more cannot be removed");
    }
}

/// How the names of folders start.
const PREFIX: &str = "millstream-state-";
const LOCK: &str = "lock";
const LOCK_IN_THE_MAKING: &str = "lock.new";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_made_at_once_leave_each_other_alone() {
        let parent = tempfile::tempdir().expect("a folder");
        let make = || (0..200).for_each(|_| drop(StateFolder::create(parent.path()).expect("a folder")));
        std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(make)));
    }

    #[test]
    fn folders_end_with_their_jobs() {
        let parent = tempfile::tempdir().expect("a folder");
        let first = StateFolder::create(parent.path()).expect("a folder");
        fs::create_dir(first.next()).expect("a folder");
        let second = StateFolder::create(parent.path()).expect("a folder");
        assert!(first.path().exists() && first.path() != second.path());
        // As if its process had been killed: the lock goes, the folder stays.
        let abandoned = parent.path().join(format!("{PREFIX}1-0"));
        fs::create_dir_all(abandoned.join("0")).expect("a folder");
        fs::write(abandoned.join(LOCK), "").expect("a file");
        let other = parent.path().join("something else");
        fs::create_dir(&other).expect("a folder");
        let third = StateFolder::create(parent.path()).expect("a folder");
        assert!(!abandoned.exists() && first.path().exists() && second.path().exists() && other.exists());
        let path = third.path().to_owned();
        drop(third);
        assert!(!path.exists());
    }
}

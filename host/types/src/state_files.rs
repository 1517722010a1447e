//! Files with state, as they were at one moment: what a store on disk hands over at a checkpoint, and takes back.

use std::{
    fmt, fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Files that nobody changes any more, in a folder of their own. The folder goes with the last clone of this.
#[derive(Clone)]
pub struct StateFiles {
    folder: Arc<OwnedFolder>,
    files: Arc<[StateFile]>,
    groups: Option<Range<u16>>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateFile {
    /// Its name in the folder, by which the store knows it.
    pub name: String,
    /// Its bytes.
    pub length: u64,
}

struct OwnedFolder(PathBuf);

impl StateFiles {
    /// The files of a folder, which is removed when nobody needs them any more.
    pub fn new(folder: PathBuf, files: Vec<StateFile>) -> Self {
        Self { folder: Arc::new(OwnedFolder(folder)), files: files.into(), groups: None }
    }

    /// The same, of which only these key groups are meant.
    pub fn of_groups(&self, groups: Range<u16>) -> Self {
        Self { groups: Some(groups), ..self.clone() }
    }

    /// The same folder with these files, which are in it by now.
    pub fn with(self, files: Vec<StateFile>) -> Self {
        Self { files: files.into(), ..self }
    }

    /// The key groups that are meant; none for all that there are.
    pub fn groups(&self) -> Option<Range<u16>> {
        self.groups.clone()
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// What there is.
    pub fn files(&self) -> &[StateFile] {
        &self.files
    }

    /// Where a file is.
    pub fn path(&self, file: &StateFile) -> PathBuf {
        self.folder.0.join(&file.name)
    }
}

/// The same files, not files with the same bytes.
impl PartialEq for StateFiles {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.folder, &other.folder) && self.groups == other.groups
    }
}

impl Eq for StateFiles {}

impl fmt::Debug for StateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateFiles").field("folder", &self.folder.0).field("files", &self.files).finish()
    }
}

impl Drop for OwnedFolder {
    fn drop(&mut self) {
        // It lies in a folder that goes with its job, so what cannot be removed now is removed then.
        fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_with_the_last_clone() {
        let folder = std::env::temp_dir().join(format!("millstream-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("a"), "abc").expect("a file");
        let files = StateFiles::new(folder.clone(), vec![StateFile { name: "a".to_owned(), length: 3 }]);
        let some = files.of_groups(1..3);
        assert!(some != files && some.groups() == Some(1..3) && some.clone() == some);
        drop(files);
        assert_eq!(fs::read(some.path(&some.files()[0])).expect("it is there"), b"abc");
        drop(some);
        assert!(!folder.exists());
    }
}

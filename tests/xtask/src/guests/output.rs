//! The folder of built components.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use millstream_guest_build::describe;

use crate::printer;
use crate::workspace::Workspace;

/// Where components are written.
pub(super) struct Output {
    folder: PathBuf,
}

/// A component that is up to date. Its `Display` is a line for the user.
#[derive(Debug)]
pub(super) struct Guest {
    name: String,
    size: usize,
    time: Duration,
    fresh: bool,
}

impl Output {
    pub(super) fn open(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.guests();
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("wasm")
    }

    /// Puts a component there, unless it is the same already. It is renamed into place, so that a running job never
    /// reads half of it.
    pub(super) fn put(&self, name: &str, component: &[u8], time: Duration) -> Result<Guest> {
        let path = self.path(name);
        let fresh = fs::read(&path).is_ok_and(|present| present == component);
        if !fresh {
            describe(component).with_context(|| format!("{name} was built wrongly"))?;
            let partial = path.with_extension("partial");
            fs::write(&partial, component).with_context(|| format!("cannot write {}", partial.display()))?;
            fs::rename(&partial, &path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Guest { name: name.to_owned(), size: component.len(), time, fresh })
    }

    /// As [`Output::put`], and notes what it was made of.
    pub(super) fn put_made_of(
        &self,
        name: &str,
        component: &[u8],
        time: Duration,
        sources: &[PathBuf],
    ) -> Result<Guest> {
        let guest = self.put(name, component, time)?;
        let path = self.fingerprint_path(name);
        let fingerprint = fingerprint(sources)?;
        fs::write(&path, fingerprint).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(guest)
    }

    /// The component of that name, if it was made of the same sources. Their content counts and not their time:
    /// clones of different versions may share the folder.
    pub(super) fn up_to_date(&self, name: &str, sources: &[PathBuf]) -> Option<Guest> {
        let made_of = fs::read_to_string(self.fingerprint_path(name)).ok()?;
        if made_of != fingerprint(sources).ok()? {
            return None;
        }
        let size = usize::try_from(fs::metadata(self.path(name)).ok()?.len()).ok()?;
        Some(Guest { name: name.to_owned(), size, time: Duration::ZERO, fresh: true })
    }

    fn fingerprint_path(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("made-of")
    }

    /// Makes `target/guests` in the repository lead here: job files look there unless `MILLSTREAM_GUESTS` says
    /// otherwise.
    pub(super) fn link_from_repository(&self, workspace: &Workspace) -> Result<()> {
        let link = workspace.root.join("target").join("guests");
        if link.canonicalize().ok() == self.folder.canonicalize().ok() {
            return Ok(());
        }
        replace_link(&self.folder, &link).with_context(|| format!("cannot make {} a link", link.display()))
    }
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = if self.fresh { "up to date".to_owned() } else { printer::seconds(self.time) };
        write!(f, "{:24} {:>8}   {time}", self.name, printer::size(self.size))
    }
}

#[cfg(unix)]
fn replace_link(folder: &Path, link: &Path) -> io::Result<()> {
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent)?;
    }
    if link.is_symlink() {
        fs::remove_file(link)?;
    }
    std::os::unix::fs::symlink(folder, link)
}

#[cfg(not(unix))]
fn replace_link(folder: &Path, link: &Path) -> io::Result<()> {
    fs::create_dir_all(link)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        fs::copy(entry.path(), link.join(entry.file_name()))?;
    }
    Ok(())
}

/// One number for the content of files and folders.
fn fingerprint(sources: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for source in sources {
        hash_content(source, &mut hasher).with_context(|| format!("cannot read {}", source.display()))?;
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash_content(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    if !path.is_dir() {
        fs::read(path)?.hash(hasher);
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.retain(|entry| !entry.file_name().is_some_and(|name| MADE.iter().any(|made| name == *made)));
    entries.sort();
    entries.iter().try_for_each(|entry| hash_content(entry, hasher))
}

/// Folders beside sources with what others made of them.
const MADE: [&str; 3] = ["__pycache__", "node_modules", "target"];

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty one: magic number, version and layer.
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn output() -> (tempfile::TempDir, Output) {
        let root = tempfile::tempdir().expect("a folder for the test");
        let workspace =
            Workspace { root: root.path().to_owned(), target: root.path().join("built"), ci: false };
        let output = Output::open(&workspace).expect("creates the folder");
        output.link_from_repository(&workspace).expect("links");
        (root, output)
    }

    #[test]
    fn job_files_find_components_without_a_setting() {
        let (root, output) = output();
        fs::write(output.path("map"), "component").expect("the folder is there");
        let seen = fs::read_to_string(root.path().join("target/guests/map.wasm")).expect("leads there");
        assert_eq!(seen, "component");
    }

    #[test]
    fn a_changed_source_makes_a_component_old() {
        let (root, output) = output();
        let source = root.path().join("map.c");
        let sources = std::slice::from_ref(&source);
        fs::write(&source, "first").expect("writes");
        assert!(output.up_to_date("map", sources).is_none(), "is not even there");
        output.put_made_of("map", COMPONENT, Duration::ZERO, sources).expect("is a component");
        assert!(output.up_to_date("map", sources).is_some_and(|guest| guest.size == COMPONENT.len()));
        fs::write(&source, "second").expect("writes");
        assert!(output.up_to_date("map", sources).is_none());
    }

    #[test]
    fn what_is_no_component_is_not_put_there() {
        let (_root, output) = output();
        let error = output.put("map", b"bytes", Duration::ZERO).expect_err("is none");
        assert!(format!("{error:#}").contains("map was built wrongly"), "{error:#}");
        assert!(!output.path("map").exists());
    }
}

//! Rust's standard library for a WebAssembly target, in a compiler's own folders.
//!
//! rustup brings it ready-made. Debian brings the sources only, so it is built from them, once, and put where
//! `rustup target add` would put it. A stamp beside it holds the version of the compiler that built it: libraries
//! of another version are of no use, so that after an upgrade of the package it is built again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::progress::{Progress, Step};
use crate::run::{self, CommandError};
use crate::toolchain::Target;

/// The standard library could not be built or put in place.
#[derive(Debug, thiserror::Error)]
pub enum StandardLibraryError {
    /// A compiler did not answer, or the build failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file or folder could not be read or written.
    #[error("cannot {action} {path}")]
    File {
        /// What was being done.
        action: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// In what state a compiler has the standard library for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// There and usable.
    Ready,
    /// Not there.
    Missing,
    /// Built by us with another version of this compiler.
    Outdated,
}

/// A compiler's standard library for one target.
#[derive(Debug, Clone)]
pub(crate) struct StandardLibrary {
    folder: PathBuf,
    version: String,
}

impl StandardLibrary {
    /// Asks `rustc`, run in `directory` (which may choose a toolchain), where it keeps it.
    pub(crate) fn of(rustc: &Path, directory: &Path, target: Target) -> Result<Self, CommandError> {
        let ask = |arguments: &[&str]| {
            run::capture_text(Command::new(rustc).current_dir(directory).args(arguments))
        };
        let folder = ask(&["--print", "target-libdir", "--target", target.triple()])?;
        Ok(Self { folder: PathBuf::from(folder), version: ask(&["-vV"])? })
    }

    pub(crate) fn readiness(&self) -> Readiness {
        if !contains_std(&self.folder) {
            return Readiness::Missing;
        }
        match fs::read_to_string(self.folder.join(STAMP)) {
            Ok(stamp) if stamp != self.version => Readiness::Outdated,
            // Without a stamp it came with the compiler, whose business it is to fit.
            _ => Readiness::Ready,
        }
    }

    /// Builds it from the compiler's own sources in the folder `work`, and puts it in place.
    pub(crate) fn build(
        &self,
        rustc: &Path,
        cargo: &Path,
        target: Target,
        work: &Path,
        progress: Progress<'_>,
    ) -> Result<(), StandardLibraryError> {
        progress(&Step::BuildingStandardLibrary { compiler: self.compiler() });
        write_carrier(work)?;
        compile(work, rustc, cargo, target)?;
        self.put_in_place(&work.join("target").join(target.triple()).join("release").join("deps"))?;
        // A few hundred megabytes that nobody needs again; that they stay is no failure.
        let _ = fs::remove_dir_all(work);
        Ok(())
    }

    /// The compiler's name and number, without where it comes from.
    fn compiler(&self) -> String {
        self.version.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    }

    /// Fills a folder beside the final one and then renames it, so that no other build sees half a library.
    fn put_in_place(&self, built: &Path) -> Result<(), StandardLibraryError> {
        let partial = self.folder.with_extension("partial");
        remove_folder(&partial)?;
        make_folder(&partial)?;
        for library in libraries(built)? {
            let Some(name) = library.file_name() else { continue };
            fs::copy(&library, partial.join(name)).map_err(failed("copy", &library))?;
        }
        fs::write(partial.join(STAMP), &self.version).map_err(failed("write to", &partial))?;
        remove_folder(&self.folder)?;
        fs::rename(&partial, &self.folder).map_err(failed("rename", &partial))
    }
}

/// An empty crate, since cargo builds the standard library only for something that needs it.
fn write_carrier(work: &Path) -> Result<(), StandardLibraryError> {
    remove_folder(work)?;
    make_folder(&work.join("src"))?;
    for (name, content) in [("Cargo.toml", CARRIER_MANIFEST), ("src/lib.rs", "")] {
        let path = work.join(name);
        fs::write(&path, content).map_err(failed("write", &path))?;
    }
    Ok(())
}

fn compile(work: &Path, rustc: &Path, cargo: &Path, target: Target) -> Result<(), CommandError> {
    let mut command = Command::new(cargo);
    crate::cargo::isolate(&mut command);
    command
        .current_dir(work)
        .env("RUSTC", rustc)
        // Building std is an unstable feature of cargo, and Debian's compiler is a stable one.
        .env("RUSTC_BOOTSTRAP", "1")
        // Link-time optimisation of guests needs the library's bitcode.
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .args(["build", "--release", "-Zbuild-std=std,panic_abort"])
        .args(["--target", target.triple(), "--target-dir", "target"]);
    run::capture(&mut command).map(drop)
}

/// The libraries in a folder, without the empty crate's own.
fn libraries(folder: &Path) -> Result<Vec<PathBuf>, StandardLibraryError> {
    let entries = fs::read_dir(folder).map_err(failed("read", folder))?;
    let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    Ok(paths.into_iter().filter(|path| is_library(path)).collect())
}

fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".rlib") && !name.contains(CARRIER)
}

fn contains_std(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

fn make_folder(path: &Path) -> Result<(), StandardLibraryError> {
    fs::create_dir_all(path).map_err(failed("create", path))
}

fn remove_folder(path: &Path) -> Result<(), StandardLibraryError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StandardLibraryError {
    let path = path.to_owned();
    move |source| StandardLibraryError::File { action, path, source }
}

const STAMP: &str = "millstream-built-with";
const CARRIER: &str = "millstream_std_carrier";
const CARRIER_MANIFEST: &str = r#"[package]
name = "millstream_std_carrier"
version = "0.0.0"
edition = "2021"

[profile.release]
codegen-units = 1

[workspace]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn library(folder: &Path, version: &str) -> StandardLibrary {
        StandardLibrary { folder: folder.join("lib"), version: version.to_owned() }
    }

    fn built_files(folder: &Path) {
        for name in
            ["libstd-1f.rlib", "libcore-2e.rlib", "libcore-2e.rmeta", "libmillstream_std_carrier-0.rlib"]
        {
            fs::write(folder.join(name), name).expect("the folder is there");
        }
    }

    #[test]
    fn an_upgrade_of_the_compiler_makes_it_outdated() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        built_files(folder.path());
        let old = library(folder.path(), "rustc 1.95.0");
        assert_eq!(old.readiness(), Readiness::Missing);
        old.put_in_place(folder.path()).expect("put in place");
        assert_eq!(old.readiness(), Readiness::Ready);
        let new = library(folder.path(), "rustc 1.96.0");
        assert_eq!(new.readiness(), Readiness::Outdated);
        new.put_in_place(folder.path()).expect("put in place again");
        assert_eq!(new.readiness(), Readiness::Ready);
    }

    #[test]
    fn the_compiler_is_named_in_short() {
        let library = library(Path::new("/"), "rustc 1.96.0 (ac68faa20 2026-05-25)\nbinary: rustc");
        assert_eq!(library.compiler(), "rustc 1.96.0");
    }

    #[test]
    fn only_the_librarys_own_crates_are_put_in_place() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        built_files(folder.path());
        let library = library(folder.path(), "rustc 1.96.0");
        library.put_in_place(folder.path()).expect("put in place");
        let mut names: Vec<_> = fs::read_dir(&library.folder)
            .expect("is there")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["libcore-2e.rlib", "libstd-1f.rlib", STAMP]);
    }

    #[test]
    fn a_library_that_came_with_the_compiler_needs_no_stamp() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        fs::create_dir(folder.path().join("lib")).expect("a new folder");
        built_files(&folder.path().join("lib"));
        assert_eq!(library(folder.path(), "rustc 1.96.0").readiness(), Readiness::Ready);
    }
}

//! Tests of SDKs without components; and what the host needs beside Rust and a C compiler, as RocksDB is written in C++
//! and its bindings are made with libclang.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, bail};
use millstream_guest_build::{Packages, running_as_root, running_on_debian};

use crate::printer::Printer;
use crate::workspace::{self, Workspace, is_on_path};

/// Makes a C++ compiler and libclang be there: installs them as root on Debian, else says what is missing.
///
/// # Errors
/// When something is missing that cannot be installed here.
pub(crate) fn require(printer: &Printer) -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = Packages::new(missing.iter().map(|tool| tool.package).collect::<Vec<_>>());
    if running_on_debian() && running_as_root() {
        return Ok(packages.install(&|step| printer.progress(step))?);
    }
    let names: Vec<&str> = missing.iter().map(|tool| tool.name).collect();
    let line = packages.install_line();
    bail!(
        "RocksDB cannot be compiled: there is no {} (on Debian: `sudo {line}`; a libclang in an unusual place is found \
         by LIBCLANG_PATH, the folder that it is in)",
        names.join(" and no ")
    )
}

/// Runs the own tests of the SDKs of other languages. What is missing for one has been said when the guests were built.
///
/// # Errors
/// When one fails.
pub(crate) fn test_sdks(workspace: &Workspace, printer: &Printer) -> Result<()> {
    for (folder, program, arguments) in SDKS {
        if is_on_path(program) {
            let mut tests = std::process::Command::new(program);
            workspace::run(tests.current_dir(workspace.root.join(folder)).args(*arguments), printer)?;
        }
    }
    Ok(())
}

/// The folder of an SDK, and the program that tests it, with its arguments.
const SDKS: &[(&str, &str, &[&str])] = &[
    ("guest-sdk/python", "python3", &["-B", "-m", "unittest", "discover", "-s", "tests"]),
    ("guest-sdk/javascript", "node", &["--test", "tests/"]),
];

/// A tool and the package of Debian that has it.
struct Tool {
    name: &'static str,
    package: &'static str,
}

fn missing() -> Vec<Tool> {
    let compiler = ["c++", "g++", "clang++"].into_iter().any(is_on_path) || env::var_os("CXX").is_some();
    let mut missing = Vec::new();
    if !compiler {
        missing.push(Tool { name: "C++ compiler", package: "g++" });
    }
    if !folders().iter().any(|folder| has_libclang(folder)) {
        missing.push(Tool { name: "libclang", package: "libclang-dev" });
    }
    missing
}

/// Where libclang may be.
fn folders() -> Vec<PathBuf> {
    let named = env::var_os("LIBCLANG_PATH").map(PathBuf::from);
    let mut folders: Vec<PathBuf> = named.into_iter().chain(FOLDERS.map(PathBuf::from)).collect();
    // Debian has them by version and by kind of machine.
    let below = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    folders.extend(below.flat_map(|folder| [folder.join("lib"), folder]));
    folders
}

fn has_libclang(folder: &Path) -> bool {
    let is_it = |name: &str| {
        ["libclang.so", "libclang-", "libclang.dylib", "libclang.dll"].iter().any(|n| name.starts_with(n))
            && !name.starts_with("libclang-cpp")
            && [".so", ".dylib", ".dll"].iter().any(|kind| name.contains(kind))
    };
    // The variable may name the file itself.
    folder.file_name().is_some_and(|name| is_it(&name.to_string_lossy()) && folder.is_file())
        || fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| is_it(&entry.file_name().to_string_lossy()))
}

const FOLDERS: [&str; 6] = [
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/opt/homebrew/opt/llvm/lib",
    "/Library/Developer/CommandLineTools/usr/lib",
    "/Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib",
];

#[cfg(test)]
mod tests {
    use super::has_libclang;

    #[test]
    fn libclang_is_told_from_what_is_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for other in ["libclang-cpp.so.19", "libclang.txt", "libclangd.a"] {
            std::fs::write(folder.path().join(other), "").expect("a file");
        }
        assert!(!has_libclang(folder.path()));
        let library = folder.path().join("libclang-19.so.1");
        std::fs::write(&library, "").expect("a file");
        assert!(has_libclang(folder.path()) && has_libclang(&library));
        assert!(!has_libclang(&folder.path().join("nowhere")));
    }
}

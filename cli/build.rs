//! Embeds the sources of the SDKs and the interface definition that they are made of, so that `millstream new` can
//! put them into a project: the SDKs are not in a registry, and a user need not have this repository.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

/// Folders of the repository with everything that the SDKs are made of. `tests` are not.
const EMBEDDED: [&str; 7] = [
    "guest-sdk/c/src",
    "guest-sdk/javascript/src",
    "guest-sdk/rust/src",
    "guest-sdk/rust/macros/src",
    "wit",
    "guest-sdk/rust/macros",
    "guest-sdk/python/src",
];

/// Files of theirs outside those.
const FILES: [&str; 2] = ["guest-sdk/rust/Cargo.toml", "guest-sdk/javascript/package.json"];

/// The endings of what is embedded.
const ENDINGS: [&str; 9] = ["rs", "toml", "wit", "py", "typed", "js", "ts", "c", "h"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = here.parent().map(Path::to_owned).unwrap_or_default();
    let mut files: Vec<_> = FILES.iter().map(|file| root.join(file)).collect();
    for folder in EMBEDDED {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        collect(&root.join(folder), folder.ends_with("src"), &mut files)?;
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        // Writing to a string does not fail.
        let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", file.display().to_string());
    }
    list.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("sdk_sources.rs"), list)
}

fn collect(folder: &Path, deep: bool, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let source = path.extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known));
        if path.is_dir() && deep {
            collect(&path, deep, files)?;
        } else if path.is_file() && source {
            files.push(path);
        }
    }
    Ok(())
}

//! Embeds the sources of the Rust SDK and the interface definition that it is made of, so that `millstream new` can
//! put them into a project: the SDK is not in a registry, and a user need not have this repository.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

/// Folders of the repository with everything that the SDK is compiled from. `tests` are not.
const EMBEDDED: [&str; 4] =
    ["guest-sdk/rust/src", "guest-sdk/rust/macros/src", "wit", "guest-sdk/rust/macros"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = here.parent().map(Path::to_owned).unwrap_or_default();
    let mut files = vec![root.join("guest-sdk/rust/Cargo.toml")];
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
        let source = path.extension().is_some_and(|e| ["rs", "toml", "wit"].iter().any(|known| e == *known));
        if path.is_dir() && deep {
            collect(&path, deep, files)?;
        } else if path.is_file() && source {
            files.push(path);
        }
    }
    Ok(())
}

//! `cargo xtask bindings`: the C bindings of the interface, which the SDK for C has in its folder so that nobody needs a
//! generator. A test holds them to `wit/`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::guests::c::generate_bindings;
use crate::printer::Printer;
use crate::workspace::Workspace;

/// Writes the bindings into the SDK.
///
/// # Errors
/// When `wit/` cannot be read or the folder not be written to.
pub(crate) fn write(workspace: &Workspace, printer: &Printer) -> Result<()> {
    let folder = workspace.root.join(FOLDER);
    for (name, content) in bindings(workspace)? {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        printer.result(path.display());
    }
    Ok(())
}

/// Their names and contents. What says which world a module has is put into it by `millstream build`.
fn bindings(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let folder = tempfile::tempdir()?;
    generate_bindings(&workspace.wit(), WORLD, folder.path())?;
    ["module.h", "module.c"]
        .into_iter()
        .map(|name| Ok((name.to_owned(), read(folder.path(), name)?)))
        .collect()
}

fn read(folder: &Path, name: &str) -> Result<String> {
    let path: PathBuf = folder.join(name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

const FOLDER: &str = "guest-sdk/c/src";
const WORLD: &str = "module";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bindings_for_c_are_those_of_the_interface() {
        let workspace = Workspace::find().expect("the tests are run in it");
        for (name, content) in bindings(&workspace).expect("the interface is right") {
            let committed = read(&workspace.root.join(FOLDER), &name).expect("is committed");
            assert!(committed == content, "{name} is out of date: run `cargo xtask bindings`");
        }
    }
}

//! Where things are, and running cargo on them.

use std::env::{self, consts::EXE_EXTENSION};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::printer::Printer;

/// The folders of the workspace and of what is built.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    /// The repository.
    pub(crate) root: PathBuf,
    /// Cargo's target folder, as `CARGO_TARGET_DIR` says, else one that all clones of this user share.
    pub(crate) target: PathBuf,
    /// Whether this run decides about a change: then nothing may be left out.
    pub(crate) ci: bool,
}

impl Workspace {
    /// The workspace that this program was built from.
    pub(crate) fn find() -> Result<Self> {
        // Cargo says at run time where the package is: two clones may share the target folder, and so this program.
        let here =
            env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`, within the repository")?;
        let root = Path::new(&here).ancestors().nth(2).context("tests/xtask is not in a workspace")?;
        let target = match env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
            Some(folder) => root.join(folder),
            None => env::home_dir().context("there is no home folder")?.join(".cache").join("millstream"),
        };
        let ci = env::var("CI").is_ok_and(|value| value == "true");
        Ok(Self { root: root.to_owned(), target, ci })
    }

    /// Where components go, each as `NAME.wasm`.
    pub(crate) fn guests(&self) -> PathBuf {
        self.target.join("guests")
    }

    /// The interface definition.
    pub(crate) fn wit(&self) -> PathBuf {
        self.root.join("wit")
    }

    /// The crates and workspaces under a folder of the repository that are not part of the root's. An outer one
    /// speaks for those inside it.
    pub(crate) fn crates_under(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        outermost_manifests(&self.root.join(folder), &mut found);
        found.sort();
        found
    }

    /// A cargo for this workspace, or for one of those beside it.
    pub(crate) fn cargo(&self, directory: &Path) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(directory).env("CARGO_TARGET_DIR", &self.target);
        self.set_folders(&mut command);
        command
    }

    /// A program of this workspace, as the dev profile makes it, to be run at its root.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.target.join("debug").join(name).with_extension(EXE_EXTENSION));
        self.set_folders(command.current_dir(&self.root));
        command
    }

    /// The names of its crates.
    ///
    /// # Errors
    /// If cargo cannot tell them.
    pub(crate) fn members(&self) -> Result<Vec<String>> {
        let mut tree = self.cargo(&self.root);
        tree.args(["tree", "--workspace", "--depth", "0", "--prefix", "none", "--format", "{p}"]);
        let output = tree.output().context("cannot run `cargo tree`")?;
        if !output.status.success() {
            bail!("`cargo tree` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        let names = String::from_utf8(output.stdout).context("`cargo tree` printed what is no text")?;
        Ok(names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
    }

    /// Tells a program the folders that job files and tests ask for.
    pub(crate) fn set_folders(&self, command: &mut Command) {
        command.env("MILLSTREAM_GUESTS", self.guests()).env("MILLSTREAM_OUT", self.target.join("out"));
    }
}

/// Runs a command to its end with the terminal as ours.
///
/// # Errors
/// When it cannot be started, or fails.
pub(crate) fn run(command: &mut Command, printer: &Printer) -> Result<()> {
    let line = command_line(command);
    printer.progress(format_args!("$ {line}"));
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs a command to its end; what it says is shown only if it fails.
///
/// # Errors
/// When it cannot be started, or fails.
pub(crate) fn run_quietly(command: &mut Command, printer: &Printer) -> Result<()> {
    let line = command_line(command);
    let output = command.output().with_context(|| format!("cannot run `{line}`"))?;
    if !output.status.success() {
        printer.progress(String::from_utf8_lossy(&output.stdout));
        printer.progress(String::from_utf8_lossy(&output.stderr));
        bail!("`{line}` failed ({}); what it said is above", output.status);
    }
    Ok(())
}

/// Whether a program can be found.
pub(crate) fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words: Vec<_> = [program].into_iter().chain(command.get_args()).map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

fn outermost_manifests(folder: &Path, found: &mut Vec<PathBuf>) {
    if folder.join("Cargo.toml").is_file() {
        found.push(folder.to_owned());
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let skipped = ["target", "node_modules"].iter().any(|name| entry.file_name() == *name);
        if !skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            outermost_manifests(&entry.path(), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outer_crate_speaks_for_those_inside_it() {
        let root = tempfile::tempdir().expect("a folder for the test");
        for manifest in ["a/Cargo.toml", "a/inner/Cargo.toml", "b/c/Cargo.toml", "target/d/Cargo.toml"] {
            let path = root.path().join("examples").join(manifest);
            fs::create_dir_all(path.parent().expect("has one")).expect("new folders");
            fs::write(path, "").expect("the folder is there");
        }
        let workspace = Workspace { root: root.path().to_owned(), target: PathBuf::new(), ci: false };
        let examples = root.path().join("examples");
        assert_eq!(workspace.crates_under("examples"), [examples.join("a"), examples.join("b/c")]);
        assert!(workspace.crates_under("nowhere").is_empty());
    }
}

//! `cargo xtask lint`: what is checked without running anything.

use std::path::PathBuf;

use anyhow::Result;

use crate::printer::Printer;
use crate::workspace::{self, Workspace, is_on_path};

/// Checks format, lints and dependencies of all workspaces here.
pub(crate) fn run(workspace: &Workspace, printer: &Printer) -> Result<()> {
    let workspaces: Vec<PathBuf> = [workspace.root.clone()]
        .into_iter()
        .chain(FOLDERS.iter().flat_map(|folder| workspace.crates_under(folder)))
        .collect();
    for directory in &workspaces {
        printer.progress(format_args!("in {}", directory.display()));
        workspace::run(workspace.cargo(directory).args(["fmt", "--all", "--check"]), printer)?;
    }
    for directory in &workspaces {
        printer.progress(format_args!("in {}", directory.display()));
        workspace::run(workspace.cargo(directory).args(CLIPPY), printer)?;
    }
    check_dependencies(workspace, &workspaces, printer)
}

/// What dependencies are held to stands in `deny.toml`.
fn check_dependencies(workspace: &Workspace, workspaces: &[PathBuf], printer: &Printer) -> Result<()> {
    if !workspace.root.join("deny.toml").is_file() {
        return Ok(());
    }
    if !is_on_path("cargo-deny") && !workspace.ci {
        printer.progress("left out: cargo deny check; run `cargo install cargo-deny --locked`");
        return Ok(());
    }
    for directory in workspaces {
        printer.progress(format_args!("in {}", directory.display()));
        workspace::run(workspace.cargo(directory).args(DENY), printer)?;
    }
    Ok(())
}

const FOLDERS: [&str; 3] = ["guest-sdk", "examples", "tests/guests"];
const CLIPPY: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
const DENY: [&str; 7] = ["deny", "check", "--allow", "unused-wrapper", "bans", "licenses", "sources"];

//! Guests in JavaScript, against the bare interface, in the QuickJS engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use millstream_guest_build::{Packages, Step, componentize};

use super::output::{Guest, Output};
use super::{Built, require};
use crate::printer::Printer;
use crate::workspace::{Workspace, is_on_path, run_quietly};

/// A guest of one source file.
struct Source {
    name: &'static str,
    file: &'static str,
    world: &'static str,
    /// Whether the engine has what it takes from WASI, or traps where it would.
    wasi: bool,
}

pub(super) fn build(workspace: &Workspace, output: &Output, printer: &Printer) -> Result<Built> {
    let fresh: Option<Vec<_>> =
        SOURCES.iter().map(|source| output.up_to_date(source.name, &inputs(workspace, source))).collect();
    if let Some(guests) = fresh {
        return Ok(Built::of(guests));
    }
    if let Some(reason) = require_npm(printer)? {
        return Ok(Built::left_out(format!("the guests in JavaScript: {reason}")));
    }
    let folder = workspace.root.join(FOLDER);
    install_compiler(&folder, printer)?;
    let guests: Result<_> =
        SOURCES.iter().map(|source| build_one(workspace, source, output, printer)).collect();
    Ok(Built::of(guests?))
}

/// Makes npm be there, or says why it is not.
pub(super) fn require_npm(printer: &Printer) -> Result<Option<String>> {
    if is_on_path("npm") {
        return Ok(None);
    }
    if let Some(remedy) = require(&Packages::new(PACKAGES), printer)? {
        return Ok(Some(remedy));
    }
    Ok((!is_on_path("npm")).then(|| "there is no npm".to_owned()))
}

/// Installs what `package-lock.json` says, unless it did since that changed.
pub(super) fn install_compiler(folder: &Path, printer: &Printer) -> Result<()> {
    let installed =
        fs::metadata(folder.join("node_modules/.package-lock.json")).and_then(|file| file.modified());
    let wanted = fs::metadata(folder.join("package-lock.json")).and_then(|file| file.modified());
    match (installed, wanted) {
        (Ok(installed), Ok(wanted)) if installed >= wanted => Ok(()),
        _ => {
            printer.progress("installing the compiler for JavaScript (npm ci)");
            let mut npm = Command::new("npm");
            run_quietly(npm.current_dir(folder).args(["ci", "--no-audit", "--no-fund"]), printer)
        }
    }
}

fn build_one(workspace: &Workspace, source: &Source, output: &Output, printer: &Printer) -> Result<Guest> {
    let start = Instant::now();
    let work = workspace.target.join("guest-js");
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let built = work.join(source.name).with_extension("wasm");
    let folder = workspace.root.join(FOLDER);
    let mut command = Command::new(folder.join("node_modules/.bin/componentize-qjs"));
    command.current_dir(&folder).arg("--wit").arg(workspace.wit()).args(["--world", source.world]);
    command.args(["--js", source.file, "--sync"]).args((!source.wasi).then_some("--stub-wasi"));
    command.arg("--output").arg(&built);
    printer.progress(Step::Compiling { directory: folder.join(source.file) });
    run_quietly(&mut command, printer)?;
    let component = fs::read(&built).with_context(|| format!("cannot read {}", built.display()))?;
    let component = componentize(&component).with_context(|| format!("{} is not valid", source.file))?;
    output.put_made_of(source.name, &component, start.elapsed(), &inputs(workspace, source))
}

fn inputs(workspace: &Workspace, source: &Source) -> Vec<PathBuf> {
    let folder = workspace.root.join(FOLDER);
    vec![folder.join(source.file), folder.join("package-lock.json"), workspace.wit()]
}

const FOLDER: &str = "tests/guests/js";
const SOURCES: [Source; 3] = [
    Source { name: "js_map", file: "map.js", world: "map-module", wasi: false },
    Source { name: "js_process", file: "process.js", world: "process-module", wasi: false },
    Source { name: "js_wasi", file: "wasi.js", world: "map-module", wasi: true },
];
const PACKAGES: [&str; 2] = ["nodejs", "npm"];

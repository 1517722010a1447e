//! Servers that the tests start: installed once, below the target folder.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::printer::Printer;
use crate::workspace::{Workspace, is_on_path, run_quietly};

/// Installs the S3 server of the tests, unless what is there is what `requirements.txt` says.
///
/// # Errors
/// When there is no Python, or the packages cannot be had.
pub(crate) fn install(workspace: &Workspace, printer: &Printer) -> Result<()> {
    let folder = workspace.target.join("s3-server");
    let requirements = workspace.root.join(REQUIREMENTS);
    let wanted =
        fs::read(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    let stamp = folder.join("installed.txt");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if !is_on_path("python3") {
        bail!("python3 is missing, which the S3 server of the tests is written in; {HINT}");
    }
    printer.progress("installing the S3 server of the tests (python3 -m venv, pip install)");
    let made = run_quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), printer);
    made.context(HINT)?;
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--no-deps", "--disable-pip-version-check", "--requirement"]);
    run_quietly(pip.arg(&requirements), printer)?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

const REQUIREMENTS: &str = "tests/it/s3/requirements.txt";
const HINT: &str =
    "install Python 3.10 or later with its venv (Debian: apt-get install python3 python3-venv)";

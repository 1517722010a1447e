//! `cargo xtask demo`: three jobs over real flights, from nothing to results.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::guests;
use crate::printer::Printer;
use crate::workspace::{self, Workspace};

/// Builds guests and host, then runs each job as a user would.
pub(crate) fn run(workspace: &Workspace, printer: &Printer) -> Result<()> {
    guests::build_all(workspace, printer)?;
    // With the features that the tests have, so that what is under it is compiled once for both.
    let build = ["build", "--workspace", "--bin", "millstream"];
    workspace::run(workspace.cargo(&workspace.root).args(build), printer)?;
    for job in JOBS {
        run_job(workspace, job, printer)?;
    }
    Ok(())
}

fn run_job(workspace: &Workspace, job: &str, printer: &Printer) -> Result<()> {
    let folder = workspace.target.join("out").join(job);
    // The demo's own results of an earlier run; a sink refuses to mix them with new ones.
    if folder.is_dir() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let file = Path::new("examples").join(job).join("job.toml");
    let mut command = workspace.program("millstream");
    command.arg("run").arg(file);
    if let Some(flights) = year_of_flights() {
        command.env("MILLSTREAM_FLIGHTS", flights);
    }
    printer.progress(format_args!("\n{job}"));
    workspace::run(&mut command, printer)?;
    show_results(&folder, printer)
}

/// The whole year, where `MILLSTREAM_DATA` names a folder that has it; the job files have a month.
fn year_of_flights() -> Option<PathBuf> {
    let flights = Path::new(&env::var_os("MILLSTREAM_DATA")?).join("flights.csv.gz");
    flights.is_file().then_some(flights)
}

/// The first rows, and how many there are.
fn show_results(folder: &Path, printer: &Printer) -> Result<()> {
    let mut rows = 0;
    for path in parts(folder)? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for row in text.lines() {
            if rows < SHOWN {
                printer.result(row);
            }
            rows += 1;
        }
    }
    printer.progress(format_args!("{rows} rows in {}", folder.display()));
    Ok(())
}

fn parts(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("there are no results in {}", folder.display()))?;
    let mut paths: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    Ok(paths)
}

const JOBS: [&str; 3] = ["delays", "busy-planes", "rotations"];
const SHOWN: usize = 5;

//! Guests in Rust: each crate or workspace under `examples/` and `tests/guests/`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use millstream_guest_build::{
    BuildOptions, BuiltModule, Search, Toolchain, ToolchainError, build_rust_workspace,
};

use super::Built;
use super::output::{Guest, Output};
use crate::printer::Printer;
use crate::workspace::Workspace;

pub(super) fn build(workspace: &Workspace, output: &Output, printer: &Printer) -> Result<Built> {
    let directories: Vec<_> = FOLDERS.iter().flat_map(|folder| workspace.crates_under(folder)).collect();
    let mut built = Built::default();
    for directory in directories {
        let search = Search::new(&directory, true);
        let toolchain = match Toolchain::find(&search, &|step| printer.progress(step)) {
            Ok(toolchain) => toolchain,
            // A target that most users have no need for.
            Err(error @ ToolchainError::NotFound { .. }) if search.wasi() => {
                built.left_out = Some(format!("the guests in {}: {error}", directory.display()));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match build_one(workspace, &toolchain, &directory, output, printer) {
            Ok(guests) => guests.into_iter().for_each(|guest| built.add(guest)),
            Err(error) => built.add(Err(error)),
        }
    }
    Ok(built)
}

fn build_one(
    workspace: &Workspace,
    toolchain: &Toolchain,
    directory: &Path,
    output: &Output,
    printer: &Printer,
) -> Result<Vec<Result<Guest>>> {
    let start = Instant::now();
    let options = BuildOptions {
        target_dir: workspace.target.join("guest-crates"),
        locked: workspace.ci && directory.join("Cargo.lock").is_file(),
        tools: Vec::new(),
        log: workspace.target.join("guest-crates").join("build.log"),
    };
    let modules = build_rust_workspace(toolchain, directory, &options, &|step| printer.progress(step))?;
    let share = share_of(start.elapsed(), modules.len());
    let put = |module: Result<BuiltModule, _>| {
        let module = module?;
        output.put(&module.name, &module.component, share)
    };
    Ok(modules.into_iter().map(put).collect())
}

/// Cargo builds the guests of a workspace together, so that each has its part of the time.
fn share_of(time: Duration, modules: usize) -> Duration {
    time / u32::try_from(modules.max(1)).unwrap_or(u32::MAX)
}

const FOLDERS: [&str; 2] = ["examples", "tests/guests"];

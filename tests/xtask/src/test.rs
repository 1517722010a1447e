//! `cargo xtask test`: all tests of all workspaces here.

use anyhow::Result;

use crate::costs;
use crate::guests;
use crate::native;
use crate::printer::Printer;
use crate::services;
use crate::workspace::{self, Workspace};

/// What to test, and with which arguments.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Arguments for `cargo test`, as in `-p millstream-types` or `-- --nocapture`; without any, everything is
    /// tested.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the guests, which most tests run, then tests, and at last counts what the inner parts cost.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments, printer: &Printer) -> Result<()> {
    let left_out = guests::build_all(workspace, printer)?;
    services::install(workspace, printer)?;
    let mut test = workspace.cargo(&workspace.root);
    test.arg("test");
    if !arguments.arguments.is_empty() {
        return workspace::run(test.args(&arguments.arguments), printer);
    }
    workspace::run(test.arg("--workspace"), printer)?;
    // Functions run natively in the tests of their own crates.
    for directory in FOLDERS.iter().flat_map(|folder| workspace.crates_under(folder)) {
        printer.progress(format_args!("in {}", directory.display()));
        workspace::run(workspace.cargo(&directory).args(["test", "--workspace"]), printer)?;
    }
    native::test_sdks(workspace, printer)?;
    costs::check(workspace, printer)?;
    left_out.report(workspace, printer)
}

const FOLDERS: [&str; 3] = ["guest-sdk", "examples", "tests/guests"];

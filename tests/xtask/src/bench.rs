//! `cargo xtask bench`: builds the guests and hands over to the bench, in its release build.

use anyhow::Result;

use crate::guests;
use crate::printer::Printer;
use crate::workspace::{self, Workspace};

/// What the bench is asked for.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The bench's own arguments; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the bench.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments, printer: &Printer) -> Result<()> {
    guests::build_all(workspace, printer)?;
    let mut bench = workspace.cargo(&workspace.root);
    bench.args(["run", "--quiet", "--release", "--package", "millstream-bench", "--"]);
    workspace::run(bench.args(&arguments.arguments), printer)
}

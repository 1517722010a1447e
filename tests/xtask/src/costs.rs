//! `cargo xtask costs`: counts what the inner parts cost, in their release build, and holds them to their bars.

use anyhow::Result;

use crate::printer::Printer;
use crate::workspace::{self, Workspace, is_on_path};

/// What the counter is asked for.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The counter's own arguments; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Counts, as the arguments say.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments, printer: &Printer) -> Result<()> {
    count(workspace, &arguments.arguments, printer)
}

/// Counts what can be counted here; where a change is decided about, everything.
pub(crate) fn check(workspace: &Workspace, printer: &Printer) -> Result<()> {
    if is_on_path("valgrind") || workspace.ci {
        return count(workspace, &[], printer);
    }
    printer.progress("left out: counting instructions, for which valgrind is needed");
    count(workspace, &["--allocations-only".to_owned()], printer)
}

fn count(workspace: &Workspace, arguments: &[String], printer: &Printer) -> Result<()> {
    let mut count = workspace.cargo(&workspace.root);
    count.args(["run", "--quiet", "--release", "--package", "millstream-costs", "--"]);
    workspace::run(count.args(arguments), printer)
}

//! `cargo xtask costs`: counts what the inner parts cost and holds them to their bars.
//!
//! What is counted is the code of our crates as a release has it, upon dependencies as the tests have them. A release
//! build would have all of them compiled once more, for minutes, to find nothing else: a change of ours that costs more
//! does so here too.

use std::{fs, process::Command};

use anyhow::{Context, Result};

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
    workspace::run(&mut build(workspace)?, printer)?;
    let mut count = workspace.program("millstream-costs");
    workspace::run(count.args(arguments), printer)
}

/// Builds the counter: with the features that the tests have, and so upon the dependencies that they have compiled.
fn build(workspace: &Workspace) -> Result<Command> {
    let file = workspace.target.join("costs-profile.toml");
    fs::write(&file, profile(&workspace.members()?))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let mut build = workspace.cargo(&workspace.root);
    // What was compiled piece by piece would be other code than what was compiled at once.
    build.env("CARGO_INCREMENTAL", "0").arg("build").arg("--config").arg(file);
    build.args(["--workspace", "--bin", "millstream-costs"]);
    Ok(build)
}

/// The profile of these crates. One unit each: how the compiler divides a crate up would show in the counts.
fn profile(crates: &[String]) -> String {
    let of = |name: &String| {
        format!(
            "[profile.dev.package.{name}]\nopt-level = 3\ncodegen-units = 1\n\
             debug-assertions = false\noverflow-checks = false\n"
        )
    };
    crates.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_compiled_as_for_a_release() {
        let text = profile(&["a".to_owned(), "b".to_owned()]);
        let tables: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        assert_eq!(tables, ["[profile.dev.package.a]", "[profile.dev.package.b]"]);
        assert_eq!(text.matches("opt-level = 3\n").count(), 2);
    }
}

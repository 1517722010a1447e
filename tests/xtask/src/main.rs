//! `cargo xtask`: what one does with the workspace, one file a verb.

mod bench;
mod bindings;
mod costs;
mod demo;
mod guests;
mod lint;
mod native;
mod printer;
mod services;
mod soak;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::printer::Printer;
use crate::workspace::Workspace;

/// Set-up, tests, demo and bench of Millstream.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Builds the guests of examples/ and tests/guests/, installing compilers where that is possible.
    Guests,
    /// Writes the bindings of the interface that the SDK for C has in its folder.
    Bindings,
    /// Builds the guests, then runs all tests.
    Test(test::Arguments),
    /// Runs three jobs over real flights, from nothing to results.
    Demo,
    /// Measures, and compares with native Rust and Apache Flink; arguments go to the bench.
    Bench(bench::Arguments),
    /// Counts what the inner parts cost and holds them to their bars; arguments go to the counter.
    Costs(costs::Arguments),
    /// Kills jobs at random moments, for as long as is asked for, and compares what they wrote with undisturbed runs.
    Soak(soak::Arguments),
    /// Checks format, lints and dependencies, as they have to be for a change to be taken.
    Lint,
}

fn main() -> ExitCode {
    let printer = Printer;
    match run(&Arguments::parse().verb, &printer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            printer.error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(verb: &Verb, printer: &Printer) -> anyhow::Result<()> {
    let workspace = Workspace::find()?;
    if !matches!(verb, Verb::Guests | Verb::Bindings) {
        native::require(printer)?;
    }
    match verb {
        Verb::Guests => guests::build_all(&workspace, printer).map(drop),
        Verb::Bindings => bindings::write(&workspace, printer),
        Verb::Test(arguments) => test::run(&workspace, arguments, printer),
        Verb::Demo => demo::run(&workspace, printer),
        Verb::Bench(arguments) => bench::run(&workspace, arguments, printer),
        Verb::Costs(arguments) => costs::run(&workspace, arguments, printer),
        Verb::Soak(arguments) => soak::run(&workspace, arguments, printer),
        Verb::Lint => lint::run(&workspace, printer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}

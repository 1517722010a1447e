//! The `millstream` command line: one file a verb, one printer, and the wiring of the parts for each role.

mod args;
mod certificates;
mod cluster;
mod control;
mod exit;
mod load;
mod printer;
mod process;
mod progress;
mod summary;
mod verbs;

use std::{io::IsTerminal, process::ExitCode};

use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Runs the command with the process's arguments.
pub fn main() -> ExitCode {
    let args = args::Args::parse();
    start_logging(&args.verb);
    // Paths and values stay in one piece, so that they can be copied. Nobody else has set a hook before.
    drop(miette::set_hook(Box::new(|_| {
        Box::new(miette::MietteHandlerOpts::new().wrap_lines(false).build())
    })));
    let printer = printer::Printer::new(args.json);
    let done = verbs::run(args.verb, &printer).and_then(|exit| match printer.take_lost() {
        Some(error) => {
            Err(exit::Failure::environment(miette::miette!("standard output cannot be written: {error}")))
        }
        None => Ok(exit),
    });
    match done {
        Ok(exit) => exit.code(),
        Err(failure) => {
            printer.error(&failure);
            failure.exit.code()
        }
    }
}

/// Logs go to stderr; `MILLSTREAM_LOG` says which. A part of a cluster has nobody who sees anything else of it.
fn start_logging(verb: &args::Verb) {
    let serves =
        matches!(verb, args::Verb::Coordinator(_) | args::Verb::Worker(args::Worker { verb: None, .. }));
    let usual = if serves { "warn,millstream=info" } else { "warn" };
    let filter = EnvFilter::try_from_env("MILLSTREAM_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let format = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Where nobody reads the log any more there is nowhere to complain either.
    let format = format.log_internal_errors(false);
    format.with_ansi(std::io::stderr().is_terminal()).init();
}

//! The `millstream` command line: one file a verb, one printer, and the wiring of the parts for each role.

mod args;
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
    start_logging();
    let printer = printer::Printer::new(args.json);
    match verbs::run(args.verb, &printer) {
        Ok(exit) => exit.code(),
        Err(failure) => {
            printer.error(&failure);
            failure.exit.code()
        }
    }
}

/// Logs go to stderr; `MILLSTREAM_LOG` says which.
fn start_logging() {
    let filter = EnvFilter::try_from_env("MILLSTREAM_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let format = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    format.with_ansi(std::io::stderr().is_terminal()).init();
}

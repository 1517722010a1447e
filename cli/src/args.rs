//! The arguments.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

/// Streams of data through functions compiled to WebAssembly.
#[derive(Debug, Parser)]
#[command(name = "millstream", version, after_help = crate::exit::HELP)]
pub(crate) struct Args {
    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a job in this process until its input ends or Ctrl-C is pressed
    Run(Run),
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The job file
    pub(crate) job: PathBuf,
    /// Subtasks of each node that does not say otherwise, in the place of the job file's `parallelism`
    #[arg(long, short)]
    pub(crate) parallelism: Option<u32>,
    /// Print the plan and do not run it
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

//! The arguments.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::verbs::Kind;

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
    /// Take a savepoint of a running job
    Savepoint(Savepoint),
    /// Stop a running job, so that it can go on later
    Stop(Stop),
    /// Make a crate with a function, a job that runs it and a test
    New(New),
    /// Build a crate of functions into a WebAssembly module and describe it
    Build(Build),
    /// Feed fixtures through a function or a job and compare what comes out
    Test(Test),
    /// Print a script that completes this command in a shell
    Completions(Completions),
}

/// Arguments of `run`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The job file; without it the one in the savepoint that `--from` names, with the modules that are there
    #[arg(required_unless_present = "from")]
    pub(crate) job: Option<PathBuf>,
    /// Subtasks of each node that does not say otherwise, in the place of the job file's `parallelism`
    #[arg(long, short)]
    pub(crate) parallelism: Option<u32>,
    /// Take checkpoints and store them there, in the place of the job file's `checkpoint.dir`
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint_dir: Option<PathBuf>,
    /// Go on from a snapshot: `latest` of this job's checkpoints, or from its beginning if there is none; or the folder
    /// of one
    #[arg(long, value_name = "latest|PATH")]
    pub(crate) from: Option<String>,
    /// Print the plan and do not run it
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Which running job is meant.
#[derive(Debug, ClapArgs)]
pub(crate) struct Target {
    /// The job's name, where several of the folder are running
    pub(crate) job: Option<String>,
    /// The folder in which the job stores its checkpoints
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint_dir: PathBuf,
}

/// Arguments of `savepoint`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Savepoint {
    #[command(flatten)]
    pub(crate) target: Target,
    /// An empty or new folder for it, in the place of one beside the job's checkpoints
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
}

/// Arguments of `stop`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Stop at a savepoint, in the place of a last checkpoint: no window fires, and what goes on from it does as if the
    /// job had not been stopped
    #[arg(long)]
    pub(crate) savepoint: bool,
    /// An empty or new folder for the savepoint, in the place of one beside the job's checkpoints
    #[arg(long, value_name = "FOLDER", requires = "savepoint")]
    pub(crate) to: Option<PathBuf>,
    /// For good: let the input end here, so that all windows and timers fire
    #[arg(long)]
    pub(crate) drain: bool,
}

/// Arguments of `new`.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = crate::verbs::NEW_HELP)]
pub(crate) struct New {
    /// The crate's name
    pub(crate) name: String,
    /// What kind of function it has
    #[arg(long, value_enum, default_value_t = Kind::Map)]
    pub(crate) kind: Kind,
    /// The folder to make, in the place of one of the crate's name
    #[arg(long)]
    pub(crate) path: Option<PathBuf>,
    /// The folder of the SDK, in the place of MILLSTREAM_SDK; without either its sources go into the crate
    #[arg(long)]
    pub(crate) sdk: Option<PathBuf>,
}

/// Arguments of `build`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Build {
    /// The crate's folder, in the place of the current one
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The module's file, in the place of target/millstream/NAME.wasm in the crate's folder
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Use exactly the versions in Cargo.lock
    #[arg(long)]
    pub(crate) locked: bool,
}

/// Arguments of `test`.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = crate::verbs::FIXTURE_HELP)]
pub(crate) struct Test {
    /// A fixture, or a folder with fixtures in its folder `tests`
    #[arg(default_value = ".", value_name = "DIR|FIXTURE")]
    pub(crate) path: PathBuf,
    /// Rewrite what fixtures expect with what was found
    #[arg(long)]
    pub(crate) update: bool,
}

/// Arguments of `completions`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

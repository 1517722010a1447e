//! The arguments.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};

use crate::verbs::{Kind, Language};

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
    /// Look at the checkpoints and savepoints of jobs
    Checkpoint {
        #[command(subcommand)]
        verb: CheckpointVerb,
    },
    /// Look at the state in a checkpoint or savepoint
    State {
        #[command(subcommand)]
        verb: StateVerb,
    },
    /// Make a project with a function, a job that runs it and a test
    New(New),
    /// Build a project of functions into a WebAssembly module and describe it
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
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX", value_hint = ValueHint::AnyPath)]
    pub(crate) checkpoint_dir: Option<String>,
    /// Go on from a snapshot: `latest` of this job's checkpoints, or from its beginning if there is none; or the folder
    /// of one
    #[arg(long, value_name = "latest|PATH")]
    pub(crate) from: Option<String>,
    /// Go on from the snapshot without the state that the job does not have any more
    #[arg(long, requires = "from")]
    pub(crate) allow_dropped_state: bool,
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
    /// Where the job stores its checkpoints
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX", value_hint = ValueHint::AnyPath)]
    pub(crate) checkpoint_dir: String,
}

/// Arguments of `savepoint`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Savepoint {
    #[command(flatten)]
    pub(crate) target: Target,
    /// An empty or new folder for it, in the place of one beside the job's checkpoints
    #[arg(long, value_name = "FOLDER|s3://BUCKET/PREFIX", value_hint = ValueHint::AnyPath)]
    pub(crate) to: Option<String>,
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
    #[arg(long, value_name = "FOLDER|s3://BUCKET/PREFIX", value_hint = ValueHint::AnyPath, requires = "savepoint")]
    pub(crate) to: Option<String>,
    /// For good: let the input end here, so that all windows and timers fire
    #[arg(long)]
    pub(crate) drain: bool,
}

/// What can be done with checkpoints.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointVerb {
    /// List checkpoints and savepoints with their sizes and times
    List(CheckpointList),
}

/// Arguments of `checkpoint list`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CheckpointList {
    /// The folder in which jobs store their checkpoints
    #[arg(value_name = "DIR")]
    pub(crate) dir: String,
    /// Only those of this job
    #[arg(long)]
    pub(crate) job: Option<String>,
}

/// What can be done with state.
#[derive(Debug, Subcommand)]
pub(crate) enum StateVerb {
    /// Show which states a snapshot has, or the rows of some with their keys
    Show(StateShow),
}

/// Arguments of `state show`.
#[derive(Debug, ClapArgs)]
pub(crate) struct StateShow {
    /// The folder of a checkpoint or savepoint
    pub(crate) snapshot: String,
    /// The operator whose states are shown; without it only what there is
    pub(crate) operator: Option<String>,
    /// The state whose rows are shown, in the place of all of the operator's
    pub(crate) state: Option<String>,
    /// How rows are shown
    #[arg(long, value_enum, default_value_t = StateFormat::Table)]
    pub(crate) format: StateFormat,
    /// The file that Parquet goes into
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How many rows a table has at most
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}

/// How the rows of a state are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StateFormat {
    /// A table for people
    Table,
    /// A document a row, one a line
    Jsonl,
    /// A Parquet file
    Parquet,
}

/// Arguments of `new`.
#[derive(Debug, ClapArgs)]
#[command(after_long_help = crate::verbs::NEW_HELP)]
pub(crate) struct New {
    /// The project's name
    pub(crate) name: String,
    /// Which language it is in
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    pub(crate) lang: Language,
    /// What kind of function it has
    #[arg(long, value_enum, default_value_t = Kind::Map)]
    pub(crate) kind: Kind,
    /// The folder to make, in the place of one of the project's name
    #[arg(long)]
    pub(crate) path: Option<PathBuf>,
    /// The folder of the SDK, in the place of MILLSTREAM_SDK; without either its sources go into the project
    #[arg(long)]
    pub(crate) sdk: Option<PathBuf>,
}

/// Arguments of `build`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Build {
    /// The project's folder, in the place of the current one
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The module's file, in the place of target/millstream/NAME.wasm in the project's folder
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Use exactly the versions in the lock file
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

//! The arguments.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueHint};
use millstream_control::JobId;
use millstream_net::{ClusterId, Role};

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
    /// Coordinate a cluster: its workers register here, and its jobs are submitted here
    Coordinator(Coordinator),
    /// Offer slots to a cluster, or look at the workers of one
    #[command(args_conflicts_with_subcommands = true)]
    Worker(Worker),
    /// Run jobs on a cluster, and look at them
    Job {
        #[command(subcommand)]
        verb: JobVerb,
    },
    /// Make the certificates by which the parts of a cluster know each other
    Certs {
        #[command(subcommand)]
        verb: CertsVerb,
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
    #[command(flatten)]
    pub(crate) at: StopAt,
}

/// Where a job stops.
#[derive(Debug, ClapArgs)]
pub(crate) struct StopAt {
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

/// How a cluster is reached.
#[derive(Debug, ClapArgs)]
pub(crate) struct Cluster {
    /// Where the coordinator listens; several, if there are standbys
    #[arg(long, env = "MILLSTREAM_COORDINATOR", value_name = "HOST:PORT", value_delimiter = ',', default_value = COORDINATOR)]
    pub(crate) coordinator: Vec<String>,
    #[command(flatten)]
    pub(crate) certs: Certs,
}

/// Where certificates are.
#[derive(Debug, ClapArgs)]
pub(crate) struct Certs {
    /// The folder with the certificates of the cluster, in the place of one of the user's
    #[arg(long, env = "MILLSTREAM_CERTS", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) certs: Option<PathBuf>,
}

/// Where a coordinator listens if nobody says otherwise.
pub(crate) const COORDINATOR: &str = "127.0.0.1:7420";

/// Arguments of `coordinator`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Coordinator {
    /// Where it listens
    #[arg(long, value_name = "ADDRESS:PORT", default_value = COORDINATOR)]
    pub(crate) bind: SocketAddr,
    /// Where it keeps jobs and modules, so that it goes on with them when it is started again; another one that is given
    /// the same place stands by
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX", value_hint = ValueHint::AnyPath, default_value = "millstream-cluster")]
    pub(crate) dir: String,
    /// After how long a silence a worker is taken for lost
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(200..=600_000))]
    pub(crate) heartbeat_timeout: u64,
    #[command(flatten)]
    pub(crate) certs: Certs,
}

/// Arguments of `worker`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Worker {
    #[command(subcommand)]
    pub(crate) verb: Option<WorkerVerb>,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    /// Where it listens for other workers
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) bind: SocketAddr,
    /// Where other workers reach it, if not where it listens
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) advertise: Option<SocketAddr>,
    /// How many slots it offers, each a thread that runs one subtask of every operator of a job
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) slots: u32,
    /// Where it keeps state that does not fit into memory, and modules; in the place of a folder that goes with it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// What can be done with workers.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerVerb {
    /// List the workers with their slots
    List(Cluster),
}

/// What can be done with jobs of a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum JobVerb {
    /// Run a job on the cluster; prints its number
    Submit(JobSubmit),
    /// List the jobs, also those that have ended
    List(Cluster),
    /// Show a job with its figures
    Show(JobNamed),
    /// Give a job up at once
    Cancel(JobNamed),
    /// Take a savepoint of a job
    Savepoint(JobSavepoint),
    /// Stop a job, so that it can go on later
    Stop(JobStop),
}

/// Which job is meant.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobNamed {
    /// The job's name or number, or how its number begins
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// Arguments of `job submit`.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobSubmit {
    /// The job file
    pub(crate) job: PathBuf,
    /// Subtasks of each node that does not say otherwise, in the place of the job file's `parallelism`
    #[arg(long, short)]
    pub(crate) parallelism: Option<u32>,
    /// Take checkpoints and store them there, in the place of the job file's `checkpoint.dir`
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX", value_hint = ValueHint::AnyPath)]
    pub(crate) checkpoint_dir: Option<String>,
    /// Go on from a snapshot: the folder of one
    #[arg(long, value_name = "PATH")]
    pub(crate) from: Option<String>,
    /// Go on from the snapshot without the state that the job does not have any more
    #[arg(long, requires = "from")]
    pub(crate) allow_dropped_state: bool,
    /// The job's number, 32 hexadecimal digits: submitted again under the same one, it is the same job
    #[arg(long, value_name = "NUMBER")]
    pub(crate) id: Option<JobId>,
    /// Wait for the job's end
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
}

/// Arguments of `job savepoint`.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobSavepoint {
    #[command(flatten)]
    pub(crate) named: JobNamed,
    /// An empty or new folder for it, in the place of one beside the job's checkpoints
    #[arg(long, value_name = "FOLDER|s3://BUCKET/PREFIX", value_hint = ValueHint::AnyPath)]
    pub(crate) to: Option<String>,
}

/// Arguments of `job stop`.
#[derive(Debug, ClapArgs)]
pub(crate) struct JobStop {
    #[command(flatten)]
    pub(crate) named: JobNamed,
    #[command(flatten)]
    pub(crate) at: StopAt,
}

/// What can be done with certificates.
#[derive(Debug, Subcommand)]
pub(crate) enum CertsVerb {
    /// Make a new cluster: an authority, and a certificate of each role
    Init(CertsInit),
    /// Make a folder with a certificate for another machine
    Issue(CertsIssue),
}

/// Arguments of `certs init`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CertsInit {
    /// What the cluster is called, in the place of a name that is drawn
    #[arg(long)]
    pub(crate) cluster: Option<ClusterId>,
    #[command(flatten)]
    pub(crate) certs: Certs,
}

/// Arguments of `certs issue`.
#[derive(Debug, ClapArgs)]
pub(crate) struct CertsIssue {
    /// What the certificate is for: coordinator, worker or client
    pub(crate) role: Role,
    /// The folder to make: give it to the other machine, and name it there with `--certs`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) certs: Certs,
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

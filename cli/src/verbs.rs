//! One file a verb.

mod build;
mod certs;
mod checkpoint;
mod completions;
mod coordinator;
mod job;
mod new;
mod run;
mod savepoint;
mod serving;
pub(crate) mod snapshots;
mod state;
mod test;
mod worker;

pub(crate) use new::{HELP as NEW_HELP, Kind, Language};
pub(crate) use test::HELP as FIXTURE_HELP;

use crate::{
    args::{CertsVerb, CheckpointVerb, StateVerb, Verb, Worker, WorkerVerb},
    exit::{Exit, Failure},
    printer::Printer,
};

pub(crate) fn run(verb: Verb, printer: &Printer) -> Result<Exit, Failure> {
    match verb {
        Verb::Run(args) => run::run(&args, printer),
        Verb::Savepoint(args) => savepoint::savepoint(&args, printer),
        Verb::Stop(args) => savepoint::stop(&args, printer),
        Verb::Checkpoint { verb: CheckpointVerb::List(args) } => checkpoint::list(&args, printer),
        Verb::State { verb: StateVerb::Show(args) } => state::show(&args, printer),
        Verb::Coordinator(args) => coordinator::run(&args, printer),
        Verb::Worker(Worker { verb: Some(WorkerVerb::List(cluster)), .. }) => worker::list(&cluster, printer),
        Verb::Worker(args) => worker::run(&args, printer),
        Verb::Job { verb } => job::run(verb, printer),
        Verb::Certs { verb: CertsVerb::Init(args) } => certs::init(&args, printer),
        Verb::Certs { verb: CertsVerb::Issue(args) } => certs::issue(&args, printer),
        Verb::New(args) => new::run(&args, printer),
        Verb::Build(args) => build::run(&args, printer),
        Verb::Test(args) => test::run(&args, printer),
        Verb::Completions(args) => completions::run(&args, printer),
    }
}

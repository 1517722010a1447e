//! One file a verb.

mod run;

use crate::{
    args::Verb,
    exit::{Exit, Failure},
    printer::Printer,
};

pub(crate) fn run(verb: Verb, printer: &Printer) -> Result<Exit, Failure> {
    match verb {
        Verb::Run(args) => run::run(&args, printer),
    }
}

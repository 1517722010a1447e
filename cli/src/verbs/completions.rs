//! `millstream completions`: what a shell needs to complete the command line.

use clap::CommandFactory;

use crate::{
    args::{self, Args},
    exit::{Exit, Failure},
    printer::Printer,
};

pub(crate) fn run(args: &args::Completions, printer: &Printer) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "millstream", &mut script);
    printer.data(String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn every_shell_learns_every_verb() {
        let command = Args::command();
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command.clone(), "millstream", &mut script);
            let script = String::from_utf8(script).expect("scripts are text");
            for verb in command.get_subcommands() {
                assert!(script.contains(verb.get_name()), "{shell} does not know {}", verb.get_name());
            }
        }
    }
}

//! `cargo xtask soak`: the tests that kill jobs at random moments, again and again with other seeds.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::guests;
use crate::printer::Printer;
use crate::workspace::{self, Workspace};

/// For how long, and where chance begins.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// No round is begun after so many minutes.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// The seed of the first round, to repeat what an earlier soak found; without it, the clock's.
    #[arg(long)]
    seed: Option<u64>,
    /// How often each job is killed in a round.
    #[arg(long, default_value_t = 40)]
    kills: u32,
}

/// Goes from round to round until the time is over or a job has other rows than it should have.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments, printer: &Printer) -> Result<()> {
    guests::build_all(workspace, printer)?;
    let started = Instant::now();
    let first = arguments.seed.unwrap_or_else(seed_of_the_clock);
    let mut rounds = 0;
    while rounds == 0 || started.elapsed() < Duration::from_secs(60 * arguments.minutes) {
        let seed = first + rounds;
        printer.progress(format_args!("round {} with seed {seed}", rounds + 1));
        let mut test = workspace.cargo(&workspace.root);
        test.args(["test", "--workspace", "--test", "it", "--", "killed_at_any_moment"]);
        test.env("MILLSTREAM_SEED", seed.to_string()).env("MILLSTREAM_KILLS", arguments.kills.to_string());
        let again =
            || format!("`cargo xtask soak --minutes 0 --seed {seed} --kills {}` repeats it", arguments.kills);
        workspace::run(&mut test, printer).with_context(again)?;
        rounds += 1;
    }
    let kills = arguments.kills;
    printer.progress(format_args!(
        "no other result; rounds: {rounds}, kills of each job in a round: at least {kills}"
    ));
    Ok(())
}

fn seed_of_the_clock() -> u64 {
    // A clock that is before 1970 gives a seed as well.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

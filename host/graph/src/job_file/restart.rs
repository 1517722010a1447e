//! `restart` of `[job]`.

use std::time::Duration;

use crate::{RestartSpec, table_reader::TableReader};

/// Reads the table; none if there is none.
pub(super) fn read(job: &mut TableReader<'_>) -> Option<RestartSpec> {
    let mut table = job.table("restart")?;
    if table.entry("strategy").is_none() {
        table.missing("strategy", "strategy = \"fixed-delay\"");
    }
    let strategy = table.choice("strategy", &STRATEGIES);
    let spec = match strategy.map_or(Strategy::None, |s| s.value) {
        Strategy::None => RestartSpec::None,
        Strategy::FixedDelay => RestartSpec::FixedDelay {
            attempts: number(&mut table, "attempts"),
            delay: span(&mut table, "delay", SECOND),
        },
        Strategy::ExponentialDelay => RestartSpec::ExponentialDelay {
            initial: span(&mut table, "initial-delay", SECOND),
            max: span(&mut table, "max-delay", 60 * SECOND),
            reset_after: span(&mut table, "reset-after", 3600 * SECOND),
        },
        Strategy::FailureRate => RestartSpec::FailureRate {
            failures: number(&mut table, "failures"),
            interval: span(&mut table, "interval", 600 * SECOND),
            delay: span(&mut table, "delay", SECOND),
        },
    };
    table.finish();
    Some(spec)
}

#[derive(Clone, Copy)]
enum Strategy {
    None,
    FixedDelay,
    ExponentialDelay,
    FailureRate,
}

const STRATEGIES: [(&str, Strategy); 4] = [
    ("none", Strategy::None),
    ("fixed-delay", Strategy::FixedDelay),
    ("exponential-delay", Strategy::ExponentialDelay),
    ("failure-rate", Strategy::FailureRate),
];

const SECOND: Duration = Duration::from_secs(1);

fn number(table: &mut TableReader<'_>, key: &'static str) -> u32 {
    table.integer(key, 1, i64::from(u32::MAX)).map_or(3, |n| n.value as u32)
}

fn span(table: &mut TableReader<'_>, key: &'static str, default: Duration) -> Duration {
    table.duration(key).map_or(default, |d| d.value)
}

//! `cargo xtask costs`: counts what the parts cost and compares with `costs.toml`.

use std::{
    env, fs,
    io::Write,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail};
use clap::Parser;
use millstream_costs::{Bars, Counts, PARTS, Part, allocations, count_instructions, run_sections};

/// Counts the instructions and allocations of the inner parts and holds them to their bars.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask costs", bin_name = "cargo xtask costs")]
struct Args {
    /// Write what is counted as the bars
    #[arg(long)]
    accept: bool,
    /// Count no instructions, for which valgrind is needed
    #[arg(long, conflicts_with = "accept")]
    allocations_only: bool,
    /// The file with the bars, as seen from the root of the repository
    #[arg(long, value_name = "FILE", default_value = "tests/costs/costs.toml")]
    bars: PathBuf,
    /// Run the parts for valgrind
    #[arg(long, hide = true)]
    sections: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if args.sections {
        run_sections();
        return Ok(());
    }
    let mut counted = count(!args.allocations_only)?;
    let (file, compiler) = (&args.bars, compiler()?);
    if args.accept {
        fs::write(file, Bars::write(&compiler, &counted))?;
        print(&format!("wrote {}", file.display()));
        return Ok(());
    }
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let bars = Bars::parse(&text).with_context(|| format!("{} is not as it was written", file.display()))?;
    let regressions = |counted: &[(Part, Counts)]| {
        let of = |(part, counts): &(Part, Counts)| bars.regressions(part, counts, &compiler);
        counted.iter().flat_map(of).collect::<Vec<_>>()
    };
    for _ in 0..AGAIN {
        if regressions(&counted).is_empty() {
            break;
        }
        let again = count(!args.allocations_only)?;
        counted.iter_mut().zip(again).for_each(|((_, counts), (_, again))| counts.take_least(&again));
    }
    counted.iter().for_each(|(part, counts)| print(&line(part, counts)));
    let regressions = regressions(&counted);
    if regressions.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = regressions.iter().map(|r| format!("  {r}")).collect();
    bail!(
        "parts cost more than they may:\n{}\nif that is meant, run `cargo xtask costs --accept` and commit {}",
        list.join("\n"),
        file.display()
    );
}

fn count(instructions: bool) -> Result<Vec<(Part, Counts)>> {
    let mut counted: Vec<_> = PARTS.iter().map(|part| (*part, allocations(part))).collect();
    // Machine code of other machines has other counts.
    if instructions && cfg!(target_arch = "x86_64") {
        for ((_, counts), instructions) in counted.iter_mut().zip(count_instructions("--sections")?) {
            counts.instructions = Some(instructions);
        }
    }
    Ok(counted)
}

fn line(part: &Part, counts: &Counts) -> String {
    let instructions = counts.instructions.map(|i| format!("{i:.1} instructions a {}, ", part.unit));
    format!(
        "{}: {}{:.1} allocations a step, {:.1} bytes allocated a {}",
        part.name,
        instructions.unwrap_or_default(),
        counts.allocations,
        counts.bytes,
        part.unit
    )
}

/// `rustc 1.95.0 (...)` of the compiler that cargo uses.
fn compiler() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().context("cannot run rustc")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// How often a count that is too high is repeated. Where memory lies and how the standard library's tables are seeded is
/// another thing in each process, which some parts show by some percent; what a change of ours costs is there each time.
const AGAIN: usize = 3;

fn print(text: &str) {
    drop(writeln!(std::io::stdout(), "{text}"));
}

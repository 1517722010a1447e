//! Counts instructions: the parts run under valgrind's callgrind, guests included, which writes what it has counted to
//! a file whenever a certain function is called.

use std::{
    env, fs,
    hint::black_box,
    io,
    path::Path,
    process::{Command, ExitStatus},
};

use crate::{
    PARTS,
    count::{STEPS, sections},
};

/// Why instructions could not be counted.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// There is no valgrind.
    #[error("valgrind cannot be run; install it (Debian: apt-get install valgrind)")]
    NoValgrind(#[source] io::Error),
    /// It did not go through.
    #[error("valgrind ended with {status}: {output}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        output: String,
    },
    /// Its files are not as expected.
    #[error("what valgrind counted cannot be read from {file}: {problem}")]
    Unreadable {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// The instructions of a unit of each part, in their order. `argument` makes this program call [`run_sections`].
///
/// # Errors
/// Without valgrind, or if it fails.
pub fn count_instructions(argument: &str) -> Result<Vec<f64>, Unavailable> {
    let folder = tempfile::tempdir().map_err(Unavailable::NoValgrind)?;
    let out = folder.path().join("counts");
    let output = Command::new("valgrind")
        // Guests are code that the program itself writes.
        .args(["--tool=callgrind", "--smc-check=all-non-file", "--dump-before=*section_ends*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe().map_err(Unavailable::NoValgrind)?)
        .arg(argument)
        .output()
        .map_err(Unavailable::NoValgrind)?;
    if !output.status.success() {
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Unavailable::Failed { status: output.status, output: output_text });
    }
    let of_part = |(index, part): (usize, &crate::Part)| {
        // Files are numbered from 1; three a part, of which the first has its preparation.
        let section = |number: usize| read_total(&out, 3 * index + number);
        let (once, twice) = (section(2)?, section(3)?);
        Ok((twice - once) / STEPS as f64 / part.units as f64)
    };
    PARTS.iter().enumerate().map(of_part).collect()
}

/// Runs all parts for callgrind.
pub fn run_sections() {
    for part in &PARTS {
        sections(part, section_ends);
    }
}

/// Callgrind looks for this by its name.
#[inline(never)]
fn section_ends() {
    black_box(());
}

fn read_total(out: &Path, number: usize) -> Result<f64, Unavailable> {
    let file = format!("{}.{number}", out.display());
    let unreadable = |problem: String| Unavailable::Unreadable { file: file.clone(), problem };
    let text = fs::read_to_string(&file).map_err(|e| unreadable(e.to_string()))?;
    total(&text).ok_or_else(|| unreadable("expected a line `totals: NUMBER`".to_owned()))
}

fn total(text: &str) -> Option<f64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read() {
        assert_eq!(total("version: 1\nevents: Ir\n1 2\ntotals: 1234\n"), Some(1234.0));
        assert_eq!(total("version: 1\n"), None);
    }
}

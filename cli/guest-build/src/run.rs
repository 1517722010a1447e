//! Running other programs, with errors that show what was run and what it said.

use std::io;
use std::process::{Command, Output, Stdio};

/// A program could not be started, or failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The program is not there or may not be executed.
    #[error("cannot run `{command}`")]
    Start {
        /// The whole command line.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The program ended with a failure.
    #[error("`{command}` failed ({status}); its last lines:\n{tail}")]
    Failed {
        /// The whole command line.
        command: String,
        /// Its exit status.
        status: String,
        /// The end of what it wrote to its standard error.
        tail: String,
    },
}

/// Runs to the end, input closed, output captured; fails where the program does.
pub(crate) fn capture(command: &mut Command) -> Result<Output, CommandError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().map_err(|source| CommandError::Start { command: line(command), source })?;
    if output.status.success() {
        return Ok(output);
    }
    Err(CommandError::Failed {
        command: line(command),
        status: output.status.to_string(),
        tail: last_lines(&output.stderr),
    })
}

/// As [`capture`], for a program that prints one short text.
pub(crate) fn capture_text(command: &mut Command) -> Result<String, CommandError> {
    let output = capture(command)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The command line as one would type it, without the environment.
pub(crate) fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|argument| argument.to_string_lossy()));
    words.join(" ")
}

/// Enough of a failing program's words to see why, and not a screen of progress before them.
fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines[from..].join("\n")
}

const TAIL_LINES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_command_and_only_its_last_lines() {
        let mut command = Command::new("sh");
        command.args(["-c", "seq 1 50 >&2; exit 3"]);
        let message = capture(&mut command).expect_err("exits with 3").to_string();
        assert!(message.contains("seq 1 50"), "{message}");
        assert!(message.contains("exit status: 3"), "{message}");
        assert!(message.ends_with("\n49\n50"), "{message}");
        assert!(!message.contains("\n30\n"), "{message}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = capture(&mut Command::new("no-such-program-here")).expect_err("does not exist");
        assert!(error.to_string().contains("cannot run `no-such-program-here`"), "{error}");
    }
}

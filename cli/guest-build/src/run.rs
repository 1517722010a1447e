//! Running other programs, with errors that show what was run and what it said.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use anstream::StripStream;

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
    /// What it says could not be kept.
    #[error("cannot write {path}")]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
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

/// Runs to the end, input closed, standard output captured. Standard error is shown as it comes and kept in a file,
/// there without colours.
pub(crate) fn shown(command: &mut Command, log: &Path) -> Result<Output, CommandError> {
    let unwritten = |source| CommandError::Log { path: log.to_owned(), source };
    let file = create(log).map_err(unwritten)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if io::stderr().is_terminal() {
        // Cargo sees a pipe.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let command_line = line(command);
    let unstarted = |source| CommandError::Start { command: command_line.clone(), source };
    let mut child = command.spawn().map_err(unstarted)?;
    let stderr = child.stderr.take();
    let (copied, output) = thread::scope(|scope| {
        let copying = scope.spawn(|| stderr.map_or(Ok(()), |stderr| show_and_keep(stderr, file)));
        let output = child.wait_with_output();
        (copying.join(), output)
    });
    copied.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(unwritten)?;
    output.map_err(unstarted)
}

fn create(log: &Path) -> io::Result<File> {
    if let Some(folder) = log.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create(log)
}

/// What cannot be shown is kept all the same.
fn show_and_keep(mut from: impl Read, file: File) -> io::Result<()> {
    let mut file = StripStream::new(file);
    let mut buffer = [0; 8192];
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            return file.flush();
        }
        let _ = io::stderr().write_all(&buffer[..length]);
        file.write_all(&buffer[..length])?;
    }
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
    fn what_is_shown_is_kept_without_colours() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let log = folder.path().join("new/build.log");
        let mut command = Command::new("sh");
        command.args(["-c", "printf '\\033[31mred\\033[0m\\n' >&2; echo out; exit 3"]);
        let output = shown(&mut command, &log).expect("runs");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"out\n"[..]));
        assert_eq!(fs::read_to_string(&log).expect("was written"), "red\n");
        let error = shown(&mut command, &log.join("not-a-folder")).expect_err("a file is no folder");
        assert!(error.to_string().starts_with("cannot write "), "{error}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = capture(&mut Command::new("no-such-program-here")).expect_err("does not exist");
        assert!(error.to_string().contains("cannot run `no-such-program-here`"), "{error}");
    }
}

//! Exit codes. They are part of the interface: scripts rely on them.

use std::process::ExitCode;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well; also when a job was stopped and finished cleanly.
    Success = 0,
    /// The job ran and failed, or a test found a difference.
    Failed = 1,
    /// What was asked for is wrong: the job file, a module, a fixture. Nothing ran. (2 is clap's, for wrong arguments.)
    Invalid = 3,
    /// Something around it is missing or broken: a file, a tool, a disk.
    Environment = 4,
    /// The user cancelled it.
    Cancelled = 130,
}

impl Exit {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// What the help text says of exit codes.
pub(crate) const HELP: &str = "Exit codes:
    0  all went well, or a job was stopped and finished what it had read
    1  the job failed, or a test found a difference
    2  wrong arguments
    3  the job file, a module or a fixture is wrong; nothing ran
    4  a file, tool or disk is missing or broken
  130  cancelled";

/// A command that did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// None if it has been printed already.
    pub(crate) error: Option<miette::Report>,
}

impl Failure {
    /// What was asked for is wrong.
    pub(crate) fn invalid(error: impl Into<miette::Report>) -> Self {
        Self { exit: Exit::Invalid, error: Some(error.into()) }
    }

    /// What was asked for is wrong, and that has been printed.
    pub(crate) fn reported() -> Self {
        Self { exit: Exit::Invalid, error: None }
    }

    /// Something around the command is missing or broken.
    pub(crate) fn environment(error: impl Into<miette::Report>) -> Self {
        Self { exit: Exit::Environment, error: Some(error.into()) }
    }

    /// What ran failed.
    pub(crate) fn failed(error: impl Into<miette::Report>) -> Self {
        Self { exit: Exit::Failed, error: Some(error.into()) }
    }
}

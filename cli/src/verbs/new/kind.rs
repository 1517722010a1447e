//! The kinds of function that a project may begin with.

use clap::ValueEnum;

/// What kind of function a new crate has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Rows in, rows out, one by one
    Map,
    /// Rows by key, with state and timers
    Process,
    /// Windows, whose rows are taken in as they come
    Aggregate,
    /// Windows, all rows of one at once
    Window,
}

impl Kind {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Process => "process",
            Self::Aggregate => "aggregate",
            Self::Window => "window",
        }
    }

    /// What its function is called in the manifest.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Map => "hot",
            Self::Process => "silence",
            Self::Aggregate => "average",
            Self::Window => "steepest",
        }
    }

    /// What the job file says of its operator beyond function and input.
    pub(crate) fn settings(self) -> &'static str {
        match self {
            Self::Map => "parameters = { limit = 30.0 }",
            Self::Process => "key = [\"sensor\"]\nparameters = { minutes = 15 }",
            Self::Aggregate => "key = [\"sensor\"]\nwindow = { tumbling = \"10m\", start = \"from\" }",
            Self::Window => "key = [\"sensor\"]\nwindow = { session = \"15m\" }",
        }
    }

    /// The fixture of its function.
    pub(crate) fn fixture(self) -> &'static str {
        match self {
            Self::Map => include_str!("../../../templates/fixtures/map.jsonl.in"),
            Self::Process => include_str!("../../../templates/fixtures/process.jsonl.in"),
            Self::Aggregate => include_str!("../../../templates/fixtures/aggregate.jsonl.in"),
            Self::Window => include_str!("../../../templates/fixtures/window.jsonl.in"),
        }
    }
}

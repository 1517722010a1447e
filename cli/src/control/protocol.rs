//! What is said.

use std::path::PathBuf;

use millstream_worker::SnapshotTaken;
use serde::{Deserialize, Serialize};

/// What is asked of a running job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Take a savepoint and go on.
    Savepoint {
        /// An empty place for it, absolute.
        folder: Option<String>,
    },
    /// Stop, at a savepoint or else at a last checkpoint.
    Stop {
        /// Whether a savepoint is to be taken.
        savepoint: bool,
        /// An empty place for it, absolute.
        folder: Option<String>,
        /// Whether the input ends before, so that everything fires.
        drain: bool,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The snapshot is complete.
    Taken(SnapshotTaken),
    /// Sources read no further, and the job comes to its end.
    Draining,
    /// It was not done.
    Error(String),
}

/// Where the process of a run listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Address {
    /// The machine.
    pub(crate) host: String,
    /// The process's number there.
    pub(crate) process: u32,
    /// The socket.
    pub(crate) socket: PathBuf,
}

impl Address {
    /// Whether it is on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.host == host()
    }
}

/// How this machine calls itself; empty where it does not say.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// A line is at most so long.
pub(crate) const LINE: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_lines() {
        let line = |request: &Request| serde_json::to_string(request).expect("it has a form");
        let savepoint = Request::Savepoint { folder: None };
        assert_eq!(line(&savepoint), r#"{"request":"savepoint","folder":null}"#);
        let stop = Request::Stop { savepoint: true, folder: Some("/s".into()), drain: false };
        assert_eq!(line(&stop), r#"{"request":"stop","savepoint":true,"folder":"/s","drain":false}"#);
        let taken =
            Reply::Taken(SnapshotTaken { path: "/s".into(), id: 7, savepoint: true, took_ms: 5, bytes: 9 });
        assert_eq!(
            serde_json::to_string(&taken).expect("it has a form"),
            r#"{"taken":{"path":"/s","id":7,"savepoint":true,"took-ms":5,"bytes":9}}"#
        );
    }
}

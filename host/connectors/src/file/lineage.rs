//! Parts by name: `part-<uid>-<subtask>-<counter>.<format>`, and what a snapshot knows of them.
//!
//! Until a part is visible its name begins with a dot and ends with `~<run>.<attempt>`, which says who writes it: an attempt
//! that has been given up and does not know it yet, as on a machine that stood still, cannot touch what the next one writes.
//!
//! A *lineage* is the parts that one subtask of one run has written or will: a uid, a subtask and an ascending counter. A
//! snapshot has the next number and the parts that are closed and not visible yet. So a restore knows of every file in
//! the folder whether its rows are in the snapshot: parts from the next number on are not, and go.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use millstream_operator::ConnectorError;
use millstream_types::{Attempt, RunId, crash_point};
use serde::{Deserialize, Serialize};

use super::part::publish;

/// The parts of one subtask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lineage {
    pub(crate) uid: String,
    pub(crate) subtask: u32,
    /// The number of the next part.
    pub(crate) next: u64,
    /// Closed parts that are not visible, in order: by their hidden names without the dot.
    pub(crate) closed: Vec<String>,
    /// The folder in which they are, absolute.
    folder: PathBuf,
}

impl Lineage {
    /// Nothing written yet.
    pub(crate) fn new(uid: String, subtask: u32, folder: &Path) -> Self {
        Self { uid, subtask, next: 0, closed: Vec::new(), folder: absolute(folder) }
    }

    /// The name of the next part, which `writer` writes.
    pub(crate) fn name_next(&mut self, extension: &str, writer: Writer) -> String {
        let name = format!("part-{}-{}-{}.{extension}~{writer}", self.uid, self.subtask, self.next);
        self.next += 1;
        name
    }

    /// As a snapshot has it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers always encode")
    }

    /// Reads what [`Lineage::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ConnectorError> {
        serde_json::from_slice(bytes).map_err(|e| {
            ConnectorError::external(format!("the snapshot was not written by a file sink: {e}"), e)
        })
    }

    /// Brings a folder to where this lineage is: what is closed becomes visible, and what came later goes.
    ///
    /// In another folder than then, that has nothing of the lineage, what was written stays where it was written. In the
    /// same one nothing of what the snapshot has may be missing: its rows would be in no part. What `writer` may know nothing
    /// of, as it is no longer the one that counts, stays.
    pub(crate) fn restore(&mut self, folder: &Path, writer: Writer) -> Result<(), ConnectorError> {
        let moved = std::mem::replace(&mut self.folder, absolute(folder)) != absolute(folder);
        // Later ones are of an attempt that went on from this snapshot in this folder already.
        let mine = |name: &String| {
            PartName::parse(name).is_some_and(|part| self.wrote(&part) && part.counter < self.next)
        };
        if moved && !self.closed.is_empty() && !parts(folder)?.iter().any(mine) {
            let (folder, closed) = (folder.display(), self.closed.len());
            tracing::warn!(%folder, closed, "none of the parts that the snapshot knows are here: they stay where they are");
            self.closed.clear();
        }
        let lost = |e: ConnectorError| {
            let what =
                "its rows are in the snapshot and would be lost: put the part back, or name another folder";
            ConnectorError::external(format!("{e}; {what}"), e)
        };
        self.closed.drain(..).try_for_each(|name| publish(folder, &name).map_err(lost))?;
        crash_point("sink-restored-by-half");
        remove_parts(folder, |part| self.wrote(part) && part.counter >= self.next && writer.may_remove(part))
    }

    fn wrote(&self, part: &PartName<'_>) -> bool {
        part.uid == self.uid && part.subtask == u64::from(self.subtask)
    }
}

fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

/// Who writes a part: an attempt of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    pub(crate) run: RunId,
    pub(crate) attempt: Attempt,
}

impl Writer {
    /// Whether a part that came later than what is restored is of the past. A newer attempt of the same run may be writing
    /// or have shown parts; only the first attempt of a run goes on from anything but the newest checkpoint, and finds parts
    /// that a later one had shown.
    fn may_remove(self, part: &PartName<'_>) -> bool {
        match part.writer {
            Some(other) => other.run != self.run || other.attempt <= self.attempt,
            None => part.hidden || self.attempt.0 == 0,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (run, attempt) = text.split_once('.')?;
        Some(Self { run: RunId(u64::from_str_radix(run, 16).ok()?), attempt: Attempt(attempt.parse().ok()?) })
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.run.0, self.attempt)
    }
}

/// The name under which a part becomes visible.
pub(crate) fn visible_name(name: &str) -> &str {
    name.split_once('~').map_or(name, |(visible, _)| visible)
}

/// A name that this sink gives.
pub(crate) struct PartName<'a> {
    pub(crate) uid: &'a str,
    pub(crate) subtask: u64,
    pub(crate) counter: u64,
    hidden: bool,
    /// None for one that is visible.
    writer: Option<Writer>,
}

impl<'a> PartName<'a> {
    /// Reads a name, hidden or not; none if this sink does not give such names.
    pub(crate) fn parse(name: &'a str) -> Option<Self> {
        let (hidden, name) = name.strip_prefix('.').map_or((false, name), |name| (true, name));
        let (name, writer) = match name.split_once('~') {
            Some((name, writer)) => (name, Some(Writer::parse(writer)?)),
            None => (name, None),
        };
        let (stem, extension) = name.strip_prefix("part-")?.split_once('.')?;
        let known = ["csv", "jsonl", "parquet"].contains(&extension.split('.').next().unwrap_or_default());
        let fields: Vec<_> = stem.split('-').collect();
        let [uid, subtask, counter] = fields[..] else { return None };
        let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?;
        let is_uid = uid.len() == 8 && uid.bytes().all(|b| b.is_ascii_hexdigit());
        (known && is_uid).then_some(())?;
        Some(Self { uid, subtask: number(subtask)?, counter: number(counter)?, hidden, writer })
    }
}

/// The names of the parts in a folder, hidden ones included.
pub(crate) fn parts(folder: &Path) -> Result<Vec<String>, ConnectorError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| cannot_use(folder, e))? {
        let name = entry.map_err(|e| cannot_use(folder, e))?.file_name();
        let name = name.to_string_lossy();
        if PartName::parse(&name).is_some() {
            found.push(name.into_owned());
        }
    }
    Ok(found)
}

/// Removes some of the parts in a folder.
pub(crate) fn remove_parts(
    folder: &Path,
    remove: impl Fn(&PartName<'_>) -> bool,
) -> Result<(), ConnectorError> {
    for name in parts(folder)? {
        if PartName::parse(&name).is_some_and(|part| remove(&part)) {
            fs::remove_file(folder.join(&name)).map_err(|e| cannot_use(folder, e))?;
        }
    }
    Ok(())
}

/// The system does not let the folder be used.
pub(crate) fn cannot_use(folder: &Path, error: io::Error) -> ConnectorError {
    ConnectorError::external(format!("{}: the folder cannot be used: {error}", folder.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_are_parts() {
        for part in [
            "part-0123abcd-0-0.jsonl",
            "part-0123abcd-12-345.csv.gz",
            ".part-0123abcd-0-0.parquet",
            ".part-0123abcd-0-0.csv.gz~00000000000000a1.3",
        ] {
            assert!(PartName::parse(part).is_some(), "{part}");
        }
        for other in [
            "part-1.csv",
            "part-0123abcd-0.csv",
            "part-0123abcd-0-0.txt",
            "part-0123abcz-0-0.csv",
            "part-0123abcd--0.csv",
            "x",
            "part-.csv",
            ".part-0123abcd-0-0.csv~3",
        ] {
            assert!(PartName::parse(other).is_none(), "{other}");
        }
        let part = PartName::parse(".part-0123abcd-12-345.csv.gz").expect("a part");
        assert_eq!((part.uid, part.subtask, part.counter), ("0123abcd", 12, 345));
    }

    const WRITER: Writer = Writer { run: RunId(7), attempt: Attempt(1) };

    #[test]
    fn an_attempt_that_was_given_up_takes_nothing_away() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str| fs::write(folder.path().join(name), "{}").expect("writable");
        let newer = Writer { attempt: Attempt(2), ..WRITER };
        let older = Writer { attempt: Attempt(0), ..WRITER };
        let another = Writer { run: RunId(8), attempt: Attempt(9) };
        let names = |writer: Writer| format!(".part-00c0ffee-0-4.jsonl~{writer}");
        for name in
            [names(newer), names(older), names(WRITER), names(another), "part-00c0ffee-0-5.jsonl".to_owned()]
        {
            write(&name);
        }
        let mut lineage = Lineage { next: 4, ..Lineage::new("00c0ffee".to_owned(), 0, folder.path()) };
        lineage.restore(folder.path(), WRITER).expect("a folder");
        let mut left = parts(folder.path()).expect("a folder");
        left.sort();
        // Only the first attempt of a run may have been asked to go on from an older checkpoint.
        assert_eq!(left, [names(newer), "part-00c0ffee-0-5.jsonl".to_owned()]);
        lineage.restore(folder.path(), older).expect("a folder");
        assert_eq!(parts(folder.path()).expect("a folder"), [names(newer)]);
    }

    /// Four parts, of which the last is closed and not visible, written in another folder.
    fn elsewhere() -> Lineage {
        let mut lineage = Lineage::new("00c0ffee".to_owned(), 0, Path::new("/elsewhere"));
        let names: Vec<String> = (0..4).map(|_| lineage.name_next("jsonl", WRITER)).collect();
        lineage.closed.push(names[3].clone());
        lineage
    }

    #[test]
    fn an_attempt_in_another_folder_can_be_made_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let killed = folder.path().join(".part-00c0ffee-0-4.jsonl");
        fs::write(&killed, "{}").expect("writable");
        let mut lineage = elsewhere();
        lineage.restore(folder.path(), WRITER).expect("what is here came later");
        assert!(lineage.closed.is_empty() && !killed.exists());
    }

    #[test]
    fn what_is_missing_beside_parts_of_the_snapshot_would_be_lost() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("part-00c0ffee-0-2.jsonl"), "{}").expect("writable");
        let error = elsewhere().restore(folder.path(), WRITER).expect_err("the last part").to_string();
        assert!(error.contains("part-00c0ffee-0-3.jsonl") && error.contains("would be lost"), "{error}");
    }
}

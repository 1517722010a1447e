//! Which piece of which file is read next: in natural order of path, then by offset.

use std::{
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
    time::{Duration, Instant, UNIX_EPOCH},
};

use millstream_operator::{Assignment, ConnectorError, SourceSnapshot, Split, SplitEnumerator};
use serde::{Deserialize, Serialize};

use super::{
    layout::Layout,
    listing::{Listing, natural_order},
    split::{FileSplit, Splitter, Uncut},
};

/// Where files are found and how they are cut.
#[derive(Clone, Debug)]
pub(crate) struct EnumeratorOptions {
    pub(crate) listing: Listing,
    pub(crate) layout: Layout,
    pub(crate) split_size: Option<u64>,
    pub(crate) parallelism: u32,
    /// How often to look for new files, if ever.
    pub(crate) watch: Option<Duration>,
}

/// Hands out the splits of a source's files.
pub(crate) struct FileEnumerator {
    options: EnumeratorOptions,
    looked: Instant,
    known: BTreeMap<PathBuf, Stamp>,
    files: VecDeque<PathBuf>,
    current: Option<Splitter>,
    /// Splits that had been begun before a snapshot, by subtask.
    begun: Vec<Vec<Split>>,
}

/// What has not been handed out, as it is written into a snapshot.
#[derive(Serialize, Deserialize)]
struct Left {
    known: BTreeMap<PathBuf, Stamp>,
    files: VecDeque<PathBuf>,
    current: Option<Uncut>,
    begun: Vec<Split>,
}

impl FileEnumerator {
    /// One that knows the files that are there now.
    pub(crate) fn new(options: EnumeratorOptions) -> Result<Self, ConnectorError> {
        let (known, files) = (BTreeMap::new(), VecDeque::new());
        let looked = Instant::now();
        let mut enumerator = Self { options, looked, known, files, current: None, begun: Vec::new() };
        enumerator.look()?;
        Ok(enumerator)
    }

    /// One that goes on with what was left at a snapshot.
    pub(crate) fn restore(
        options: EnumeratorOptions,
        snapshot: &SourceSnapshot,
    ) -> Result<Self, ConnectorError> {
        let left: Left = serde_json::from_slice(&snapshot.enumerator).map_err(|e| {
            let path = options.listing.path().display();
            ConnectorError::external(format!("{path}: the snapshot was not written by a file source: {e}"), e)
        })?;
        let begun = left.begun.into_iter().chain(snapshot.unfinished.iter().cloned());
        let begun = deal(begun.collect(), options.parallelism)?;
        let current = left.current.map(|uncut| Splitter::resume(&options.layout, uncut));
        let Left { known, files, .. } = left;
        Ok(Self { options, looked: Instant::now(), known, files, current, begun })
    }

    /// Whether there is nothing to read now or ever.
    pub(crate) fn is_finished(&self) -> bool {
        self.files.is_empty() && self.options.watch.is_none()
    }

    /// Puts new files into the queue; says which of the others have changed, once for each change.
    fn look(&mut self) -> Result<Vec<PathBuf>, ConnectorError> {
        self.looked = Instant::now();
        let mut changed = Vec::new();
        for file in self.options.listing.files()? {
            let stamp = Stamp::of(&file);
            match self.known.insert(file.clone(), stamp) {
                None => self.files.push_back(file),
                Some(before) if before != stamp => changed.push(file),
                Some(_) => {}
            }
        }
        for file in &changed {
            tracing::warn!(
                file = %file.display(),
                "the file has changed since it was found and is not read again: new rows belong into new files"
            );
        }
        Ok(changed)
    }
}

/// By what it is seen that a file is not what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    length: u64,
    /// Nanoseconds since 1970.
    modified: u64,
}

impl Stamp {
    /// Nothing of a file that has gone meanwhile: whoever reads it says so.
    fn of(file: &Path) -> Self {
        let Ok(metadata) = file.metadata() else { return Self::default() };
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Self { length: metadata.len(), modified }
    }
}

impl SplitEnumerator for FileEnumerator {
    fn next_split(&mut self, subtask: u32) -> Result<Assignment, ConnectorError> {
        let begun = self.begun.get_mut(subtask as usize).map(std::mem::take);
        if let Some(begun) = begun.filter(|splits| !splits.is_empty()) {
            return Ok(Assignment::Splits(begun));
        }
        loop {
            if let Some(splitter) = &mut self.current {
                if let Some(split) = splitter.next_split()? {
                    return Ok(Assignment::Splits(vec![split.encode()]));
                }
                self.current = None;
            }
            if let Some(file) = self.files.pop_front() {
                let EnumeratorOptions { layout, split_size, parallelism, .. } = &self.options;
                self.current = Some(Splitter::open(layout, &file, *split_size, *parallelism)?);
                continue;
            }
            let Some(interval) = self.options.watch else {
                return Ok(Assignment::Finished);
            };
            let left = interval.saturating_sub(self.looked.elapsed());
            if !left.is_zero() {
                return Ok(Assignment::Later(left));
            }
            self.look()?;
        }
    }

    fn snapshot(&self) -> Result<Vec<u8>, ConnectorError> {
        let left = Left {
            known: self.known.clone(),
            files: self.files.clone(),
            current: self.current.as_ref().map(Splitter::uncut),
            begun: self.begun.iter().flatten().cloned().collect(),
        };
        serde_json::to_vec(&left).map_err(|e| {
            let path = self.options.listing.path().display();
            ConnectorError::external(format!("{path}: the position cannot be written: {e}"), e)
        })
    }
}

/// Each subtask's share of splits that were begun, in natural order.
fn deal(begun: Vec<Split>, parallelism: u32) -> Result<Vec<Vec<Split>>, ConnectorError> {
    let decode = |split: Split| Ok((FileSplit::decode(&split)?, split));
    let mut begun = begun.into_iter().map(decode).collect::<Result<Vec<_>, ConnectorError>>()?;
    begun.sort_by(|(a, _), (b, _)| {
        let paths = natural_order(&a.path.to_string_lossy(), &b.path.to_string_lossy());
        paths.then(a.start.cmp(&b.start))
    });
    let subtasks = parallelism.max(1) as usize;
    let mut dealt = vec![Vec::new(); subtasks];
    for (index, (_, split)) in begun.into_iter().enumerate() {
        dealt[index % subtasks].push(split);
    }
    Ok(dealt)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use millstream_types::Schema;

    use super::*;
    use crate::file::options::Format;

    #[test]
    fn a_file_that_changes_is_told_once_and_not_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.jsonl");
        fs::write(&file, "{}\n").expect("written");
        let layout = Layout { format: Format::Jsonl, compression: None, schema: Schema::empty() };
        let mut enumerator = FileEnumerator::new(EnumeratorOptions {
            listing: Listing::new(folder.path(), "*.jsonl").expect("a pattern"),
            layout,
            split_size: None,
            parallelism: 1,
            watch: Some(Duration::ZERO),
        })
        .expect("a folder that can be listed");
        assert_eq!(enumerator.look().expect("listed"), Vec::<PathBuf>::new());
        fs::write(&file, "{}\n{}\n").expect("written");
        assert_eq!(enumerator.look().expect("listed"), std::slice::from_ref(&file));
        assert_eq!(enumerator.look().expect("listed"), Vec::<PathBuf>::new());
        assert_eq!(enumerator.files, [file], "as when it was new");
    }
}

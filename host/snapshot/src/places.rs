//! Where state may lie. Metadata comes from a disk or a network, so what it names is input: no file outside the folders of
//! its run, and no byte twice, since a few bytes that are named a million times would be read into any amount of memory.

use crate::{Location, SnapshotMetadata, StateMetadata};

/// What is wrong with the places of a snapshot, if anything is.
pub(crate) fn problem(metadata: &SnapshotMetadata) -> Option<String> {
    let mut in_files = Vec::new();
    for state in metadata.states() {
        let mut inline = Vec::new();
        for chunk in state.chunks.iter().filter(|chunk| chunk.length > 0) {
            match state.places.get(usize::from(chunk.place)) {
                Some(Location::File(file)) => in_files.push((file.as_str(), chunk.offset, chunk.end())),
                _ => inline.push((chunk.place, chunk.offset, chunk.end())),
            }
        }
        if overlap(&mut inline).is_some() {
            return Some(format!("chunks of `{}` lie over each other", state.name));
        }
    }
    let mut names = metadata.states().flat_map(files);
    if let Some(file) = names.find(|file| !is_of_run(file)) {
        return Some(format!("`{file}` is no file beside it, nor of a checkpoint of its run"));
    }
    overlap(&mut in_files).map(|file| format!("chunks lie over each other in `{file}`"))
}

fn files(state: &StateMetadata) -> impl Iterator<Item = &str> {
    state.places.iter().filter_map(|place| match place {
        Location::File(file) => Some(file.as_str()),
        Location::Inline(_) => None,
    })
}

/// Whether a file lies beside the metadata, or in the folder of another checkpoint beside that one.
fn is_of_run(file: &str) -> bool {
    let is_name = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['/', '\\']);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match file.strip_prefix("../chk-").and_then(|rest| rest.split_once('/')) {
        Some((checkpoint, name)) => is_number(checkpoint) && is_name(name),
        None => is_name(file),
    }
}

/// A place in which two ranges overlap.
fn overlap<P: Ord + Copy>(ranges: &mut [(P, u64, u64)]) -> Option<P> {
    ranges.sort_unstable();
    ranges.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].2 > pair[1].1).map(|pair| pair[0].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_run_and_no_others() {
        for file in ["subtask-0", "../chk-12/subtask-0", "a.sst"] {
            assert!(is_of_run(file), "{file}");
        }
        for file in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "../other/f",
            "../chk-/f",
            "../chk-1/../f",
            "../chk-1/..",
            "a/b",
            "../f",
        ] {
            assert!(!is_of_run(file), "{file}");
        }
    }

    #[test]
    fn ranges_may_touch_and_not_overlap() {
        assert_eq!(overlap(&mut [("a", 4, 9), ("a", 0, 4), ("b", 3, 5)]), None);
        assert_eq!(overlap(&mut [("a", 0, 5), ("b", 0, 4), ("b", 3, 5)]), Some("b"));
    }
}

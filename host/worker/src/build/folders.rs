//! Folders of sinks: each belongs to one sink alone, since a run takes away what an earlier one left there.

use std::path::{Path, PathBuf};

use millstream_graph::{NodeIndex, Plan};

use super::{BuildError, Part};

/// Refuses a job in which two sinks have one folder, or a source reads where a sink writes.
pub(super) fn check(plan: &Plan, parts: &[Part]) -> Result<(), BuildError> {
    let name = |node: usize| plan.logical.node(NodeIndex(node)).name.clone();
    let sinks = parts.iter().enumerate().filter_map(|(i, part)| match part {
        Part::Sink(sink) => Some((i, real(&sink.folder()?))),
        _ => None,
    });
    let sinks: Vec<(usize, PathBuf)> = sinks.collect();
    for (i, (first, folder)) in sinks.iter().enumerate() {
        if let Some((second, _)) = sinks[i + 1..].iter().find(|(_, other)| other == folder) {
            return Err(BuildError::SharedFolder {
                first: name(*first),
                second: name(*second),
                folder: folder.clone(),
            });
        }
    }
    for (source, part) in parts.iter().enumerate() {
        let Part::Source(reader, _) = part else { continue };
        let Some(read) = reader.reads().map(|path| real(&path)) else { continue };
        if let Some((sink, folder)) = sinks.iter().find(|(_, folder)| read.starts_with(folder)) {
            return Err(BuildError::ReadsOwnOutput {
                source_node: name(source),
                sink: name(*sink),
                folder: folder.clone(),
            });
        }
    }
    Ok(())
}

/// The path without links and dots, as far as it exists; the rest as it is.
fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = if known.as_os_str().is_empty() { Path::new(".") } else { known }.canonicalize() {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (known.parent(), known.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                known = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::real;

    #[test]
    fn one_folder_has_one_name_whether_it_exists_or_not() {
        let here = std::env::current_dir().expect("tests run somewhere");
        assert_eq!(real("new".as_ref()), here.canonicalize().expect("it exists").join("new"));
        assert_eq!(real("./new/".as_ref()), real("new".as_ref()));
        assert_eq!(real("src/../new/deeper".as_ref()), real("new/deeper".as_ref()));
    }
}

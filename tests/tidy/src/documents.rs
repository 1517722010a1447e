//! What documents name has to be there.

use std::path::Path;

use crate::repository::{Repository, normalized, report};

/// Endings by which a name is known to be a file's.
const ENDINGS: [&str; 12] =
    [".rs", ".md", ".toml", ".json", ".jsonl", ".wit", ".sh", ".py", ".java", ".c", ".js", ".lock"];

#[test]
fn paths_in_documents_exist() {
    let repository = Repository::open();
    let mut problems = Vec::new();
    for (document, text) in repository.texts(".md") {
        for (line, path) in paths(&text, &|folder| repository.has(folder)) {
            if !exists(&repository, document, path) {
                problems.push(format!("{document}:{line}: `{path}` does not exist"));
            }
        }
    }
    report("paths in documents", &problems);
}

/// What looks like a path of the repository, with its line: anything in a folder of the top level, and between
/// backticks whatever has the ending of a file.
fn paths<'t>(text: &'t str, is_folder: &dyn Fn(&str) -> bool) -> Vec<(usize, &'t str)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let in_backticks = line.split('`').skip(1).step_by(2).filter(|word| is_file_name(word));
        let words = line.split(|c: char| c.is_whitespace() || SEPARATORS.contains(c));
        let words = words
            .map(|word| word.trim_end_matches(['.', ':']))
            .filter(|word| word.split_once('/').is_some_and(|(top, _)| is_folder(top)) && !is_pattern(word));
        found.extend(in_backticks.chain(words).map(|path| (number + 1, path)));
    }
    found
}

fn is_file_name(word: &str) -> bool {
    ENDINGS.iter().any(|ending| word.len() > ending.len() && word.ends_with(ending))
        && !word.contains(char::is_whitespace)
        && !is_pattern(word)
        && !OUTSIDE.iter().any(|start| word.starts_with(start))
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '$', '{', '<', '#', '=', '@'])
}

/// From the root or from the document's own folder; a name alone may be anywhere.
fn exists(repository: &Repository, document: &str, path: &str) -> bool {
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let beside = normalized(&folder.join(path));
    let anywhere =
        || !path.contains('/') && repository.files().any(|file| file.rsplit('/').next() == Some(path));
    repository.has(path) || repository.has(&beside) || anywhere()
}

const SEPARATORS: &str = "`()[]|,;\"'!?";

/// Where files are that are no part of the repository.
const OUTSIDE: [&str; 4] = ["/", "~", "http", "target/"];

#[test]
fn a_path_is_told_from_other_words() {
    let text = "See `host/types/src/key.rs`, `job.toml` and wit/.\n\n    millstream run examples/delays/job.toml target/out\n\
                read/write and/or `a b.rs`, `*.rs`, `x/y`, [tests](tests/guests/README.md).";
    let tops = ["host", "wit", "examples", "tests"];
    let found: Vec<_> = paths(text, &|folder| tops.contains(&folder))
        .into_iter()
        .map(|(line, path)| format!("{line} {path}"))
        .collect();
    assert_eq!(
        found,
        [
            "1 host/types/src/key.rs",
            "1 job.toml",
            "1 host/types/src/key.rs",
            "1 wit/",
            "3 examples/delays/job.toml",
            "4 tests/guests/README.md"
        ]
    );
}

//! Finding the compilers of other languages.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::ProjectError;
use crate::run;

/// A program by a variable of the environment, in one of these folders, or on the search path.
pub(super) fn find(variable: &str, name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    if let Some(named) = env::var_os(variable).filter(|value| !value.is_empty()) {
        return Some(PathBuf::from(named));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = folders.iter().cloned().chain(env::split_paths(&path));
    folders
        .flat_map(|folder| NAMES.map(|ending| folder.join(format!("{name}{ending}"))))
        .find(|p| p.is_file())
}

/// The version that a program says it has: the first word of its first line that begins with a digit.
pub(super) fn version(program: &Path, arguments: &[&str]) -> Result<String, ProjectError> {
    let text = run::capture_text(Command::new(program).args(arguments))?;
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    let found = words.map(|word| word.trim_start_matches(['v', 'g', 'o']));
    Ok(found
        .into_iter()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or(&text)
        .to_owned())
}

const NAMES: [&str; 2] = if cfg!(windows) { [".exe", ".cmd"] } else { ["", ""] };

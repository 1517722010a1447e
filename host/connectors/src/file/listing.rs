//! Which files a path names, in natural order: `part-2` before `part-10`.

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
};

use glob::{MatchOptions, Pattern};
use millstream_operator::ConnectorError;

use crate::options::OptionsError;

/// What a job file's path stands for.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    path: PathBuf,
    /// The folder in which a pattern begins.
    start: PathBuf,
    /// What a pattern has between slashes.
    parts: Vec<String>,
}

impl Listing {
    /// A file, folder or pattern below `base`.
    pub(crate) fn new(base: &Path, path: &str) -> Result<Self, OptionsError> {
        if path.is_empty() {
            return Err(OptionsError::at(
                "path",
                "`path` is empty: expected a file, a folder or a pattern such as `logs/*.csv`",
            ));
        }
        Pattern::new(path)
            .map_err(|e| OptionsError::at("path", format!("`{path}` is no pattern for files: {e}")))?;
        let start = if Path::new(path).is_absolute() { Path::new("/") } else { base };
        let parts = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Ok(Self { path: base.join(path), start: start.to_owned(), parts })
    }

    /// The path with the job file's folder before it, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path up to the first part that is a pattern; all of it if it exists as it stands.
    pub(crate) fn fixed_part(&self) -> PathBuf {
        let plain =
            |part: &std::path::Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        if self.path.exists() {
            self.path.clone()
        } else {
            self.path.components().take_while(plain).collect()
        }
    }

    /// The files that are there now.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>, ConnectorError> {
        let mut files = if self.path.is_dir() {
            self.folder()?
        } else if self.path.is_file() {
            vec![self.path.clone()]
        } else if self.path.exists() {
            let path = self.path.display();
            return Err(ConnectorError::user(format!(
                "{path}: found {}, expected a file, a folder or a pattern: only files can be read in pieces and again",
                kind_of(&self.path)
            )));
        } else {
            self.matches()?
        };
        if let Some(file) = files.iter().find(|file| file.to_str().is_none()) {
            let name = file.display();
            return Err(ConnectorError::user(format!(
                "{name}: the name of the file is not UTF-8: rename it"
            )));
        }
        files.sort_by(|a, b| natural_order(&a.to_string_lossy(), &b.to_string_lossy()));
        Ok(files)
    }

    /// Says that there is nothing to read.
    pub(crate) fn nothing_found(&self) -> ConnectorError {
        let path = self.path.display();
        ConnectorError::user(if self.path.is_dir() {
            format!("{path}: the folder has no files to read (those that begin with `.` or `_` do not count)")
        } else {
            format!("{path}: there is no such file, and no file matches it as a pattern")
        })
    }

    fn folder(&self) -> Result<Vec<PathBuf>, ConnectorError> {
        let files = list(&self.path)?.into_iter().map(|entry| entry.path());
        Ok(files.filter(|path| is_data(path)).collect())
    }

    fn matches(&self) -> Result<Vec<PathBuf>, ConnectorError> {
        let mut files = Vec::new();
        find(&self.start, &self.parts, &mut files)?;
        files.retain(|path| is_data(path));
        Ok(files)
    }
}

/// Finds what the parts of a pattern match from a folder on. A name that is not text is matched as far as it is.
fn find(folder: &Path, parts: &[String], files: &mut Vec<PathBuf>) -> Result<(), ConnectorError> {
    let Some((part, rest)) = parts.split_first() else {
        files.push(folder.to_owned());
        return Ok(());
    };
    if !part.contains(['*', '?', '[']) {
        return find(&folder.join(part), rest, files);
    }
    if !folder.is_dir() && !folder.as_os_str().is_empty() {
        return Ok(());
    }
    let pattern = Pattern::new(part).map_err(|e| {
        ConnectorError::user(format!("{}: is no pattern for files: {e}", folder.join(part).display()))
    })?;
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    if part == "**" {
        find(folder, rest, files)?;
    }
    for entry in list(folder)? {
        let name = entry.file_name();
        if !pattern.matches_with(&name.to_string_lossy(), options) {
            continue;
        }
        let path = folder.join(name);
        match part.as_str() {
            // Links are not followed down, as they may lead back up.
            "**" if entry.file_type().is_ok_and(|kind| kind.is_dir()) => find(&path, parts, files)?,
            "**" => {}
            _ => find(&path, rest, files)?,
        }
    }
    Ok(())
}

/// What is in a folder; the current one if it has no name.
fn list(folder: &Path) -> Result<Vec<std::fs::DirEntry>, ConnectorError> {
    let named = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(named).and_then(Iterator::collect);
    entries
        .map_err(|e| ConnectorError::external(format!("{}: cannot list the folder: {e}", named.display()), e))
}

/// What something is that is neither file nor folder.
fn kind_of(path: &Path) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match path.metadata().map(|metadata| metadata.file_type()) {
        Ok(kind) if kind.is_fifo() => "a pipe",
        Ok(kind) if kind.is_socket() => "a socket",
        Ok(kind) if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something else",
    }
}

/// Files whose names begin with a dot or an underscore are unfinished or about other files.
fn is_data(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with(['.', '_']));
    !hidden && path.is_file()
}

/// Text in order, runs of digits by their number.
pub(crate) fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a_rest, mut b_rest) = (a.as_bytes(), b.as_bytes());
    loop {
        let (Some(x), Some(y)) = (a_rest.first(), b_rest.first()) else {
            return a_rest.len().cmp(&b_rest.len()).then_with(|| a.cmp(b));
        };
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let (x, y) = (take_number(&mut a_rest), take_number(&mut b_rest));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            (a_rest, b_rest) = (&a_rest[1..], &b_rest[1..]);
            x.cmp(y)
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// The digits at the start, without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    *text = rest;
    let zeros = number.iter().take_while(|b| **b == b'0').count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_of_size() {
        let mut names = ["part-10", "part-9", "part-09b", "part-9a", "other", "part-100", "part-010"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["other", "part-9", "part-9a", "part-09b", "part-010", "part-10", "part-100"]);
    }

    #[test]
    fn what_a_path_names() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a10.csv", "a2.csv", ".a3.csv", "_a4.csv", "b[1].csv", "c.txt"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        std::fs::create_dir(folder.path().join("d.csv")).expect("created");
        let names = |path: &str| {
            let files = Listing::new(folder.path(), path).expect("a path").files().expect("listed");
            files
                .iter()
                .map(|f| f.file_name().expect("a name").to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("*.csv"), ["a2.csv", "a10.csv", "b[1].csv"]);
        assert_eq!(names("b[1].csv"), ["b[1].csv"]);
        assert_eq!(names("."), ["a2.csv", "a10.csv", "b[1].csv", "c.txt"]);
        assert_eq!(names("nothing*"), Vec::<String>::new());
        std::fs::create_dir_all(folder.path().join("d/e/.f")).expect("created");
        for name in ["d/x.csv", "d/e/y.csv", "d/e/.f/z.csv"] {
            std::fs::write(folder.path().join(name), "").expect("written");
        }
        assert_eq!(names("**/*.csv"), ["a2.csv", "a10.csv", "b[1].csv", "y.csv", "x.csv"]);
        assert_eq!(names("d/?.csv"), ["x.csv"]);
        assert_eq!(names("./[a-d]/*/*.csv"), ["y.csv"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn names_have_to_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().expect("a folder");
        let name = std::ffi::OsStr::from_bytes(b"a\xff.csv");
        std::fs::write(folder.path().join(name), "").expect("written");
        let error = Listing::new(folder.path(), "*.csv").expect("a path").files().expect_err("not text");
        assert!(error.to_string().contains("is not UTF-8"), "{error}");
    }

    #[test]
    fn patterns_are_checked() {
        let error = Listing::new(Path::new("jobs"), "a[.csv").expect_err("not a pattern");
        assert_eq!(error.key.as_deref(), Some("path"));
    }
}

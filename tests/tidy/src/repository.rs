//! The repository as git sees it, and the tools that look into it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The files of a clone: those under version control, and those that the next commit could add.
pub(crate) struct Repository {
    root: PathBuf,
    files: BTreeSet<String>,
    committed: BTreeSet<String>,
}

impl Repository {
    /// The repository that this program was built in.
    pub(crate) fn open() -> Self {
        let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("the tests are run by cargo"))
            .ancestors()
            .nth(2)
            .expect("it is in tests/tidy")
            .to_owned();
        let committed = list(&root, &["--cached"]);
        let files = list(&root, &["--cached", "--others", "--exclude-standard"]);
        Self { root, files, committed }
    }

    /// Its folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The paths of all files, relative to the root.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Whether there is a file or folder of this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        let first_inside = self.files.range(folder.clone()..).next();
        self.files.contains(path) || first_inside.is_some_and(|file| file.starts_with(&folder))
    }

    /// Whether a file is under version control.
    pub(crate) fn is_committed(&self, path: &str) -> bool {
        self.committed.contains(path)
    }

    /// A file's text; none for a file that is not text.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// The files of a name ending, with their texts.
    pub(crate) fn texts(&self, ending: &str) -> impl Iterator<Item = (&str, String)> {
        self.files()
            .filter(move |path| path.ends_with(ending))
            .filter_map(|path| Some((path, self.text(path)?)))
    }

    /// What a cargo command says on its standard output.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> String {
        output(Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into())), &self.root, arguments)
    }
}

/// Fails with all problems found, if there are any.
pub(crate) fn report(rule: &str, problems: &[String]) {
    assert!(problems.is_empty(), "{rule}:\n  {}\n", problems.join("\n  "));
}

/// A path without `.` and `..`, and with slashes.
pub(crate) fn normalized(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part.as_os_str().to_string_lossy() {
            up if up == ".." && parts.last().is_some_and(|last| last != "..") => drop(parts.pop()),
            here if here == "." => {}
            part => parts.push(part.into_owned()),
        }
    }
    parts.join("/")
}

/// Files as git lists them, without those that have been deleted.
fn list(root: &Path, which: &[&str]) -> BTreeSet<String> {
    // A clone may belong to somebody else than the one who tests it.
    let arguments = [&["-c", "safe.directory=*", "ls-files", "-z"], which].concat();
    let listed = output(Command::new("git"), root, &arguments);
    listed.split('\0').filter(|path| root.join(path).is_file()).map(str::to_owned).collect()
}

fn output(mut command: Command, folder: &Path, arguments: &[&str]) -> String {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.current_dir(folder).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("the tidy test needs {name}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{name} {}` failed; is this a clone?\n{errors}", arguments.join(" "));
    String::from_utf8(output.stdout).expect("paths and JSON are UTF-8")
}

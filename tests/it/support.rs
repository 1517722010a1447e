//! What the tests share: running the command, and looking at what it wrote.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// What the command did.
#[derive(Debug)]
pub(crate) struct Output {
    /// Its exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// What it wrote to stdout.
    pub(crate) stdout: String,
    /// What it wrote to stderr.
    pub(crate) stderr: String,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // Asked at run time: two clones may share the target folder, and so this program.
    let package = env::var_os("CARGO_MANIFEST_DIR").expect("the tests are run by cargo");
    Path::new(&package).parent().expect("the command has a folder of its own").to_owned()
}

/// The folder of the guests that `cargo xtask guests` builds.
pub(crate) fn guests() -> PathBuf {
    let beside = || Path::new(env!("CARGO_BIN_EXE_millstream")).ancestors().nth(2).map(|t| t.join("guests"));
    let folder = env::var_os("MILLSTREAM_GUESTS")
        .map(PathBuf::from)
        .or_else(beside)
        .expect("the command has a folder");
    assert!(folder.is_dir(), "there are no guests in {}: run `cargo xtask guests` first", folder.display());
    folder
}

/// The command, ready for more arguments, that writes its results below `out`.
pub(crate) fn command(out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command.env("MILLSTREAM_GUESTS", guests()).env("MILLSTREAM_OUT", out).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Output {
    let output = command.output().expect("the command was built with the tests");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Output {
    /// Expects that all went well.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "stderr:\n{}", self.stderr);
        self
    }

    /// The last line of stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line)
            .unwrap_or_else(|e| panic!("no JSON ({e}): {line}\nstderr:\n{}", self.stderr))
    }
}

/// The rows of all JSON lines files in a folder, in no particular order.
pub(crate) fn rows(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = files.map(|f| f.expect("a folder that stays").path());
    let visible = |p: &PathBuf| p.file_name().is_some_and(|n| !n.to_string_lossy().starts_with('.'));
    paths.filter(visible).flat_map(|path| lines(&path)).collect()
}

/// The rows of a JSON lines file.
pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parse =
        |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}: {line}", path.display()));
    text.lines().map(parse).collect()
}

/// Expects that two sets of rows are the same in any order; floats may differ by a rounding error.
#[track_caller]
pub(crate) fn assert_same_rows(mut found: Vec<Value>, mut expected: Vec<Value>) {
    found.sort_by_cached_key(order);
    expected.sort_by_cached_key(order);
    let pairs = found.iter().zip(&expected);
    for (i, (found, expected)) in pairs.enumerate() {
        assert!(same(found, expected), "row {i} in order:\n   found {found}\nexpected {expected}");
    }
    assert_eq!(found.len(), expected.len(), "number of rows; first one too many: {:?}", {
        let longer = if found.len() > expected.len() { &found } else { &expected };
        longer.get(found.len().min(expected.len()))
    });
}

/// An order in which a rounding error moves no row: by texts and whole numbers.
fn order(row: &Value) -> String {
    let columns = row.as_object().into_iter().flatten();
    let mut exact: Vec<_> = columns.filter(|(_, v)| !v.is_f64()).map(|(k, v)| format!("{k}={v}")).collect();
    exact.sort();
    exact.join(",")
}

fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() || b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
        }
        _ => found == expected,
    }
}

//! The way of a function of one's own in another language than Rust: `new`, `build`, `test` and `run`, as a user takes it,
//! with the compilers that the guests were built with.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::{Output, finish, guests, root};

/// A folder of `cargo xtask guests` with the tools of a language, if it is there: where they are missing that says so.
fn tools(name: &str) -> Option<PathBuf> {
    let folder = guests().canonicalize().expect("it is there").parent()?.join("guest-tools").join(name);
    if !folder.is_dir() {
        assert!(env::var_os("CI").is_none(), "there are no tools in {}", folder.display());
    }
    Some(folder).filter(|folder| folder.is_dir())
}

fn millstream(folder: &Path, path: &[PathBuf]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    let before = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(path.iter().cloned().chain(env::split_paths(&before))).expect("plain folders");
    command.current_dir(folder).env("PATH", path).stdin(Stdio::null());
    command.env_remove("MILLSTREAM_SDK").env_remove("CARGO_TARGET_DIR").env_remove("VIRTUAL_ENV");
    command
}

/// Makes a project of each kind and runs its own tests: `native` does, once `ready` has made its dependencies be there.
/// With the process function does everything that its README says; the others differ only in their source.
fn check(language: &str, path: &[PathBuf], native: impl Fn(&Path) -> Output, ready: impl Fn(&Path)) {
    for kind in ["map", "aggregate", "window", "process"] {
        let folder = tempfile::tempdir().expect("a folder");
        let new = ["new", "hot-sensors", "--lang", language, "--kind", kind];
        finish(millstream(folder.path(), path).args(new)).success();
        let project = folder.path().join("hot-sensors");
        ready(&project);
        native(&project).success();
        if kind == "process" {
            build_and_run(language, &project, path);
        }
    }
}

fn build_and_run(language: &str, project: &Path, path: &[PathBuf]) {
    let run = |arguments: &[&str]| finish(millstream(project, path).args(arguments)).success();
    let module = run(&["--json", "build"]).json();
    assert_eq!(module["module"]["name"], "hot_sensors", "{language}");
    let imports = module["imports"].to_string();
    assert!(!imports.contains("wasi:") || language == "go", "{language}: {imports}");
    let wasm = fs::metadata(project.join("target/millstream/hot_sensors.wasm")).expect("it was written");
    assert_eq!(wasm.len(), module["size"]);
    assert!(run(&["test"]).stdout.starts_with("ok "), "{language}");
    let printed = run(&["run", "job.toml"]).stdout;
    let row = r#"{"sensor":"cellar","since":"2024-06-01T12:13:00Z"}"#;
    assert!(printed.lines().any(|line| line == row), "{language}: {row} is not in\n{printed}");
}

#[test]
fn a_python_project_of_each_kind() {
    let Some(tools) = tools("componentize-py-0.25.1") else { return };
    let native = |project: &Path| {
        let mut tests = Command::new("python3");
        tests.current_dir(project).args(["-m", "unittest", "discover", "tests"]);
        finish(tests.env("PYTHONPATH", "src:.millstream/guest-sdk/python/src"))
    };
    check("python", &[tools.join("bin")], native, |_| ());
}

#[test]
fn a_javascript_project_of_each_kind() {
    project_with_npm("javascript");
}

#[test]
fn a_typescript_project_of_each_kind() {
    project_with_npm("typescript");
}

#[test]
fn the_tests_of_a_typescript_project_check_types() {
    let packages = root().join("tests/guests/javascript/node_modules");
    if !packages.is_dir() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    finish(millstream(folder.path(), &[]).args(["new", "a", "--lang", "typescript"])).success();
    let project = folder.path().join("a");
    std::os::unix::fs::symlink(&packages, project.join("node_modules")).expect("is not there yet");
    let source = project.join("src/index.ts");
    let text = fs::read_to_string(&source).expect("is there");
    fs::write(&source, text.replace("t.float64", "t.utf8")).expect("is there");
    let output = finish(Command::new("npm").current_dir(&project).arg("test"));
    assert!(output.code != Some(0) && output.stdout.contains("error TS"), "{}", output.stdout);
}

#[test]
fn a_c_project_of_each_kind() {
    if !guests().join("conformance_c.wasm").is_file() {
        return;
    }
    // There are no native tests, so that each kind is built and tested.
    for kind in ["map", "aggregate", "window", "process"] {
        let folder = tempfile::tempdir().expect("a folder");
        let new = ["new", "hot-sensors", "--lang", "c", "--kind", kind];
        finish(millstream(folder.path(), &[]).args(new)).success();
        let project = folder.path().join("hot-sensors");
        let tested = finish(millstream(&project, &[]).arg("test")).success();
        assert!(tested.stdout.starts_with("ok "), "{kind}: {}", tested.stdout);
        if kind == "process" {
            build_and_run("c", &project, &[]);
        }
    }
}

/// With the packages of the guest, as all want the same.
fn project_with_npm(language: &str) {
    let packages = root().join("tests/guests/javascript/node_modules");
    if !packages.is_dir() {
        return;
    }
    let ready = |project: &Path| {
        std::os::unix::fs::symlink(&packages, project.join("node_modules")).expect("is not there yet");
    };
    let native = |project: &Path| finish(Command::new("npm").current_dir(project).arg("test"));
    check(language, &[], native, ready);
}

#[test]
fn a_python_project_that_is_declared_wrongly_is_told_where() {
    let Some(tools) = tools("componentize-py-0.25.1") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = [tools.join("bin")];
    finish(millstream(folder.path(), &path).args(["new", "a", "--lang", "python"])).success();
    let source = "import millstream\n\n\n@millstream.map\ndef f(row: list) -> bool:\n    return True\n";
    fs::write(folder.path().join("a/src/a.py"), source).expect("the folder is there");
    let output = finish(millstream(folder.path(), &path).args(["build", "a"]));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let words = "function `f` (a, line 4): `list` is no row: expected a dataclass or one of bool, Int32, int";
    assert!(output.stderr.contains(words), "{}", output.stderr);
    let log =
        fs::read_to_string(folder.path().join("a/target/millstream/build.log")).expect("the log is kept");
    assert!(log.contains(words), "{log}");
}

#[test]
fn a_missing_compiler_is_told_with_the_line_that_installs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    finish(millstream(folder.path(), &[]).args(["new", "a", "--lang", "python"])).success();
    let output = finish(millstream(folder.path(), &[]).env("PATH", "/nowhere").args(["build", "a"]));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("there is no componentize-py"), "{}", output.stderr);
    assert!(output.stderr.contains("pip install componentize-py==0.25.1"), "{}", output.stderr);
}

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

/// A map function in C that prints.
const PRINTING: &str = r#"
#include <millstream.h>
#include <stdio.h>

typedef struct {
    ms_text sensor;
} reading;
MS_ROW(READING, reading, MS_FIELD(reading, sensor, MS_UTF8));

static void hot(ms_call *call, const void *row) {
    (void)call;
    ms_text sensor = ((const reading *)row)->sensor;
    printf("sensor %.*s\n", (int)sensor.len, sensor.ptr);
    puts("whole");
    printf("un");
    fprintf(stderr, "no text: \xff\n");
    printf("finished");
    for (int at = 0; at < 5000; at++) putchar('x');
    puts("");
}

static const ms_function FUNCTIONS[] = {
    {.name = "hot", .kind = MS_MAP, .input = &READING, .map = hot},
};
MS_MODULE("a", "0.1.0", FUNCTIONS);
"#;

#[test]
fn what_a_c_function_prints_is_in_the_log() {
    let Some(project) = c_project(|_| PRINTING.to_owned()) else { return };
    let job = project.path().join("a/job.toml");
    let text = fs::read_to_string(&job).expect("is there");
    fs::write(&job, text.replace("parameters = { limit = 30.0 }", "")).expect("is there");
    let folder = project.path().join("a");
    finish(millstream(&folder, &[]).arg("build")).success();
    let run =
        finish(millstream(&folder, &[]).env("MILLSTREAM_LOG", "info").args(["run", "job.toml"])).success();
    for line in ["INFO millstream::function: sensor cellar", "INFO millstream::function: whole"] {
        assert!(run.stderr.contains(line), "{line} is not in\n{:.2000}", run.stderr);
    }
    assert!(run.stderr.contains("WARN millstream::function: no text: ?"), "{}", run.stderr);
    let printed = run.stderr.lines().filter(|line| line.contains("xxxx"));
    let count: usize = printed.map(|line| line.matches('x').count()).sum();
    assert_eq!((count, run.stderr.contains("INFO millstream::function: unfinishedxxx")), (10 * 5000, true));
}

#[test]
fn what_is_declared_wrongly_in_c_is_an_error_of_the_build() {
    for (right, wrong, words) in [
        ("double celsius", "float celsius", "field `celsius` is no double, as MS_FLOAT64 is"),
        (".map = hot", ".open = NULL", "function `hot` has no `.map` in the table of functions"),
        ("MS_FIELD(hot_row", "MS_NULLABLE(hot_row", "fahrenheit_is_null"),
    ] {
        let Some(project) = c_project(|text| text.replacen(right, wrong, 1)) else { return };
        let output = finish(millstream(project.path(), &[]).args(["build", "a"]));
        assert_eq!(output.code, Some(3), "{wrong}: {}", output.stderr);
        assert!(output.stderr.contains(words), "{wrong}: {}", output.stderr);
    }
}

/// A new project in C called `a` whose source has been changed; none where there is no compiler.
fn c_project(change: impl Fn(String) -> String) -> Option<tempfile::TempDir> {
    if !guests().join("conformance_c.wasm").is_file() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    finish(millstream(folder.path(), &[]).args(["new", "a", "--lang", "c"])).success();
    let source = folder.path().join("a/src/a.c");
    let text = fs::read_to_string(&source).expect("is there");
    fs::write(&source, change(text)).expect("is there");
    Some(folder)
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

/// Functions that use a package of the project's environment, a file, and a module that was not there at the build.
const REACHING: &str = r#"
import os
import socket
import time
import uuid
from dataclasses import dataclass
from random import random

import greeting
import millstream


@dataclass
class Reading:
    sensor: str


@dataclass
class Said:
    said: str


@millstream.map
def greets(reading: Reading) -> Said:
    return Said(greeting.of(reading.sensor))


@millstream.map
def loads(reading: Reading) -> Said:
    import pkgutil

    return Said(str(pkgutil.get_data("greeting", "words.txt")))


@millstream.map
def imports(reading: Reading) -> Said:
    import xmlrpc.client

    return Said(str(xmlrpc.client))


@millstream.map
def looks(reading: Reading) -> Said:
    return Said(f"{os.path.exists('words.txt')} {os.listdir('/')}")


@millstream.map
def connects(reading: Reading) -> Said:
    return Said(str(socket.socket()))


@millstream.map
def sleeps(reading: Reading) -> Said:
    return Said(str(time.sleep(1)))


@millstream.map
def draws(reading: Reading) -> Said:
    drawn = [uuid.uuid4(), uuid.uuid4(), os.urandom(4), random(), random()]
    return Said(f"{len(set(drawn))} {uuid.uuid4()} {random()}")
"#;

/// What is drawn from the seed that a test's first call has.
const DRAWN: &str = "5 ";

#[test]
fn packages_of_a_python_project_are_there_and_files_and_late_imports_are_not() {
    let Some(tools) = tools("componentize-py-0.25.1") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = [tools.join("bin")];
    finish(millstream(folder.path(), &path).args(["new", "a", "--lang", "python"])).success();
    let project = folder.path().join("a");
    let package = project.join(".venv/lib/python3.11/site-packages/greeting");
    fs::create_dir_all(&package).expect("a new folder");
    let write = |path: PathBuf, text: &str| fs::write(path, text).expect("the folder is there");
    write(package.join("__init__.py"), "import pkgutil\n\n\ndef of(name):\n    return f\"hello {name}\"\n");
    write(package.join("words.txt"), "hello");
    write(project.join("src/a.py"), REACHING);
    finish(millstream(&project, &path).arg("build")).success();
    for (function, words) in [
        ("greets", "ok "),
        ("loads", "PermissionError: functions have no files: read from a source"),
        ("looks", "PermissionError: functions have no files: read from a source"),
        ("connects", "PermissionError: functions have no network: what they need comes as rows"),
        ("sleeps", "PermissionError: nothing waits within a call"),
        ("draws", DRAWN),
        ("imports", "ModuleNotFoundError: `xmlrpc` was not imported when the component was built"),
    ] {
        let fixture = format!(
            "{{\"module\":\"../target/millstream/a.wasm\",\"function\":\"{function}\"}}\n\n{{\"row\":{{\"sensor\":\"attic\"}}}}\n\
             {{\"expect\":{{\"sensor\":\"attic\",\"said\":\"hello attic\"}}}}\n"
        );
        write(project.join("tests/one.jsonl"), &fixture);
        let output = finish(millstream(&project, &path).args(["test", "tests/one.jsonl"]));
        assert!(output.stdout.contains(words), "{function}: {}{}", output.stdout, output.stderr);
    }
}

#[test]
fn a_python_function_that_does_not_say_what_it_returns_is_refused_by_the_build() {
    let Some(tools) = tools("componentize-py-0.25.1") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = [tools.join("bin")];
    finish(millstream(folder.path(), &path).args(["new", "a", "--lang", "python"])).success();
    let source = folder.path().join("a/src/a.py");
    let text = fs::read_to_string(&source).expect("is there");
    fs::write(&source, text.replace(" -> Hot | None:", ":")).expect("the folder is there");
    let output = finish(millstream(folder.path(), &path).args(["build", "a"]));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let words = "`hot` has no annotation of what it returns";
    assert!(output.stderr.contains(words), "{}", output.stderr);
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

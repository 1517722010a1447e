//! The way of a function of one's own: `new`, `build`, `test` and `run`, as a user takes it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::{Output, finish, root};

/// A project in a folder of its own. All share cargo's folder, so that what they have in common is compiled once.
struct Project {
    folder: tempfile::TempDir,
    name: &'static str,
}

impl Project {
    /// Makes one with the SDK of this repository.
    fn new(name: &'static str, kind: &str) -> Self {
        let sdk = root().join("guest-sdk/rust");
        Self::with(name, &["--kind", kind, "--sdk", &sdk.display().to_string()])
    }

    fn with(name: &'static str, arguments: &[&str]) -> Self {
        let project = Self { folder: tempfile::tempdir().expect("a folder"), name };
        let mut command = millstream(project.folder.path());
        finish(command.args(["new", name]).args(arguments)).success();
        project
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    /// Runs the command in the project's folder.
    fn run(&self, arguments: &[&str]) -> Output {
        finish(millstream(&self.path()).args(arguments))
    }

    fn cargo_test(&self) -> Output {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(self.path()).arg("test").env("CARGO_TARGET_DIR", shared_target());
        finish(command.stdin(Stdio::null()))
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path().join(path), text).expect("the folder is there");
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).expect("the file is there")
    }
}

fn millstream(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command.current_dir(folder).env("CARGO_TARGET_DIR", shared_target()).env_remove("MILLSTREAM_SDK");
    command.stdin(Stdio::null());
    command
}

fn shared_target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-functions")
}

/// Everything that a new project can do works; `rows` is what its job prints.
fn check(project: &Project, function: &str, rows: &[&str]) {
    let native = project.cargo_test().success();
    assert!(native.stdout.contains("1 passed"), "{}", native.stdout);

    let built = project.run(&["--json", "build"]).success();
    let module = built.json();
    assert_eq!(module["functions"][0]["name"], function);
    assert_eq!(
        module["imports"].as_array().map(|i| i.iter().any(|i| i.as_str() == Some("wasi"))),
        Some(false)
    );
    let wasm = format!("target/millstream/{}.wasm", project.name.replace('-', "_"));
    assert_eq!(fs::metadata(project.path().join(&wasm)).expect("it was written").len(), module["size"]);

    let tested = project.run(&["test"]).success();
    assert!(tested.stdout.starts_with(&format!("ok       tests/{function}.jsonl")), "{}", tested.stdout);

    let ran = project.run(&["run", "job.toml"]).success();
    assert_eq!(ran.stdout.lines().take(rows.len()).collect::<Vec<_>>(), rows, "{}", ran.stdout);
}

#[test]
fn a_map_function_with_the_sdk_out_of_the_command() {
    let project = Project::with("hot-sensors", &[]);
    assert!(project.read(".millstream/guest-sdk/rust/Cargo.toml").contains("millstream-sdk"));
    let rows = [
        r#"{"sensor":"attic","time":"2024-06-01T12:05:00Z","celsius":31.0,"fahrenheit":87.8}"#,
        r#"{"sensor":"attic","time":"2024-06-01T12:09:00Z","celsius":34.5,"fahrenheit":94.1}"#,
        r#"{"sensor":"attic","time":"2024-06-01T12:12:00Z","celsius":33.0,"fahrenheit":91.4}"#,
    ];
    check(&project, "hot", &rows);
}

#[test]
fn a_process_function() {
    let rows = [
        r#"{"sensor":"attic","since":"2024-06-01T12:17:00Z"}"#,
        r#"{"sensor":"cellar","since":"2024-06-01T12:13:00Z"}"#,
    ];
    let project = Project::new("own-process", "process");
    check(&project, "silence", &[]);
    let ran = project.run(&["run", "job.toml"]).success();
    for row in rows {
        assert!(ran.stdout.lines().any(|line| line == row), "{row} is not in\n{}", ran.stdout);
    }
}

#[test]
fn an_aggregate_function() {
    let rows = [
        r#"{"sensor":"attic","from":"2024-06-01T12:00:00Z","readings":3,"celsius":31.666666666666668}"#,
        r#"{"sensor":"cellar","from":"2024-06-01T12:00:00Z","readings":2,"celsius":14.25}"#,
    ];
    check(&Project::new("own-aggregate", "aggregate"), "average", &rows);
}

#[test]
fn a_window_function() {
    let rows = [
        r#"{"sensor":"cellar","since":"2024-06-01T12:01:00Z","rise":0.5}"#,
        r#"{"sensor":"attic","since":"2024-06-01T12:05:00Z","rise":3.5}"#,
    ];
    check(&Project::new("own-window", "window"), "steepest", &rows);
}

#[test]
fn an_error_of_the_compiler_is_shown_as_it_is() {
    let project = Project::new("own-error", "map");
    let good = project.read("src/lib.rs");
    project.write("src/lib.rs", &good.replace("celsius > limit.limit", "celsius > \"warm\""));
    for verb in ["build", "test"] {
        let output = project.run(&[verb]);
        assert_eq!(output.code, Some(3), "{}", output.stderr);
        assert!(output.stderr.contains("error[E0308]: mismatched types"), "{}", output.stderr);
        assert!(output.stderr.contains("--> src/lib.rs:"), "{}", output.stderr);
        assert!(output.stderr.contains("did not compile"), "{}", output.stderr);
        let log = "target/millstream/build.log";
        assert!(output.stderr.contains(log), "{}", output.stderr);
        assert!(project.read(log).contains("error[E0308]: mismatched types"), "{}", project.read(log));
        assert_eq!(output.stdout, "");
    }
}

#[test]
fn a_module_goes_where_it_is_wanted_and_is_made_of_what_is_locked() {
    let project = Project::new("own-output", "map");
    let unlocked = project.run(&["build", "--locked"]);
    assert_eq!(unlocked.code, Some(3), "there is no Cargo.lock yet:\n{}", unlocked.stderr);
    assert!(unlocked.stderr.contains("--locked"), "{}", unlocked.stderr);
    assert!(!project.path().join("Cargo.lock").exists(), "--locked made a lock file");

    let built = project.run(&["--json", "build", "-o", "modules/mine.wasm"]).success().json();
    assert_eq!(built["path"], "modules/mine.wasm");
    let size = fs::metadata(project.path().join("modules/mine.wasm")).expect("it was written").len();
    assert_eq!(built["size"], size);
    assert!(!project.path().join("target/millstream/own_output.wasm").exists(), "it is at both places");

    let lock = project.read("Cargo.lock");
    project.run(&["build", "--locked"]).success();
    assert_eq!(project.read("Cargo.lock"), lock);
}

#[test]
fn a_missing_tool_chain_is_told_with_what_to_do() {
    let project = Project::new("own-tools", "map");
    let mut command = millstream(&project.path());
    let output = finish(command.arg("build").env("CARGO", "no-such-cargo"));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(output.stderr.contains("cannot run cargo"), "{}", output.stderr);
    assert!(output.stderr.contains("https://rustup.rs"), "{}", output.stderr);
    assert!(output.stderr.contains("no-such-cargo"), "{}", output.stderr);
}

#[test]
fn a_difference_is_shown_and_can_be_taken_over() {
    let project = Project::new("own-difference", "map");
    let fixture = "tests/hot.jsonl";
    project.write(
        fixture,
        "{\"function\":\"hot\",\"parameters\":{\"limit\":0}}\n\n{\"row\":{\"celsius\":10}}\n\
         {\"expect\":{\"celsius\":10,\"fahrenheit\":51}}\n\n{\"row\":{\"celsius\":20}}\n",
    );
    let output = project.run(&["test", fixture]);
    assert_eq!(output.code, Some(1), "{}", output.stderr);
    let expected = "\
FAILED   tests/hot.jsonl  2 steps
--- tests/hot.jsonl (expected)
+++ tests/hot.jsonl (found)
@@ -1,6 +1,7 @@
 {\"function\":\"hot\",\"parameters\":{\"limit\":0}}
 
 {\"row\":{\"celsius\":10}}
-{\"expect\":{\"celsius\":10,\"fahrenheit\":51}}
+{\"expect\":{\"celsius\":10.0,\"fahrenheit\":50.0}}
 
 {\"row\":{\"celsius\":20}}
+{\"expect\":{\"celsius\":20.0,\"fahrenheit\":68.0}}
1 of 1 fixtures failed; `millstream test --update` takes over what was found
";
    assert_eq!(output.stdout, expected);

    let updated = project.run(&["--json", "test", "--update"]).success();
    assert_eq!(updated.json()["fixtures"][0]["updated"], true);
    project.run(&["test"]).success();
    assert!(project.read(fixture).ends_with("{\"expect\":{\"celsius\":20.0,\"fahrenheit\":68.0}}\n"));
}

const FUNCTIONS: &str = r#"
use millstream::{Collector, Function, Input, Output, ProcessContext, Reject, Timer, ValueState};

#[derive(Input)]
pub struct Number {
    pub n: i64,
}

#[derive(Output)]
pub struct Root {
    pub root: i64,
}

/// Refuses what has no root, and traps at 13.
#[millstream::map(carry = "replace")]
pub fn root(number: Number) -> Result<Root, Reject> {
    assert!(number.n != 13, "13 brings bad luck");
    let root = (0..=number.n).find(|root| root * root >= number.n);
    let root = root.ok_or_else(|| Reject::new(format!("{} has no root", number.n)))?;
    Ok(Root { root })
}

#[derive(Output)]
pub struct Sum<'a> {
    pub name: &'a str,
    pub sum: i64,
}

/// Sums up for a minute of the host's clock.
#[derive(Function)]
pub struct Minute {
    sum: ValueState<i64>,
}

#[millstream::process(timers("processing"))]
impl Minute {
    fn process(&mut self, _name: &str, number: Number, ctx: &mut ProcessContext) {
        if self.sum.get().is_none() {
            ctx.set_processing_timer(ctx.now() + 60_000);
        }
        *self.sum.get_or_insert_with(|| 0) += number.n;
    }

    fn on_timer(&mut self, name: &str, _timer: Timer, out: &mut Collector<Sum<'_>>) {
        let sum = self.sum.take().unwrap_or_default();
        out.emit(Sum { name, sum });
    }
}

millstream::module! { name: "own_clock", functions: [root, Minute] }
"#;

#[test]
fn refused_rows_errors_and_the_hosts_clock_are_the_fixtures() {
    let project = Project::new("own-clock", "map");
    project.write("src/lib.rs", FUNCTIONS);
    project.write(
        "tests/hot.jsonl",
        r#"{"function":"root"}
{"row":{"n":9}}
{"row":{"n":-1}}
{"expect":{"root":3}}
{"expect-rejected":"-1 has no root"}

{"row":{"n":13}}
{"expect-error":"13 brings bad luck"}
"#,
    );
    project.write(
        "tests/minute.jsonl",
        r#"{"function":"minute","key":["name"],"processing-time":"2024-06-01T12:00:00Z"}
{"row":{"name":"a","n":1}}
{"row":{"name":"b","n":5}}

{"processing-time":"2024-06-01T12:00:30Z"}
{"row":{"name":"a","n":2}}

{"processing-time":"2024-06-01T12:01:00Z"}
{"expect":{"name":"a","sum":3}}
{"expect":{"name":"b","sum":5}}
"#,
    );
    let output = project.run(&["test"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);

    project.write("tests/hot.jsonl", "{\"function\":\"root\"}\n{\"row\":{\"n\":13}}\n");
    let output = project.run(&["test", "tests/hot.jsonl", "--update"]);
    assert_eq!(output.code, Some(1), "an error is not taken over:\n{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("+{\"expect-error\":") && output.stdout.contains("13 brings bad luck"));

    project.write("tests/hot.jsonl", "{\"function\":\"roots\"}\n{\"row\":{\"n\":13}}\n");
    let output = project.run(&["test", "tests/hot.jsonl"]);
    assert_eq!(output.code, Some(3), "{}", output.stdout);
    assert!(output.stderr.contains("tests/hot.jsonl:1: found the function `roots`"), "{}", output.stderr);
}

#[test]
fn a_job_is_tested_as_a_whole() {
    let project = Project::new("own-job", "aggregate");
    project.write(
        "tests/average.jsonl",
        r#"{"job":"../job.toml","times":true}
{"row":{"sensor":"a","time":"2024-06-01T12:01:00Z","celsius":20}}
{"row":{"sensor":"a","time":"2024-06-01T12:02:00Z","celsius":22}}
{"watermark":"2024-06-01T12:09:59.998Z"}

{"watermark":"2024-06-01T12:09:59.999Z"}
{"expect":{"sensor":"a","from":"2024-06-01T12:00:00Z","readings":2,"celsius":21},"time":"2024-06-01T12:09:59.999Z"}
"#,
    );
    let output = project.run(&["test"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
}

#[test]
fn what_is_in_the_way_is_left_alone_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("note"), "mine").expect("a file");
    let path = folder.path().display().to_string();
    let output = finish(millstream(folder.path()).args(["new", "a", "--path", &path]));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("not an empty folder"), "{}", output.stderr);

    let output = finish(millstream(folder.path()).args(["build", "."]));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(output.stderr.contains("there is no project of functions in"), "{}", output.stderr);

    let output = finish(millstream(folder.path()).args(["new", "b", "--sdk", "nowhere"]));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    assert!(!folder.path().join("b").exists(), "half a project was made");
}

#[test]
fn shells_can_complete() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = finish(millstream(&root()).args(["completions", shell])).success();
        assert!(output.stdout.contains("completions"), "{shell} does not know the verbs");
    }
}

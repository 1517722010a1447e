//! `millstream test`: fixtures through a function or a job, compared with what they expect.
//!
//! Watermarks and processing time are the fixture's, so that a test says the same on every machine. The module of the
//! crate around a fixture is built first.

mod compare;
mod drive;
mod fixture;
mod form;
mod function_job;
mod line;
mod subject;

use std::{
    fs,
    path::{Path, PathBuf},
};

use compare::Comparison;
use fixture::Fixture;
use miette::{IntoDiagnostic, miette};
use millstream_guest_build::Language;
use serde::Serialize;
use subject::{FunctionModule, Subject};

use super::build;
use crate::{
    args,
    exit::{Exit, Failure},
    load,
    printer::Printer,
};

/// What the long help says of fixtures.
pub(crate) const HELP: &str = r#"A fixture is a file of JSON lines; empty lines and lines that begin with # are for
the reader. Its first line says what is tested:

  {"function":"average","key":["sensor"],"window":{"tumbling":"10m"}}
      columns, key, window, parameters, on-null, limits and allow are as for an
      operator in a job file. Rows have the columns that the function reads; "schema"
      adds others. "time" names the column with the event time, which else stands
      beside the row. "module" is the path of a component, in the place of the one
      that the crate around the fixture makes.
  {"job":"../job.toml"}
      The fixture plays the job's sources and sinks.

Both may have "processing-time", the time at the beginning, and "times":true, to
compare event times too. The other lines go in:

  {"row":{"celsius":20},"time":"2024-06-01T12:00:00Z","source":"a","port":"p"}
  {"watermark":"2024-06-01T12:10:00Z","source":"a"}
  {"processing-time":"2024-06-01T12:10:00Z"}
  {"barrier":true}
  {"end":true,"source":"a"}

or are expected, below what causes them and in order at each port or sink:

  {"expect":{"celsius":20},"port":"late","sink":"s","time":"2024-06-01T12:00:00Z"}
  {"expect-rejected":"the reason"}
  {"expect-error":"a part of the text"}

source, port, sink and time are left out where they are not needed. An input behind
an expectation or an empty line begins a new step; all that comes out in a step has
to be expected in it. Rows that stand together go in as one batch."#;

/// What became of the fixtures, for `--json`.
#[derive(Serialize)]
struct Results {
    passed: bool,
    fixtures: Vec<Tested>,
}

/// What became of one.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Tested {
    path: String,
    passed: bool,
    /// Whether its expectations have been rewritten.
    updated: bool,
    steps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(args: &args::Test, printer: &Printer) -> Result<Exit, Failure> {
    let paths = fixtures_at(&args.path)?;
    let fixtures = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let needed = fixtures.iter().any(|fixture| fixture.needs_crate());
    let built = match crate_around(&args.path).filter(|_| needed) {
        Some(folder) => Some(build::build(&folder, None, false, printer)?.path),
        None => None,
    };
    let engine = load::engine()?;
    let module = FunctionModule { engine: &engine, built: built.as_deref() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.into_diagnostic().map_err(Failure::environment)?;
    let mut results = Results { passed: true, fixtures: Vec::new() };
    for fixture in &fixtures {
        let comparison = runtime.block_on(test(fixture, &module, printer))?;
        let tested = finish(fixture, &comparison, args.update)?;
        results.passed &= tested.passed;
        results.fixtures.push(tested);
    }
    printer.result(&results, || report(&results));
    Ok(if results.passed { Exit::Success } else { Exit::Failed })
}

async fn test(
    fixture: &Fixture,
    module: &FunctionModule<'_>,
    printer: &Printer,
) -> Result<Comparison, Failure> {
    let mut subject = Subject::new(fixture, module, printer)?;
    let found = drive::drive(fixture, &mut subject).await.into_diagnostic().map_err(Failure::invalid)?;
    Comparison::new(fixture, &found, &subject).into_diagnostic().map_err(Failure::invalid)
}

/// Says what differs, or takes it over. An error is never taken over: whoever expects one writes down which.
fn finish(fixture: &Fixture, comparison: &Comparison, update: bool) -> Result<Tested, Failure> {
    let path = fixture.path.display().to_string();
    let equal = comparison.is_equal();
    let updated = update && !equal && comparison.error.is_none();
    if updated {
        let written = fs::write(&fixture.path, comparison.updated());
        written.map_err(|e| Failure::environment(miette!("{path}: cannot be written: {e}")))?;
    }
    let diff = (!equal).then(|| comparison.diff(&path));
    let passed = equal || updated;
    Ok(Tested { path, passed, updated, steps: fixture.steps.len(), diff, error: comparison.error.clone() })
}

fn report(results: &Results) -> String {
    let mut text = Vec::new();
    for tested in &results.fixtures {
        let word = match tested {
            Tested { updated: true, .. } => "updated",
            Tested { passed: true, .. } => "ok     ",
            _ => "FAILED ",
        };
        let steps = if tested.steps == 1 { "step" } else { "steps" };
        text.push(format!("{word}  {}  {} {steps}", tested.path, tested.steps));
        text.extend(tested.diff.iter().map(|diff| paint(diff)));
        text.extend(tested.error.iter().map(|error| format!("the job failed: {error}")));
    }
    let failed = results.fixtures.iter().filter(|tested| !tested.passed).count();
    if failed > 0 {
        let all = results.fixtures.len();
        text.push(format!(
            "{failed} of {all} fixtures failed; `millstream test --update` takes over what was found"
        ));
    }
    text.join("\n")
}

/// Colours a diff; where nobody can see colours the printer takes them out.
fn paint(diff: &str) -> String {
    let line = |line: &str| match line.chars().next() {
        Some('-') => format!("\x1b[31m{line}\x1b[0m"),
        Some('+') => format!("\x1b[32m{line}\x1b[0m"),
        Some('@') => format!("\x1b[36m{line}\x1b[0m"),
        _ => line.to_owned(),
    };
    diff.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn read(path: &Path) -> Result<Fixture, Failure> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|e| Failure::environment(miette!("{}: cannot be read: {e}", path.display())))?;
    Fixture::parse(path, &text).into_diagnostic().map_err(Failure::invalid)
}

/// The fixture at a path, or those in the folder `tests` of a folder, in order.
fn fixtures_at(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let folder = path.join("tests");
    let folder = if folder.is_dir() { folder } else { path.to_owned() };
    let unreadable = |e| Failure::environment(miette!("{}: cannot be read: {e}", folder.display()));
    let folder = folder.strip_prefix(".").map(Path::to_owned).unwrap_or(folder.clone());
    let entries = folder.read_dir().map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    if paths.is_empty() {
        let folder = folder.display();
        return Err(Failure::invalid(miette!(
            "found no fixture in {folder}, expected files such as {folder}/name.jsonl"
        )));
    }
    Ok(paths)
}

/// The project whose module a fixture is about: the nearest one at or above a path, if it is one of functions.
fn crate_around(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    // As the user wrote it where that goes up far enough, since messages show it.
    let near =
        path.ancestors().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let mut folders = near.chain(absolute.ancestors());
    let (folder, language) = folders.find_map(|folder| Some((folder, Language::of(folder)?)))?;
    language.is_of_functions(folder).then(|| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_of_a_folder_are_those_in_its_tests_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(fixtures_at(folder.path()).is_err());
        fs::create_dir(folder.path().join("tests")).expect("a folder in it");
        for name in ["b.jsonl", "a.jsonl", "it.rs"] {
            fs::write(folder.path().join("tests").join(name), "").expect("a file in it");
        }
        let found = fixtures_at(folder.path()).expect("two");
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, ["a.jsonl", "b.jsonl"]);
        assert_eq!(fixtures_at(&found[1]).expect("itself"), found[1..]);
    }

    #[test]
    fn only_a_crate_of_functions_is_built() {
        let folder = tempfile::tempdir().expect("a folder");
        let fixture = folder.path().join("tests/a.jsonl");
        let manifest = folder.path().join("Cargo.toml");
        fs::write(&manifest, "[workspace]").expect("a file");
        assert_eq!(crate_around(&fixture), None);
        fs::write(&manifest, "[lib]\ncrate-type = [\"cdylib\"]").expect("a file");
        assert_eq!(crate_around(&fixture).as_deref(), Some(folder.path()));
    }
}

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
    sync::Arc,
};

use compare::Comparison;
use fixture::Fixture;
use miette::{IntoDiagnostic, miette};
use millstream_wasm::WasmEngine;
use serde::Serialize;
use subject::{FunctionModule, Subject};

use super::build;
use crate::{
    args,
    exit::{Exit, Failure},
    load,
    printer::Printer,
};

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
    let built = match crate_around(&args.path) {
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

async fn test(fixture: &Fixture, module: &FunctionModule<'_>, printer: &Printer) -> Result<Comparison, Failure> {
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
        text.push(format!("{word}  {}  {} steps", tested.path, tested.steps));
        text.extend(tested.diff.iter().map(|diff| paint(diff)));
        text.extend(tested.error.iter().map(|error| format!("the job failed: {error}")));
    }
    let failed = results.fixtures.iter().filter(|tested| !tested.passed).count();
    if failed > 0 {
        let all = results.fixtures.len();
        text.push(format!("{failed} of {all} fixtures failed; `millstream test --update` takes over what was found"));
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
    let entries = folder.read_dir().map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    if paths.is_empty() {
        let folder = folder.display();
        return Err(Failure::invalid(miette!("found no fixture in {folder}, expected files such as {folder}/name.jsonl")));
    }
    Ok(paths)
}

/// The nearest folder at or above a path that has a `Cargo.toml`.
fn crate_around(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let found = absolute.ancestors().find(|folder| folder.join("Cargo.toml").is_file())?;
    // As the user wrote it where that is possible: messages and job files have relative paths.
    let up = absolute.ancestors().position(|folder| folder == found)?;
    Some(path.ancestors().nth(up).filter(|p| !p.as_os_str().is_empty()).unwrap_or(if path == Path::new(".") { path } else { found }).to_owned())
}

//! Projects of functions in other languages than Rust, each with the SDK of its language: built as `millstream build`
//! builds them, with compilers that are installed here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use millstream_guest_build::{BuildOptions, COMPONENTIZE_PY, Packages, build_project};

use super::output::{Guest, Output};
use super::{Built, c, javascript, require};
use crate::printer::Printer;
use crate::workspace::{Workspace, is_on_path, run_quietly};

/// A project, by the name of its guest.
struct Project {
    name: &'static str,
    folder: &'static str,
}

/// A language, with its projects.
struct Language {
    name: &'static str,
    sdk: &'static str,
    projects: &'static [Project],
    /// Makes its compiler be there: the folder that it is in, or why there is none.
    prepare: fn(&Workspace, &Printer) -> Result<Result<PathBuf, String>>,
}

/// Builds the projects of each language.
pub(super) fn build(workspace: &Workspace, output: &Output, printer: &Printer) -> Vec<Result<Built>> {
    LANGUAGES.iter().map(|language| build_language(workspace, language, output, printer)).collect()
}

fn build_language(
    workspace: &Workspace,
    language: &Language,
    output: &Output,
    printer: &Printer,
) -> Result<Built> {
    let inputs = |project: &Project| {
        let folders = [project.folder, language.sdk].map(|folder| workspace.root.join(folder));
        folders.into_iter().chain([workspace.wit()]).collect::<Vec<_>>()
    };
    let fresh: Option<Vec<_>> =
        language.projects.iter().map(|project| output.up_to_date(project.name, &inputs(project))).collect();
    if let Some(guests) = fresh {
        return Ok(Built::of(guests));
    }
    let tools = match (language.prepare)(workspace, printer)? {
        Ok(tools) => tools,
        Err(reason) => return Ok(Built::left_out(format!("the guests in {}: {reason}", language.name))),
    };
    let mut built = Built::default();
    for project in language.projects {
        built.add(build_one(workspace, project, &tools, &inputs(project), output, printer));
    }
    Ok(built)
}

fn build_one(
    workspace: &Workspace,
    project: &Project,
    tools: &Path,
    inputs: &[PathBuf],
    output: &Output,
    printer: &Printer,
) -> Result<Guest> {
    if let Some(guest) = output.up_to_date(project.name, inputs) {
        return Ok(guest);
    }
    let start = Instant::now();
    let target_dir = workspace.target.join("guest-projects").join(project.name);
    let log = target_dir.join("build.log");
    let options = BuildOptions { target_dir, locked: workspace.ci, tools: vec![tools.to_owned()], log };
    let folder = workspace.root.join(project.folder);
    let module = build_project(&folder, &options, &|step| printer.progress(step))?;
    output.put_made_of(project.name, &module.component, start.elapsed(), inputs)
}

fn prepare_python(workspace: &Workspace, printer: &Printer) -> Result<Result<PathBuf, String>> {
    if !is_on_path("python3") {
        if let Some(remedy) = require(&Packages::new(["python3", "python3-venv"]), printer)? {
            return Ok(Err(remedy));
        }
        if !is_on_path("python3") {
            return Ok(Err("there is no python3".to_owned()));
        }
    }
    // A folder a version, so that another one begins anew.
    let environment = workspace.target.join(format!("guest-tools/componentize-py-{COMPONENTIZE_PY}"));
    let programs = environment.join("bin");
    if !programs.join("componentize-py").is_file() {
        printer.progress(format_args!("installing componentize-py {COMPONENTIZE_PY} (pip)"));
        let mut venv = Command::new("python3");
        run_quietly(venv.args(["-m", "venv"]).arg(&environment), printer)?;
        let mut pip = Command::new(programs.join("pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        run_quietly(pip.arg(format!("componentize-py=={COMPONENTIZE_PY}")), printer)?;
    }
    Ok(Ok(programs))
}

/// The packages of the projects themselves, as their lock files say.
fn prepare_javascript(workspace: &Workspace, printer: &Printer) -> Result<Result<PathBuf, String>> {
    if let Some(reason) = javascript::require_npm(printer)? {
        return Ok(Err(reason));
    }
    for project in JAVASCRIPT {
        javascript::install_compiler(&workspace.root.join(project.folder), printer)?;
    }
    // Node.js is where npm is.
    Ok(Ok(PathBuf::new()))
}

const PYTHON: &[Project] = &[Project { name: "conformance_python", folder: "tests/guests/python" }];
const JAVASCRIPT: &[Project] =
    &[Project { name: "conformance_javascript", folder: "tests/guests/javascript" }];

/// Debian's clang, as for the guests against the bare interface.
fn prepare_c(_: &Workspace, printer: &Printer) -> Result<Result<PathBuf, String>> {
    Ok(match require(&Packages::new(c::PACKAGES), printer)? {
        Some(remedy) => Err(remedy),
        None => Ok(PathBuf::new()),
    })
}

const C: &[Project] = &[Project { name: "conformance_c", folder: "tests/guests/conformance-c" }];

const LANGUAGES: [Language; 3] = [
    Language { name: "C", sdk: "guest-sdk/c/src", projects: C, prepare: prepare_c },
    Language { name: "Python", sdk: "guest-sdk/python/src", projects: PYTHON, prepare: prepare_python },
    Language {
        name: "JavaScript",
        sdk: "guest-sdk/javascript/src",
        projects: JAVASCRIPT,
        prepare: prepare_javascript,
    },
];

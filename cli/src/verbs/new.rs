//! `millstream new`: a project with one small function, a job that runs it and a fixture that tests it.
//!
//! The project needs the SDK of its language, which is no package of a registry: its sources are part of this program and
//! go into the project's folder `.millstream`, so that it builds on any machine. `--sdk` or `MILLSTREAM_SDK` name a folder to use
//! in their place.

mod kind;
mod language;
mod name;
mod project;
mod sdk;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub(crate) use kind::Kind;
pub(crate) use language::Language;
use project::Project;
use sdk::Sdk;

use crate::{
    args,
    exit::{Exit, Failure},
    printer::Printer,
};

/// What the long help says.
pub(crate) const HELP: &str =
    "The SDK is not in a registry: its sources are part of this command and go into the
project's folder .millstream, which belongs into version control with the rest. To
move a project to the SDK of a newer command, replace that folder by the one of a
new project.";

/// What was made, for `--json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Created<'a> {
    name: &'a str,
    language: &'static str,
    kind: &'static str,
    function: &'static str,
    path: PathBuf,
    /// Where the SDK comes from.
    sdk: String,
    files: Vec<String>,
}

pub(crate) fn run(args: &args::New, printer: &Printer) -> Result<Exit, Failure> {
    let language = args.lang;
    name::check(&args.name, language)?;
    let sdk = Sdk::find(language, args.sdk.as_deref())?;
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let project = Project::new(&args.name, language, args.kind, &sdk);
    let files = project.write(&folder)?;
    let created = Created {
        name: &args.name,
        language: language.name(),
        kind: args.kind.name(),
        function: args.kind.function(),
        path: folder,
        sdk: sdk.dependency(language),
        files,
    };
    printer.result(&created, || summary(&created, &project));
    Ok(Exit::Success)
}

fn summary(created: &Created<'_>, project: &Project) -> String {
    let Created { name, kind, function, path, .. } = created;
    format!(
        "made `{name}` with the {kind} function `{function}` in {path}\n\n    cd {path}\n{commands}",
        path = path.display(),
        commands = project.commands(),
    )
}

/// Whether a folder has nothing in it, or is not there.
fn is_free(folder: &Path) -> bool {
    match folder.read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

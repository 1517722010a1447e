//! `millstream new`: a project with one small function, a job that runs it and a fixture that tests it.
//!
//! The project needs the SDK of its language, which is no package of a registry: its sources are part of this program and
//! go into the project's folder `.millstream`, so that it builds on any machine. `--sdk` or `MILLSTREAM_SDK` name a folder to use
//! in their place.

mod kind;
mod language;
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
    check_name(&args.name)?;
    let language = args.lang;
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

/// A name has to do as one of a package, of a job and of a module.
fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let problem = if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        "it does not begin with a lower-case letter"
    } else if !name.chars().all(plain) {
        "it has other characters than lower-case letters, digits, `-` and `_`"
    } else if RESERVED.contains(&name.replace('-', "_").as_str()) {
        "the language or its libraries use this word"
    } else {
        return Ok(());
    };
    Err(Failure::invalid(miette::miette!(
        help = "such as `millstream new hot-sensors`",
        "`{name}` cannot be the name of a function crate: {problem}"
    )))
}

/// Words that Cargo refuses as the name of a library, and that of the SDK.
const RESERVED: [&str; 56] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "millstream",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Whether a folder has nothing in it, or is not there.
fn is_free(folder: &Path) -> bool {
    match folder.read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_for_packages_jobs_and_modules() {
        for good in ["hot-sensors", "a", "q5_count2"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "Hot", "2nd", "-a", "a b", "a.b", "match", "millstream", "ä"] {
            let failure = check_name(bad).expect_err(bad);
            assert_eq!(failure.exit, Exit::Invalid);
        }
    }
}

//! Python: componentize-py, which puts an interpreter that has run the project's imports into the component.
//!
//! The program that it starts from is written here: it says who the module is, imports the project's functions, and has
//! the SDK make their manifest, so that what is declared wrongly is an error of the build.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Project, ProjectError, tool};
use crate::cargo::BuiltModule;
use crate::progress::{Progress, Step};
use crate::run;

/// The version of componentize-py that the SDK is made for: others generate other bindings.
pub const COMPONENTIZE_PY: &str = "0.25.1";

/// What `pyproject.toml` says of a module.
#[derive(Debug, PartialEq, Eq)]
struct Module {
    name: String,
    version: String,
    doc: String,
    /// The folder with the SDK's package, where it is not installed.
    sdk: Option<String>,
}

pub(super) fn build(project: &Project, progress: Progress<'_>) -> Result<BuiltModule, ProjectError> {
    let module = Module::read(&project.read(PYPROJECT)?)
        .map_err(|reason| ProjectError::Manifest { path: project.directory.join(PYPROJECT), reason })?;
    let compiler = compiler(project)?;
    project.write("python/millstream_app.py", &program(&module))?;
    let output = project.work.join(&module.name).with_extension("wasm");
    let mut command = Command::new(compiler);
    // Its own call stack says nothing of the project.
    command.current_dir(&project.directory).env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    command.arg("--quiet").arg("-d").arg(project.wit()).args(["-w", "module", "componentize", "--stub-wasi"]);
    for folder in python_path(project, &module) {
        command.arg("-p").arg(folder);
    }
    command.arg("-o").arg(&output).arg("millstream_app");
    progress(&Step::Compiling { directory: project.directory.clone() });
    if !run::shown(&mut command, &project.log)?.status.success() {
        let (directory, log) = (project.directory.clone(), project.log.clone());
        return Err(ProjectError::Compile { directory, log });
    }
    project.finish(&module.name, output, progress)
}

impl Module {
    fn read(text: &str) -> Result<Self, String> {
        let manifest: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let table = |name: &str| manifest.get(name).and_then(toml::Value::as_table);
        let project = table("project").ok_or("found no table [project], expected one with `name`")?;
        let text =
            |table: &toml::Table, key: &str| table.get(key).and_then(|v| v.as_str()).map(str::to_owned);
        let name = text(project, "name").ok_or("[project] has no `name`")?;
        let tool =
            table("tool").and_then(|tool| tool.get("millstream")?.as_table().cloned()).unwrap_or_default();
        let name = text(&tool, "module").unwrap_or_else(|| name.replace(['-', '.'], "_"));
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err(format!(
                "`module` is `{name}`, expected the name of a Python module in the folder src"
            ));
        }
        Ok(Self {
            name,
            version: text(project, "version").unwrap_or_default(),
            doc: text(project, "description").unwrap_or_default(),
            sdk: text(&tool, "sdk"),
        })
    }
}

fn program(module: &Module) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (name, version, doc) = (quoted(&module.name), quoted(&module.version), quoted(&module.doc));
    format!(
        "\"\"\"What the component starts from. Made by `millstream build`.\"\"\"\n\n\
         from millstream import component\n\
         from millstream.component import *\n\n\
         component.module({name}, {version}, {doc})\n\n\
         import {import}\n\n\
         component.check()\n",
        import = module.name,
    )
}

/// Where modules are looked for: the program, the project, the SDK, and the packages of the project's environment.
fn python_path(project: &Project, module: &Module) -> Vec<PathBuf> {
    let sdk = module.sdk.as_ref().map(|folder| project.directory.join(folder));
    let own = [project.work.join("python"), project.directory.join("src")];
    own.into_iter().chain(sdk).chain(packages(&project.directory.join(ENVIRONMENT))).collect()
}

/// The folder with the packages of an environment, if it is there. The interpreter in a component is of another version
/// than the environment's, which makes no difference to packages that are nothing but Python.
fn packages(environment: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    let versions = versions.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
    let mut folders: Vec<_> = versions.map(|entry| entry.path()).collect();
    folders.sort();
    folders.push(environment.join("Lib"));
    folders.into_iter().map(|folder| folder.join("site-packages")).find(|folder| folder.is_dir())
}

/// The compiler: that of the project's own environment, of the active one, or on the search path.
fn compiler(project: &Project) -> Result<PathBuf, ProjectError> {
    let directory = &project.directory;
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let environments = [Some(directory.join(ENVIRONMENT)), active].into_iter().flatten();
    let environments = environments.map(|folder| folder.join(PROGRAMS));
    let folders: Vec<_> = project.tools.iter().cloned().chain(environments).collect();
    let missing = |found: String| ProjectError::Tool {
        found,
        remedy: format!(
            "Run `python3 -m venv .venv && .venv/{PROGRAMS}/pip install componentize-py=={COMPONENTIZE_PY}` in {}, or \
             name one by MILLSTREAM_COMPONENTIZE_PY.",
            directory.display()
        ),
    };
    let Some(compiler) = tool::find("MILLSTREAM_COMPONENTIZE_PY", "componentize-py", &folders) else {
        return Err(missing("there is no componentize-py, which makes components of Python".to_owned()));
    };
    let version = tool::version(&compiler, &["--version"])?;
    if version != COMPONENTIZE_PY {
        return Err(missing(format!(
            "{} has version {version}, expected {COMPONENTIZE_PY}",
            compiler.display()
        )));
    }
    Ok(compiler)
}

/// The environment of a project.
const ENVIRONMENT: &str = ".venv";
const PYPROJECT: &str = "pyproject.toml";
const PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_of_an_environment_are_found_where_it_has_them() {
        let environment = tempfile::tempdir().expect("a folder for the test");
        assert_eq!(packages(environment.path()), None);
        for folder in ["Lib/site-packages", "lib/python3.12/site-packages"] {
            let folder = environment.path().join(folder);
            fs::create_dir_all(&folder).expect("a new folder");
            assert_eq!(packages(environment.path()), Some(folder));
        }
    }

    #[test]
    fn a_project_says_who_its_module_is() {
        let text = "[project]\nname = \"hot-sensors\"\nversion = \"1.2\"\n[tool.millstream]\nsdk = \"sdk\"";
        let module = Module::read(text).expect("is right");
        let (name, version, doc) = ("hot_sensors".to_owned(), "1.2".to_owned(), String::new());
        assert_eq!(module, Module { name, version, doc, sdk: Some("sdk".to_owned()) });
        assert!(
            program(&module)
                .contains("component.module(\"hot_sensors\", \"1.2\", \"\")\n\nimport hot_sensors\n")
        );
        for (wrong, words) in [
            ("", "no table [project]"),
            ("[project]", "no `name`"),
            (
                "[project]\nname = \"a\"\n[tool.millstream]\nmodule = \"a b\"",
                "expected the name of a Python module",
            ),
        ] {
            let reason = Module::read(wrong).expect_err(wrong);
            assert!(reason.contains(words), "{reason}");
        }
    }
}

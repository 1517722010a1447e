//! JavaScript and TypeScript: esbuild, which makes one file of the project's and the SDK's, and componentize-js, which
//! puts that into an engine that has read it.
//!
//! Both are packages of the project. What drives them is a program of ours, which is put into its folder `node_modules`
//! so that it finds them there.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{Project, ProjectError, tool};
use crate::cargo::BuiltModule;
use crate::progress::{Progress, Step};
use crate::run;

/// The version of componentize-js that the SDK is made for.
const COMPONENTIZE_JS: &str = "0.23.0";

/// The oldest Node.js that runs it.
const NODE: u32 = 20;

pub(super) fn build(project: &Project, progress: Progress<'_>) -> Result<BuiltModule, ProjectError> {
    let manifest = package(project)?;
    let name = module_name(&manifest).map_err(|reason| wrong(project, reason))?;
    let entry = entry(project, &manifest).map_err(|reason| wrong(project, reason))?;
    let node = node(project)?;
    check_packages(project)?;
    let program = project.directory.join("node_modules/.millstream/bundle.mjs");
    let failed = |source| ProjectError::File { path: program.clone(), source };
    fs::create_dir_all(program.parent().unwrap_or(&project.directory)).map_err(failed)?;
    fs::write(&program, BUNDLE).map_err(failed)?;
    let output = project.work.join(&name).with_extension("wasm");
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or_default();
    let task = json!({
        "project": project.directory,
        "entry": entry,
        "bundle": project.work.join("bundle.js"),
        "output": output,
        "wit": project.wit(),
        "module": { "name": name, "version": text("version"), "doc": text("description") },
    });
    let mut command = Command::new(node);
    command.current_dir(&project.directory).arg(&program).arg(task.to_string());
    progress(&Step::Compiling { directory: project.directory.clone() });
    if !run::shown(&mut command, &project.log)?.status.success() {
        let (directory, log) = (project.directory.clone(), project.log.clone());
        return Err(ProjectError::Compile { directory, log });
    }
    project.finish(&name, output, progress)
}

fn package(project: &Project) -> Result<Value, ProjectError> {
    serde_json::from_str(&project.read(PACKAGE)?).map_err(|error| wrong(project, error.to_string()))
}

fn wrong(project: &Project, reason: String) -> ProjectError {
    ProjectError::Manifest { path: project.directory.join(PACKAGE), reason }
}

fn module_name(manifest: &Value) -> Result<String, String> {
    let named = manifest.pointer("/millstream/module").or(manifest.get("name")).and_then(Value::as_str);
    let name = named.ok_or("found no `name`")?.rsplit('/').next().unwrap_or_default();
    Ok(name.replace(['-', '.'], "_"))
}

/// The file whose exports are the functions.
fn entry(project: &Project, manifest: &Value) -> Result<String, String> {
    let named = manifest.get("main").and_then(Value::as_str);
    let mut candidates = named.into_iter().chain(ENTRIES);
    let found = candidates.find(|file| project.directory.join(file).is_file());
    found.map(|file| format!("./{file}")).ok_or_else(|| format!("found none of {}", ENTRIES.join(", ")))
}

fn node(project: &Project) -> Result<std::path::PathBuf, ProjectError> {
    let remedy =
        format!("Install Node.js {NODE} or later (https://nodejs.org; on Debian the package nodejs).");
    let Some(node) = tool::find("MILLSTREAM_NODE", "node", &project.tools) else {
        return Err(ProjectError::Tool {
            found: "there is no Node.js, which builds JavaScript".to_owned(),
            remedy,
        });
    };
    let version = tool::version(&node, &["--version"])?;
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < NODE) {
        return Err(ProjectError::Tool {
            found: format!("{} has version {version}", node.display()),
            remedy,
        });
    }
    Ok(node)
}

fn check_packages(project: &Project) -> Result<(), ProjectError> {
    let packages = project.directory.join("node_modules");
    let read = |name: &str| fs::read_to_string(packages.join(name).join(PACKAGE)).ok();
    let version = |name: &str| {
        let manifest: Value = serde_json::from_str(&read(name)?).ok()?;
        Some(manifest.get("version")?.as_str()?.to_owned())
    };
    let directory = project.directory.display();
    let refuse = |found: String| {
        let command = if project.locked { "npm ci" } else { "npm install" };
        Err(ProjectError::Tool { found, remedy: format!("Run `{command}` in {directory}.") })
    };
    for name in ["millstream", "esbuild", COMPILER, SHIM] {
        if version(name).is_none() {
            return refuse(format!("the package `{name}` is not in {}", packages.display()));
        }
    }
    match version(COMPILER) {
        Some(found) if found != COMPONENTIZE_JS => Err(ProjectError::Tool {
            found: format!("the package `{COMPILER}` has version {found}, expected {COMPONENTIZE_JS}"),
            remedy: format!("Run `npm install --save-dev {COMPILER}@{COMPONENTIZE_JS}` in {directory}."),
        }),
        _ => Ok(()),
    }
}

const PACKAGE: &str = "package.json";
const COMPILER: &str = "@bytecodealliance/componentize-js";
/// What the compiler imports and does not always bring.
const SHIM: &str = "@bytecodealliance/preview2-shim";
const ENTRIES: [&str; 2] = ["src/index.ts", "src/index.js"];
const BUNDLE: &str = include_str!("bundle.mjs");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_called_as_its_package_unless_that_says_otherwise() {
        let name = |text: &str| module_name(&serde_json::from_str(text).expect("is JSON"));
        assert_eq!(name(r#"{"name":"@a/hot-sensors"}"#), Ok("hot_sensors".to_owned()));
        assert_eq!(name(r#"{"name":"a","millstream":{"module":"b"}}"#), Ok("b".to_owned()));
        assert!(name("{}").is_err());
    }
}

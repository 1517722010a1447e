//! The files of a new project.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::{
    is_free,
    kind::Kind,
    language::Language,
    sdk::{self, Sdk, VENDORED},
};
use crate::{exit::Failure, verbs::build::OUTPUT};

/// The rows that the project's job reads.
pub(super) const DATA: &str = "data/readings.jsonl";

/// A project that has not been written yet: paths in its folder, with what goes there.
pub(super) struct Project {
    files: Vec<(String, String)>,
    commands: String,
    /// How many of them are the project's own, which are worth being named.
    own: usize,
}

impl Project {
    pub(super) fn new(name: &str, language: Language, kind: Kind, sdk: &Sdk) -> Self {
        let module = name.replace('-', "_");
        let vendored = match sdk {
            Sdk::Vendored => {
                format!("\n`{VENDORED}` has the sources of the SDK. They belong into version control.\n")
            }
            Sdk::Folder(_) => String::new(),
        };
        let wasm = format!("{OUTPUT}/{module}.wasm");
        let sdk_path = sdk.dependency(language);
        let places = [("module", module.as_str()), ("sdk", &sdk_path)];
        let source = fill(language.source(), &places);
        let native = language.native_test().map(|line| fill(line, &places));
        let commands = commands(language, native.as_deref(), &wasm);
        let values = [
            ("name", name),
            ("module", &module),
            ("kind", kind.name()),
            ("function", kind.function()),
            ("settings", kind.settings()),
            ("wasm", &wasm),
            ("sdk", &sdk_path),
            ("vendored", &vendored),
            ("source", &source),
            ("commands", &commands),
            ("ignored", language.ignored()),
        ];
        let file = |path: &str, template: &str| (fill(path, &values), fill(template, &values));
        let mut files = vec![
            file("job.toml", include_str!("../../../templates/job.toml.in")),
            file(DATA, include_str!("../../../templates/readings.jsonl")),
            file(&format!("tests/{}.jsonl", kind.function()), kind.fixture()),
            file("README.md", include_str!("../../../templates/README.md.in")),
            file(".gitignore", include_str!("../../../templates/gitignore.in")),
        ];
        files.extend(language.files(kind).into_iter().map(|(path, template)| file(path, template)));
        let own = files.len();
        if *sdk == Sdk::Vendored {
            let sources =
                sdk::sources(language).map(|(path, text)| (format!("{VENDORED}/{path}"), (*text).to_owned()));
            files.extend(sources);
        }
        Self { files, commands, own }
    }

    /// What can be done with it, a line each.
    pub(super) fn commands(&self) -> &str {
        &self.commands
    }

    /// Writes the files into a folder that is empty or not there, and says which. A folder with something in it is
    /// left as it is.
    pub(super) fn write(&self, folder: &Path) -> Result<Vec<String>, Failure> {
        if !is_free(folder) {
            return Err(Failure::invalid(miette::miette!(
                help = "name another folder with `--path`",
                "{} is there already, and is not an empty folder",
                folder.display()
            )));
        }
        for (path, text) in &self.files {
            let path = folder.join(path);
            let written = write_new(&path, text);
            written.map_err(|error| {
                Failure::environment(miette::miette!("{}: cannot be written: {error}", path.display()))
            })?;
        }
        Ok(self.files[..self.own].iter().map(|(path, _)| path.clone()).collect())
    }
}

/// The commands that a project begins with, each with what it is for.
fn commands(language: Language, native: Option<&str>, wasm: &str) -> String {
    let to_wasm = format!("to WebAssembly: {wasm}");
    let over = format!("the job over {DATA}");
    let install = language.install().map(|install| (install, "what builds it"));
    let native = native.map(|native| (native, language.native_test_does()));
    let lines: [(&str, &str); 3] = [
        ("millstream build", &to_wasm),
        ("millstream test", "through the module: what tests/*.jsonl feed in and expect"),
        ("millstream run job.toml", &over),
    ];
    let lines: Vec<_> = install.into_iter().chain(native).chain(lines).collect();
    // A line that is very long does not push the words beside the others out of sight.
    let width = lines.iter().map(|(command, _)| command.len()).filter(|length| *length < 30).max();
    let width = width.unwrap_or_default();
    lines
        .iter()
        .map(|(command, what)| format!("    {command:width$}  # {what}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn write_new(path: &PathBuf, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

/// Puts values in the place of `{{name}}`.
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn file(project: &Project, path: &str) -> String {
        let found = project.files.iter().find(|(name, _)| name == path);
        found.map(|(_, text)| text.clone()).unwrap_or_else(|| panic!("no {path}"))
    }

    #[test]
    fn every_kind_is_complete_and_nothing_is_left_to_fill_in() {
        for (language, kind) in Language::value_variants()
            .iter()
            .flat_map(|language| Kind::value_variants().iter().map(move |kind| (*language, *kind)))
        {
            let project = Project::new("hot-sensors", language, kind, &Sdk::Vendored);
            for (path, text) in &project.files[..project.own] {
                assert!(
                    !path.contains("{{") && !text.contains("{{"),
                    "{path} of {language:?}, {kind:?}:\n{text}"
                );
            }
            let function = kind.function();
            assert!(
                file(&project, &format!("tests/{function}.jsonl"))
                    .contains(&format!("\"function\":\"{function}\""))
            );
            assert!(file(&project, "job.toml").contains(&format!("function = \"hot_sensors.{function}\"")));
            let source = fill(language.source(), &[("module", "hot_sensors")]);
            assert!(file(&project, "README.md").contains(&source) && !file(&project, &source).is_empty());
            let ignored = file(&project, ".gitignore");
            assert_eq!(
                ignored.contains("node_modules/"),
                matches!(language, Language::Javascript | Language::Typescript)
            );
            assert_eq!(ignored.contains(".venv/"), language == Language::Python);
            assert!(ignored.lines().all(|line| !line.is_empty()), "{ignored}");
            assert!(project.files.len() > project.own, "the SDK for {language:?} is not there");
        }
    }

    #[test]
    fn the_readme_shows_the_function_that_is_made() {
        let (_, function) = include_str!("../../../templates/rust/map.rs.in")
            .split_once("#[millstream::map]\n")
            .expect("the template has a map function");
        let (function, _) = function.split_once("\n}\n").expect("it ends");
        let shown = format!("#[millstream::map]\n{function}\n}}").replace('\n', "\n    ");
        assert!(
            include_str!("../../../../README.md").contains(&shown),
            "README.md has another function:\n{shown}"
        );
    }

    #[test]
    fn another_sdk_is_named_and_not_copied() {
        let project = Project::new("a", Language::Rust, Kind::Map, &Sdk::Folder("/opt/sdk".into()));
        assert!(file(&project, "Cargo.toml").contains("path = \"/opt/sdk\""));
        assert!(!project.files.iter().any(|(path, _)| path.starts_with(VENDORED)));
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let project = Project::new("a", Language::Rust, Kind::Map, &Sdk::Vendored);
        let written = project.write(folder.path()).expect("it is empty");
        assert!(written.contains(&"src/lib.rs".to_owned()) && folder.path().join(VENDORED).is_dir());
        assert!(project.write(folder.path()).is_err());
    }
}

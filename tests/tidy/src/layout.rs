//! Where things are, and what must not get into a file at all.

use std::collections::BTreeSet;

use crate::repository::{Repository, report};

/// The folders of the top level.
const FOLDERS: [&str; 8] = [".cargo", ".ci", "cli", "examples", "guest-sdk", "host", "tests", "wit"];

/// The files of the top level.
const FILES: [&str; 10] = [
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "deny.toml",
    "rustfmt.toml",
];

/// Hosts of package registries and folders of one machine: what is built must not depend on where it is built.
const OF_ONE_MACHINE: &[&str] = &[
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("npm", "js.com"),
    concat!("proxy.", "golang.org"),
    concat!("repo1.", "maven"),
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

#[test]
fn the_top_level_has_what_it_should_have() {
    let repository = Repository::open();
    let found: BTreeSet<String> = repository.files().map(top).collect();
    let expected: BTreeSet<String> = FILES
        .iter()
        .map(|file| (*file).to_owned())
        .chain(FOLDERS.iter().map(|folder| format!("{folder}/")))
        .collect();
    let more = found.difference(&expected).map(|entry| format!("{entry} has no place at the top"));
    let less = expected.difference(&found).map(|entry| format!("{entry} is missing"));
    report("top level", &more.chain(less).collect::<Vec<_>>());
}

#[test]
fn nothing_that_was_built_is_kept() {
    let repository = Repository::open();
    let built = repository.files().filter(|path| path.split('/').any(|folder| folder == "target"));
    let problems: Vec<_> = built.map(|path| format!("{path} is in a folder of what is built")).collect();
    report("what is built", &problems);
}

#[test]
fn every_crate_inherits_the_lints_of_its_workspace() {
    let repository = Repository::open();
    let mut problems = Vec::new();
    for (path, manifest) in manifests(&repository) {
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if manifest.contains_key("package") && inherits != Some(&toml::Value::Boolean(true)) {
            problems.push(format!("{path} has no `[lints] workspace = true`"));
        }
        if manifest.contains_key("workspace") && !denies_unsafety(&manifest) {
            problems.push(format!("the workspace of {path} does not deny unsafe code"));
        }
    }
    report("lints", &problems);
}

#[test]
fn versions_of_dependencies_are_committed() {
    let repository = Repository::open();
    let workspaces =
        manifests(&repository).into_iter().filter(|(_, manifest)| manifest.contains_key("workspace"));
    let locks = workspaces.map(|(path, _)| path.replace("Cargo.toml", "Cargo.lock"));
    let packages = repository.files().filter(|path| path.ends_with("package.json"));
    let locks = locks.chain(packages.map(|path| path.replace("package.json", "package-lock.json")));
    let missing = locks.filter(|lock| !repository.is_committed(lock));
    report("lock files", &missing.map(|lock| format!("{lock} is not committed")).collect::<Vec<_>>());
}

#[test]
fn no_file_names_a_registry_or_a_folder_of_one_machine() {
    let repository = Repository::open();
    // Cargo writes the registry into its own lock files.
    let texts = repository.texts("").filter(|(path, _)| !path.ends_with("Cargo.lock"));
    report("of one machine", &texts.flat_map(|(path, text)| of_one_machine(path, &text)).collect::<Vec<_>>());
}

/// The file, or the folder with a slash, that a path begins with.
fn top(path: &str) -> String {
    path.split_once('/').map_or_else(|| path.to_owned(), |(folder, _)| format!("{folder}/"))
}

fn manifests(repository: &Repository) -> Vec<(&str, toml::Table)> {
    let parse = |(path, text): (_, String)| match text.parse() {
        Ok(table) => (path, table),
        Err(error) => panic!("{path}: {error}"),
    };
    repository.texts("Cargo.toml").map(parse).collect()
}

fn denies_unsafety(manifest: &toml::Table) -> bool {
    let lint = ["lints", "rust", concat!("unsafe", "_code")];
    let level = manifest
        .get("workspace")
        .and_then(|workspace| lint.iter().try_fold(workspace, |value, key| value.get(key)));
    level.and_then(toml::Value::as_str) == Some("deny")
}

fn of_one_machine(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let found = lines.flat_map(|(number, line)| {
        let names = OF_ONE_MACHINE.iter().filter(move |name| line.contains(*name));
        names.map(move |name| format!("{path}:{}: `{name}`", number + 1))
    });
    found.collect()
}

#[test]
fn what_has_no_place_is_found() {
    assert_eq!([top("host/types/src/lib.rs"), top("LICENSE")], ["host/", "LICENSE"]);
    assert_eq!(of_one_machine("a.md", concat!("fine\nin /wo", "rk/x")).len(), 1);
    let manifest = |lints: &str| format!("[workspace]\n{lints}").parse::<toml::Table>().expect("valid");
    assert!(denies_unsafety(&manifest(concat!("lints.rust.unsafe", "_code = 'deny'"))));
    assert!(!denies_unsafety(&manifest("")));
}

//! Which crate may use which: the boundaries that `ARCHITECTURE.md` describes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::repository::{Repository, normalized, report};

/// Every crate of the workspace with those of ours that it may use. A new crate gets a row.
const MAY_USE: &[(&str, &[&str])] = &[
    ("host/types", &[]),
    ("host/graph", &["host/types"]),
    ("host/protocol", &["host/types"]),
    ("host/state", &["host/types"]),
    ("host/state-rocksdb", &["host/state", "host/types"]),
    ("host/snapshot", &["host/types"]),
    ("host/storage", &["host/snapshot", "host/types"]),
    ("host/operator", &["host/state", "host/types"]),
    ("host/wasm", &["host/operator", "host/state", "host/types"]),
    ("host/net", &["host/protocol", "host/types"]),
    ("host/operators", &["host/operator", "host/protocol", "host/state", "host/types"]),
    ("host/connectors", &["host/operator", "host/types"]),
    ("host/control", &["host/operator", "host/snapshot", "host/types"]),
    ("host/task", &["host/operator", "host/state", "host/net", "host/protocol", "host/types"]),
    (
        "host/worker",
        &[
            "host/control",
            "host/graph",
            "host/operator",
            "host/operators",
            "host/connectors",
            "host/wasm",
            "host/state",
            "host/state-rocksdb",
            "host/snapshot",
            "host/storage",
            "host/net",
            "host/task",
            "host/protocol",
            "host/types",
        ],
    ),
    (
        "host/coordinator",
        &[
            "host/control",
            "host/graph",
            "host/net",
            "host/storage",
            "host/task",
            "host/types",
            "host/wasm",
            "host/worker",
        ],
    ),
    ("cli/guest-build", &[]),
    ("cli", EVERYTHING),
    ("tests/bench", EVERYTHING),
    ("tests/costs", EVERYTHING),
    ("tests/tidy", EVERYTHING),
    ("tests/xtask", EVERYTHING),
];

const EVERYTHING: &[&str] = &[""];

/// Crates of others, with those that come with them, that only one of ours may name.
const NAMED_BY_ONE: &[(&str, &str)] = &[
    ("wasmtime", "host/wasm"),
    ("cranelift", "host/wasm"),
    ("quinn", "host/net"),
    ("rcgen", "host/net"),
    ("rocksdb", "host/state-rocksdb"),
    ("librocksdb", "host/state-rocksdb"),
    ("object_store", "host/storage"),
];

/// Crates that decide and do not act.
const PURE: &[&str] = &[
    "millstream-types",
    "millstream-graph",
    "millstream-protocol",
    "millstream-state",
    "millstream-snapshot",
];

/// What acts: runtimes and what they stand on.
const RUNTIMES: &[&str] = &[
    "tokio",
    "mio",
    "socket2",
    "async-std",
    "smol",
    "async-executor",
    "async-io",
    "futures-executor",
    "rayon",
];

#[derive(Debug)]
struct Crate {
    folder: String,
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug)]
struct Dependency {
    name: String,
    /// For one of ours.
    folder: Option<String>,
    only_tests: bool,
}

#[test]
fn crates_use_only_those_below_them() {
    let crates = workspace(&Repository::open());
    let rules: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut problems = Vec::new();
    for Crate { folder, dependencies, .. } in &crates {
        match rules.get(folder.as_str()) {
            None => problems.push(format!("{folder} has no row in MAY_USE: say what it may use")),
            Some(allowed) => problems.extend(forbidden(folder, dependencies, allowed, &rules)),
        }
    }
    let gone = rules.keys().filter(|folder| crates.iter().all(|krate| krate.folder != **folder));
    problems
        .extend(gone.map(|folder| format!("{folder} has a row in MAY_USE but is no crate of the workspace")));
    report("dependencies between crates", &problems);
}

#[test]
fn crates_that_one_may_name_are_named_by_that_one() {
    let mut problems = Vec::new();
    for Crate { folder, dependencies, .. } in workspace(&Repository::open()) {
        for Dependency { name, .. } in &dependencies {
            let owner = NAMED_BY_ONE.iter().find(|(family, _)| belongs_to(name, family));
            if let Some((_, owner)) = owner.filter(|(_, owner)| *owner != folder) {
                problems.push(format!("{folder} depends on {name}, which only {owner} may name"));
            }
        }
    }
    report("dependencies behind a boundary", &problems);
}

#[test]
fn pure_crates_reach_no_runtime() {
    let repository = Repository::open();
    let names: BTreeSet<String> = workspace(&repository).into_iter().map(|krate| krate.name).collect();
    let mut problems = Vec::new();
    for pure in PURE {
        assert!(names.contains(*pure), "{pure} is in PURE but is no crate of the workspace");
        let tree = repository.cargo(&["tree", "--package", pure, "--edges", "normal", "--prefix", "none"]);
        let reached: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        let reached = RUNTIMES.iter().filter(|runtime| reached.contains(**runtime));
        problems.extend(reached.map(|runtime| {
            format!("{pure} reaches {runtime}: `cargo tree --package {pure} --edges normal --invert {runtime}` shows how")
        }));
    }
    report("pure crates", &problems);
}

#[test]
fn guests_use_nothing_of_the_host() {
    let repository = Repository::open();
    let mut problems = Vec::new();
    for (manifest, text) in repository.texts("Cargo.toml").filter(|(path, _)| is_guest(path)) {
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{manifest}: {error}"));
        let folder = Path::new(manifest).parent().unwrap_or(Path::new(""));
        let mut paths = Vec::new();
        dependency_paths(&table, false, &mut paths);
        let used = paths.iter().map(|path| normalized(&folder.join(path)));
        let host = used.filter(|path| !is_guest(path));
        problems.extend(host.map(|path| format!("{manifest} depends on {path}")));
    }
    report("guests see the host only through wit/", &problems);
}

/// What a crate uses and may not. Its tests may also use what those that it may use may use.
fn forbidden(
    folder: &str,
    dependencies: &[Dependency],
    allowed: &[&str],
    rules: &BTreeMap<&str, &[&str]>,
) -> Vec<String> {
    let below: BTreeSet<&str> =
        allowed.iter().filter_map(|used| rules.get(used)).flat_map(|used| used.iter().copied()).collect();
    let ours = dependencies.iter().filter_map(|dependency| Some((dependency.folder.as_deref()?, dependency)));
    let may = |used: &&str, dependency: &Dependency| {
        allowed == EVERYTHING || allowed.contains(used) || dependency.only_tests && below.contains(used)
    };
    let refused = ours.filter(|(used, dependency)| !may(used, dependency));
    refused.map(|(used, _)| format!("{folder} uses {used}; it may use {allowed:?}")).collect()
}

/// The crates of the root's workspace.
fn workspace(repository: &Repository) -> Vec<Crate> {
    let metadata = repository.cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Value = serde_json::from_str(&metadata).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    let folder = |path: &Value| {
        let path = Path::new(path.as_str()?).strip_prefix(repository.root()).ok()?;
        Some(path.to_string_lossy().replace('\\', "/"))
    };
    let dependency = |dependency: &Value| Dependency {
        name: dependency["name"].as_str().unwrap_or_default().to_owned(),
        folder: folder(&dependency["path"]),
        only_tests: dependency["kind"] == "dev",
    };
    let krate = |package: &Value| Crate {
        folder: folder(&package["manifest_path"])
            .unwrap_or_default()
            .trim_end_matches("/Cargo.toml")
            .to_owned(),
        name: package["name"].as_str().unwrap_or_default().to_owned(),
        dependencies: package["dependencies"].as_array().into_iter().flatten().map(dependency).collect(),
    };
    packages.iter().map(krate).collect()
}

/// `wasmtime-wasi` belongs to `wasmtime`.
fn belongs_to(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

fn is_guest(path: &str) -> bool {
    ["guest-sdk/", "examples/", "tests/guests/"].iter().any(|folder| path.starts_with(folder))
}

/// The paths in a manifest's tables of dependencies.
fn dependency_paths(table: &toml::Table, in_dependencies: bool, paths: &mut Vec<String>) {
    for (key, value) in table {
        match value {
            toml::Value::String(path) if in_dependencies && key == "path" => paths.push(path.clone()),
            toml::Value::Table(inner) => {
                dependency_paths(inner, in_dependencies || key.ends_with("dependencies"), paths);
            }
            _ => {}
        }
    }
}

#[test]
fn a_dependency_upwards_or_aside_is_found() {
    let rules: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("types", &[] as &[&str]),
        ("state", &["types"]),
        ("operator", &["state"]),
        ("wasm", &["operator"]),
    ]);
    let uses = |folder: &str, used: &str, only_tests| {
        let dependency = Dependency { name: String::new(), folder: Some(used.to_owned()), only_tests };
        forbidden(folder, &[dependency], rules[folder], &rules).len()
    };
    assert_eq!(uses("operator", "state", false), 0);
    assert_eq!(uses("operator", "types", false), 1);
    assert_eq!(uses("operator", "types", true), 0, "a dependency of a dependency is near enough for tests");
    assert_eq!(uses("operator", "wasm", true), 1);
    assert!(
        belongs_to("quinn-proto", "quinn")
            && belongs_to("quinn", "quinn")
            && !belongs_to("quinnine", "quinn")
    );
}

#[test]
fn a_path_out_of_the_guests_is_found() {
    let manifest = "path = 'x'\n[workspace.dependencies]\na = { path = '../../host/types' }\n[dependencies.b]\npath = '../sdk'";
    let mut paths = Vec::new();
    dependency_paths(&manifest.parse().expect("valid"), false, &mut paths);
    let paths: BTreeSet<String> =
        paths.iter().map(|path| normalized(&Path::new("guest-sdk/rust").join(path))).collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["guest-sdk/sdk", "host/types"]);
}

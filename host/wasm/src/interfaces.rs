//! What a component exports and imports, checked against what this host calls and serves.

use std::collections::BTreeMap;

use millstream_types::FunctionKind;
use wasmtime::{Engine, component::Component};

/// The package whose interfaces are called and served.
pub(crate) const PACKAGE: &str = "millstream:function";
/// The version of them.
pub(crate) const VERSION: &str = "0.1.0";

/// The interfaces of [`PACKAGE`] that a component exports.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces {
    /// Interface to the full name of its export.
    exports: BTreeMap<String, String>,
}

impl Interfaces {
    /// Reads the exports of a component and refuses what this host cannot run. `served` says whether an import is
    /// there for a component.
    pub(crate) fn of(
        engine: &Engine,
        component: &Component,
        served: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let shape = component.component_type();
        let refused: Vec<&str> =
            shape.imports(engine).map(|(name, _)| name).filter(|name| !served(name)).collect();
        if let Some(first) = refused.first() {
            return Err(refusal(first, &refused));
        }
        let names: Vec<&str> = shape.exports(engine).map(|(name, _)| name).collect();
        let mut exports = BTreeMap::new();
        for name in &names {
            if let Some((interface, version)) = split(name) {
                if !is_served(version) {
                    return Err(format!("exports {name}; this host serves {VERSION}: {}", advice(version)));
                }
                exports.insert(interface.to_owned(), (*name).to_owned());
            }
        }
        if !exports.contains_key("manifest") {
            let found = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            return Err(format!("does not export {PACKAGE}/manifest@{VERSION}, it exports {found}"));
        }
        Ok(Self { exports })
    }

    /// The full name of the export of an interface.
    pub(crate) fn export(&self, interface: &str) -> Option<&str> {
        self.exports.get(interface).map(String::as_str)
    }

    /// The full name of the export behind which functions of a kind stand, or what is missing.
    pub(crate) fn for_kind(&self, kind: FunctionKind) -> Result<&str, String> {
        let interface = interface_of(kind);
        self.export(interface).ok_or_else(|| {
            let found = self.exports.values().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("the module does not export {PACKAGE}/{interface}@{VERSION}, it exports {found}")
        })
    }
}

/// The interface behind which functions of a kind stand.
pub(crate) fn interface_of(kind: FunctionKind) -> &'static str {
    match kind {
        FunctionKind::Map => "map-function",
        FunctionKind::Process => "process-function",
        FunctionKind::Aggregate => "aggregate-function",
        FunctionKind::Window => "window-function",
        FunctionKind::Async => "async-function",
    }
}

/// `millstream:function/map-function@0.1.0` as `map-function` and `0.1.0`.
pub(crate) fn split(name: &str) -> Option<(&str, &str)> {
    let interface = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    Some(interface.split_once('@').unwrap_or((interface, "")))
}

/// Whether an interface of a version is one that this host knows: patch releases of a version are.
pub(crate) fn is_served(version: &str) -> bool {
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    minor(version) == minor(VERSION)
}

fn refusal(first: &str, all: &[&str]) -> String {
    if let Some((_, version)) = split(first) {
        return format!("imports {first}; this host serves {VERSION}: {}", advice(version));
    }
    format!("imports {}, not granted: {}", all.join(", "), grant(first))
}

/// What it would take to grant an import.
fn grant(import: &str) -> &'static str {
    let package =
        import.strip_prefix("wasi:").and_then(|name| name.split_once('/')).map(|(package, _)| package);
    match package {
        Some("sockets") => {
            "functions have no sockets, and no `allow` grants them: read from a source and write to a sink"
        }
        Some("http") => {
            "it takes `allow = [\"http:HOST\"]`, which this version does not have yet: read from a source and \
             write to a sink"
        }
        Some(_) if !import.contains("@0.2.") => "this host serves WASI 0.2",
        Some(_) => {
            "of WASI there are clocks, random numbers, standard output and error (to the log), and variables by \
             `allow = [\"env:NAME\"]`: build the component without the rest"
        }
        None => "this host serves the interfaces of millstream:function and some of WASI 0.2",
    }
}

fn advice(version: &str) -> &'static str {
    let key = |v: &str| v.split('.').map(|n| n.parse().unwrap_or(0)).collect::<Vec<u32>>();
    if key(version) > key(VERSION) { "use a newer host or an older SDK" } else { "build it with a newer SDK" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions() {
        assert_eq!(split("millstream:function/timers@0.1.0"), Some(("timers", "0.1.0")));
        assert_eq!(split("millstream:function/timers"), Some(("timers", "")));
        assert_eq!(split("wasi:io/poll@0.2.0"), None);
        assert!(is_served("0.1.0") && is_served("0.1.7"));
        assert!(!is_served("0.2.0") && !is_served("1.1.0") && !is_served("") && !is_served("0.10.0"));
    }
}

//! What a module says of itself, for people and for programs.

use millstream_types::{Carry, Column, Function, FunctionKind, Input, Manifest, Output, State, StateKind};
use serde::Serialize;

use super::Built;

/// The result of `build` as a document.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Document<'a> {
    path: String,
    /// Bytes.
    size: usize,
    /// Whether nothing had changed since the last build.
    fresh: bool,
    /// The interfaces that it needs from the host.
    imports: &'a [String],
    #[serde(flatten)]
    manifest: &'a Manifest,
}

pub(super) fn document(built: &Built) -> Document<'_> {
    Document {
        path: built.path.display().to_string(),
        size: built.size,
        fresh: built.fresh,
        imports: &built.imports,
        manifest: &built.manifest,
    }
}

/// The same as text: the module, then its functions.
pub(super) fn text(built: &Built) -> String {
    let module = &built.manifest.module;
    let mut lines =
        vec![format!("{} {}  {}  {}", module.name, module.version, size(built.size), built.path.display())];
    for function in &built.manifest.functions {
        lines.push(String::new());
        lines.push(format!("{}  {}  {}", function.name, kind(function.kind), sentence(&function.doc)));
        let facts = facts(function);
        let width = facts.iter().map(|(what, _)| what.len()).max().unwrap_or_default();
        lines.extend(facts.into_iter().map(|(what, text)| format!("  {what:width$}  {text}")));
    }
    lines.join("\n")
}

/// What a function takes, makes and keeps: a word and what is said of it.
fn facts(function: &Function) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let fact = |what: &str, text: String| (what.to_owned(), text);
    for parameter in &function.parameters {
        let default =
            parameter.default.as_ref().map_or("required".to_owned(), |default| format!("= {default}"));
        facts.push(fact("parameter", format!("{} {} {default}", parameter.name, parameter.data_type)));
    }
    if !function.key.is_empty() {
        facts.push(fact("key", columns(&function.key)));
    }
    facts.extend(function.inputs.iter().map(|input| (port("input", &input.name), reads(input))));
    facts.extend(
        function.outputs.iter().map(|output| (port("output", &output.name), makes(output, function.kind))),
    );
    facts.extend(function.states.iter().map(|state| fact("state", keeps(state))));
    facts.extend(function.accumulator.iter().map(|kept| fact("accumulator", columns(&kept.columns))));
    facts
}

/// A port's word, with its name where that says more.
fn port(word: &str, name: &str) -> String {
    if word == name { word.to_owned() } else { format!("{word} {name}") }
}

fn reads(input: &Input) -> String {
    let times = if input.times { " and event times" } else { "" };
    format!("{}{times}", columns(&input.columns))
}

fn makes(output: &Output, kind: FunctionKind) -> String {
    let carried = match (output.carry, kind) {
        (Carry::Replace, _) => return columns(&output.columns),
        (Carry::Extend, FunctionKind::Aggregate | FunctionKind::Window) => "the key",
        (Carry::Extend, _) => "all columns of the input",
    };
    if output.columns.is_empty() {
        carried.to_owned()
    } else {
        format!("{} and {carried}", columns(&output.columns))
    }
}

fn keeps(state: &State) -> String {
    let kind = match state.kind {
        StateKind::Value => "value",
        StateKind::List => "list",
        StateKind::Map => "map",
        StateKind::Broadcast => "broadcast map",
        StateKind::Operator => "list of the subtask",
    };
    format!("{} {kind} of {} (version {})", state.name, columns(&state.columns), state.version)
}

fn columns(columns: &[Column]) -> String {
    match columns {
        [] => "nothing".to_owned(),
        columns => columns.iter().map(|column| column.to_field().to_string()).collect::<Vec<_>>().join(", "),
    }
}

pub(crate) fn kind(kind: FunctionKind) -> &'static str {
    match kind {
        FunctionKind::Map => "map",
        FunctionKind::Process => "process",
        FunctionKind::Aggregate => "aggregate",
        FunctionKind::Window => "window",
        FunctionKind::Async => "async",
    }
}

/// The first sentence of a comment.
fn sentence(doc: &str) -> &str {
    let line = doc.lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(first, _)| first)
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{"manifest":1,"module":{"name":"sensors","version":"0.1.0"},"functions":[{
        "name":"silence","kind":"process","doc":"Says when a sensor is silent. And more.",
        "parameters":[{"name":"minutes","type":"int64","default":"15"},{"name":"zone","type":"utf8"}],
        "key":[{"name":"sensor","type":"utf8"}],
        "inputs":[{"name":"input","columns":[{"name":"time","type":"timestamp"}],"times":true}],
        "outputs":[{"name":"silent","columns":[{"name":"since","type":"timestamp","nullable":true}],"carry":"extend"}],
        "states":[{"name":"last","kind":"value","columns":[{"name":"value","type":"timestamp"}]}]}]}"#;

    #[test]
    fn a_module_is_described_by_what_its_functions_take_make_and_keep() {
        let manifest = Manifest::parse(MANIFEST).expect("a good manifest");
        let built = Built {
            manifest,
            path: "target/millstream/sensors.wasm".into(),
            size: 23_456,
            imports: Vec::new(),
            fresh: false,
        };
        let expected = "\
sensors 0.1.0  23.5 kB  target/millstream/sensors.wasm

silence  process  Says when a sensor is silent
  parameter      minutes int64 = 15
  parameter      zone utf8 required
  key            sensor utf8
  input          time timestamp and event times
  output silent  since timestamp? and all columns of the input
  state          last value of value timestamp (version 1)";
        assert_eq!(text(&built), expected);
        let document = serde_json::to_value(document(&built)).expect("a document");
        assert_eq!((&document["size"], &document["module"]["name"]), (&23_456.into(), &"sensors".into()));
        assert_eq!(document["functions"][0]["name"], "silence");
    }
}

//! The job that a fixture of a function stands for: a source of the columns that the function reads, the function, and
//! a sink for each of its outputs. Only its plan is used: rows come from the fixture and go back to it.

use std::path::Path;

use millstream_types::{Column, DataType, Field, Function, FunctionKind, Manifest};
use serde_json::{Map, Value, json};

use super::fixture::FunctionHeader;

/// The column with the event times that stand beside rows, where a plan asks for one. No column of a function has such
/// a name.
pub(super) const TIME_COLUMN: &str = "@time";

/// Names of the job's nodes.
pub(super) const SOURCE: &str = "input";
const OPERATOR: &str = "function";
const MODULE: &str = "module";

/// A sink of the job is named after the port that it reads.
pub(super) const MAIN_SINK: &str = "output";
pub(super) const LATE_SINK: &str = "late";
pub(super) const REJECTED_SINK: &str = "dead-letter";

/// The function of a header; the error names those that there are.
pub(super) fn function<'a>(header: &FunctionHeader, manifest: &'a Manifest) -> Result<&'a Function, String> {
    // `module.function` is what a job file has.
    let name =
        header.function.strip_prefix(&format!("{}.", manifest.module.name)).unwrap_or(&header.function);
    manifest.function(name).ok_or_else(|| {
        let names = manifest.functions.iter().map(|f| format!("`{}`", f.name)).collect::<Vec<_>>().join(", ");
        let module = &manifest.module.name;
        format!("found the function `{}`, expected one of the module `{module}`: {names}", header.function)
    })
}

/// The job as a document. `module` is the absolute path of the module.
pub(super) fn document(header: &FunctionHeader, function: &Function, module: &Path) -> Result<Value, String> {
    let mut schema = schema(header, function)?;
    let mut time = header.time.as_deref();
    // Only a plan that has to have a time column gets this one: a function that extends its rows would carry it.
    if time.is_none() && (has_late_rows(header, function) || schema.is_empty()) {
        schema.insert(TIME_COLUMN.to_owned(), "timestamp".into());
        time = Some(TIME_COLUMN);
    }
    let mut operator = json!({
        "function": format!("{MODULE}.{}", function.name),
        "input": SOURCE,
        "on-error": "dead-letter",
        "columns": header.columns,
        "parameters": header.parameters,
    });
    let optional = [
        ("key", header.key.as_ref().map(|key| json!(key))),
        ("window", header.window.clone()),
        ("limits", header.limits.clone()),
        ("allow", header.allow.clone()),
        ("on-null", header.on_null.clone()),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            operator[key] = value;
        }
    }
    let mut sinks = Map::new();
    for (name, stream) in outputs(header, function) {
        sinks.insert(name, json!({ "connector": "blackhole", "input": stream }));
    }
    let mut source = json!({ "connector": "file", "path": "fixture", "format": "jsonl", "schema": schema });
    if let Some(column) = time {
        source["time"] = json!({ "column": column });
    }
    Ok(json!({
        "job": { "name": "fixture" },
        "module": { MODULE: { "path": module } },
        "source": { SOURCE: source },
        "operator": { OPERATOR: operator },
        "sink": sinks,
    }))
}

/// Sinks by name, with what they read.
fn outputs(header: &FunctionHeader, function: &Function) -> Vec<(String, String)> {
    let sides = function.outputs.iter().skip(1).map(|port| port.name.clone());
    let late = has_late_rows(header, function).then(|| LATE_SINK.to_owned());
    let named = sides.chain(late).chain([REJECTED_SINK.to_owned()]);
    let named = named.map(|port| (port.clone(), format!("{OPERATOR}.{port}")));
    [(MAIN_SINK.to_owned(), OPERATOR.to_owned())].into_iter().chain(named).collect()
}

/// Whether rows may come too late: only for windows by event time.
fn has_late_rows(header: &FunctionHeader, function: &Function) -> bool {
    let processing = header.window.as_ref().is_some_and(|window| window["clock"] == "processing");
    matches!(function.kind, FunctionKind::Aggregate | FunctionKind::Window) && !processing
}

/// Whether every row needs an event time.
pub(super) fn needs_times(header: &FunctionHeader, function: &Function) -> bool {
    has_late_rows(header, function) || function.inputs.iter().any(|input| input.times)
}

/// The columns of the rows: those of the header, those of the key and those that the function reads, under the names
/// that they have in the stream.
fn schema(header: &FunctionHeader, function: &Function) -> Result<Map<String, Value>, String> {
    let mut schema = header.schema.clone();
    let mut add = |name: &str, column: &Column| {
        schema.entry(name).or_insert_with(|| type_of(&column.to_field()));
    };
    let key = header.key.iter().flatten().zip(&function.key);
    key.for_each(|(name, column)| add(name, column));
    for column in function.inputs.iter().flat_map(|input| &input.columns) {
        let bound = header.columns.get(&column.name).and_then(Value::as_str);
        add(bound.unwrap_or(&column.name), column);
    }
    if let Some(time) = &header.time {
        schema.entry(time).or_insert_with(|| DataType::Timestamp.to_string().into());
    }
    let unknown = header.key.iter().flatten().find(|name| !schema.contains_key(*name));
    unknown.map_or(Ok(schema), |name| {
        Err(format!(
            "the function does not read the key column `{name}`, so its type is not known: add it, as in \
             \"schema\":{{\"{name}\":\"utf8\"}}"
        ))
    })
}

fn type_of(field: &Field) -> Value {
    let null = if field.nullable { "?" } else { "" };
    format!("{}{null}", field.data_type).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::test::fixture::{Fixture, Header};

    const MANIFEST: &str = r#"{"manifest":1,"module":{"name":"m"},"functions":[
        {"name":"mean","kind":"aggregate","key":[{"name":"sensor","type":"utf8"}],
         "inputs":[{"name":"input","columns":[{"name":"celsius","type":"float64","nullable":true}]}],
         "outputs":[{"name":"output","columns":[]},{"name":"cold","columns":[]}],
         "accumulator":{"columns":[]}}]}"#;

    fn header(text: &str) -> FunctionHeader {
        match Fixture::parse(Path::new("f.jsonl"), &format!("{text}\n{{\"end\":true}}"))
            .expect("a header")
            .header
        {
            Header::Function(header) => *header,
            Header::Job(_) => panic!("a job"),
        }
    }

    fn document_of(text: &str) -> Result<Value, String> {
        let manifest = Manifest::parse(MANIFEST).expect("a manifest");
        let header = header(text);
        document(&header, function(&header, &manifest)?, Path::new("/m.wasm"))
    }

    #[test]
    fn rows_have_the_columns_of_key_and_function_and_those_that_the_header_adds() {
        let text = r#"{"function":"m.mean","key":["name"],"columns":{"celsius":"t"},"window":{"tumbling":"1m"},
            "schema":{"extra":"int64"}}"#;
        let job = document_of(&text.replace('\n', "")).expect("a job");
        let schema = json!({"extra": "int64", "name": "utf8", "t": "float64?", "@time": "timestamp"});
        assert_eq!(job["source"]["input"]["schema"], schema);
        assert_eq!(job["operator"]["function"]["key"], json!(["name"]));
        let sinks: Vec<_> = job["sink"].as_object().expect("a table").keys().cloned().collect();
        assert_eq!(sinks, ["output", "cold", "late", "dead-letter"]);
    }

    #[test]
    fn what_cannot_be_known_is_asked_for() {
        let error = document_of(r#"{"function":"means"}"#).expect_err("no such function");
        assert_eq!(error, "found the function `means`, expected one of the module `m`: `mean`");
        let error =
            document_of(r#"{"function":"mean","key":["a","b"]}"#).expect_err("one key column is declared");
        assert!(
            error.contains("the key column `b`") && error.contains("\"schema\":{\"b\":\"utf8\"}"),
            "{error}"
        );
    }
}

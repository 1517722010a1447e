//! A job to spoil, the modules and connectors that it uses, and one way to look at what comes of it.

use std::{path::Path, sync::Arc};

use expect_test::Expect;
use millstream_graph::{
    ConnectorCatalog, ConnectorProblem, JobFile, JobFormat, ModuleResolver, Options, Plan, PlanError,
    SourceText,
};
use millstream_types::{DataType, Field, Manifest, Schema};

/// A job with nothing wrong in it.
pub(crate) const JOB: &str = r#"[job]
name = "rides"
parallelism = 2

[module.m]
path = "m.wasm"

[source.trips]
connector = "memory"
schema = { at = "timestamp", city = "utf8", line = "int32", fare = "float64?", rides = "int32" }
time = { column = "at", out-of-orderness = "10s" }

[operator.known]
function = "m.known"
input = "trips"

[operator.stats]
function = "m.stats"
input = "known"
key = ["city"]
window = { tumbling = "1h", start = "hour" }

[sink.out]
connector = "memory"
input = "stats"
"#;

/// The module `m`: a function of each kind.
const FUNCTIONS: &str = include_str!("functions.json");

/// `JOB` with each `from` replaced by its `to`.
pub(crate) fn edited(edits: &[(&str, &str)]) -> String {
    edits.iter().fold(JOB.to_owned(), |job, (from, to)| {
        assert!(job.contains(from), "the job has no {from}");
        job.replace(from, to)
    })
}

pub(crate) fn plan(job: &str) -> Result<Plan, PlanError> {
    plan_of(job, JobFormat::Toml)
}

pub(crate) fn plan_of(job: &str, format: JobFormat) -> Result<Plan, PlanError> {
    let variables = |name: &str| ["TWO", "A"].contains(&name).then(|| "2".to_owned());
    let file = JobFile::read(SourceText::new("jobs/job.toml", job), format, &variables);
    Plan::new(file, &modules, &Memory)
}

/// The errors of a job, or its warnings and plan if it has none.
pub(crate) fn check(job: &str, expected: Expect) {
    let text = match plan(job) {
        Ok(plan) => format!("accepted\n{}{}", plan.warnings.render(false), plan.describe()),
        Err(error) => format!("refused\n{}", error.0.render(false)),
    };
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    expected.assert_eq(&(lines.join("\n") + "\n"));
}

/// The errors of `JOB` with replacements.
pub(crate) fn check_edited(edits: &[(&str, &str)], expected: Expect) {
    check(&edited(edits), expected);
}

fn modules(path: &Path) -> Result<Arc<Manifest>, String> {
    let text = match path.to_str() {
        Some("jobs/m.wasm" | "jobs/other.wasm") => FUNCTIONS,
        _ => return Err(format!("there is no file {}", path.display())),
    };
    Manifest::parse(text).map(Arc::new).map_err(|e| e.to_string())
}

/// The resolver has to be one for closures too.
#[test]
fn closures_resolve_modules() {
    let resolver: &dyn ModuleResolver = &|_: &Path| Err("nothing here".to_owned());
    assert_eq!(resolver.resolve(Path::new("m.wasm")), Err("nothing here".to_owned()));
}

/// Connectors that take the option `rows`, and `two`, a source with the ports `left` and `right`.
pub(crate) struct Memory;

impl ConnectorCatalog for Memory {
    fn sources(&self) -> Vec<&str> {
        vec!["memory", "two"]
    }

    fn sinks(&self) -> Vec<&str> {
        vec!["memory", "narrow"]
    }

    fn source_outputs(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<Vec<(String, Schema)>, Vec<ConnectorProblem>> {
        check_options(options)?;
        if connector == "two" {
            let left = Schema::new(vec![Field::new("at", DataType::Int64), Field::new("x", DataType::Int32)]);
            let right =
                Schema::new(vec![Field::nullable("at", DataType::Int64), Field::new("x", DataType::Int32)]);
            return Ok(vec![("left".to_owned(), left), ("right".to_owned(), right)]);
        }
        let schema = schema.ok_or_else(|| vec![ConnectorProblem::general("a `schema` is needed")])?;
        Ok(vec![("output".to_owned(), schema.clone())])
    }

    fn sink_accepts(
        &self,
        connector: &str,
        options: &Options,
        schema: Option<&Schema>,
    ) -> Result<(), Vec<ConnectorProblem>> {
        check_options(options)?;
        match schema {
            Some(schema) if connector == "narrow" && schema.len() > 1 => {
                let message = format!("expected one column, found {}", schema.names());
                Err(vec![ConnectorProblem::at("connector", message)])
            }
            _ => Ok(()),
        }
    }
}

fn check_options(options: &Options) -> Result<(), Vec<ConnectorProblem>> {
    let problem = |(key, value): (&String, &serde_json::Value)| match (key.as_str(), value) {
        ("rows", serde_json::Value::Number(_)) => None,
        ("rows", _) => Some(ConnectorProblem::at("rows", "expected a number")),
        ("format", serde_json::Value::Object(o)) if o.contains_key("csv") => {
            Some(ConnectorProblem::at("format.csv.nul", "there is no option `nul`: did you mean `null`?"))
        }
        ("format", _) => None,
        _ => Some(ConnectorProblem::at(key.as_str(), format!("there is no option `{key}`"))),
    };
    let problems: Vec<_> = options.iter().filter_map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

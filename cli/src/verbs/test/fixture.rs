//! A fixture: what goes into a function or a job, and what is expected to come out.
//!
//! It is a file of JSON lines. Empty lines and lines that begin with `#` are for the reader. The first line says what
//! is tested, either a function or a job:
//!
//! ```json
//! {"function":"average","key":["sensor"],"window":{"tumbling":"10m"}}
//! {"job":"../job.toml"}
//! ```
//!
//! The others are inputs and, below what causes them, expectations. They fall into steps: an input begins a new one
//! behind an expectation and behind an empty line. All that comes out in a step has to be expected in it, in the order in
//! which it comes to each output. Rows of a step that stand together, without another input between them, go in as one batch.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::line::{Expectation, Input, Line, Time, object, without_place};

/// A fixture that has been read.
#[derive(Clone, Debug)]
pub(super) struct Fixture {
    pub(super) path: PathBuf,
    /// The file's lines.
    pub(super) lines: Vec<String>,
    pub(super) header: Header,
    pub(super) steps: Vec<Step>,
}

/// What is tested.
#[derive(Clone, Debug)]
pub(super) enum Header {
    Function(Box<FunctionHeader>),
    Job(JobHeader),
}

/// A function by itself. What it does not say is as in the `[operator]` table of a job file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FunctionHeader {
    /// Its name in the module.
    pub(super) function: String,
    /// The module's file, from the fixture's folder; the one that the crate around the fixture makes if there is none.
    pub(super) module: Option<PathBuf>,
    /// Columns of the rows beyond those that the function reads, or of other types.
    #[serde(default)]
    pub(super) schema: Map<String, Value>,
    #[serde(default)]
    pub(super) columns: Map<String, Value>,
    pub(super) key: Option<Vec<String>>,
    pub(super) window: Option<Value>,
    #[serde(default)]
    pub(super) parameters: Map<String, Value>,
    pub(super) limits: Option<Value>,
    pub(super) allow: Option<Value>,
    pub(super) on_null: Option<Value>,
    /// The column with a row's event time; without one it stands beside the row.
    pub(super) time: Option<String>,
    /// Processing time at the beginning; else it is that of the epoch.
    processing_time: Option<Time>,
    /// Whether the event times of what comes out are compared.
    #[serde(default)]
    times: bool,
}

/// A whole job, whose sources and sinks are played by the fixture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct JobHeader {
    /// The job file, from the fixture's folder.
    pub(super) job: PathBuf,
    /// Processing time at the beginning; else it is that of the epoch.
    processing_time: Option<Time>,
    /// Whether the event times of what comes out are compared.
    #[serde(default)]
    times: bool,
}

/// Some inputs, then what is expected of them; each with the position of its line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    pub(super) inputs: Vec<(usize, Input)>,
    pub(super) expected: Vec<(usize, Expectation)>,
}

/// A fixture that is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {problem}", path.display())]
pub(super) struct FixtureError {
    pub(super) path: PathBuf,
    /// From 1.
    pub(super) line: usize,
    /// What was found and what was expected.
    pub(super) problem: String,
}

impl Fixture {
    /// Reads the text of the file at `path`.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, FixtureError> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let error = |line: usize, problem| FixtureError { path: path.to_owned(), line: line + 1, problem };
        let Some(first) = lines.iter().position(|line| !is_for_the_reader(line)) else {
            return Err(error(0, format!("found no line, expected {HEADER}")));
        };
        let header = Header::parse(&lines[first]).map_err(|problem| error(first, problem))?;
        let mut steps = Steps::default();
        for (at, line) in lines.iter().enumerate().skip(first + 1) {
            steps.add(at, line).map_err(|problem| error(at, problem))?;
        }
        let steps = steps.steps;
        if steps.is_empty() {
            return Err(error(
                first,
                "found no line behind this one, expected some such as {\"row\":{\"x\":1}}".to_owned(),
            ));
        }
        Ok(Self { path: path.to_owned(), lines, header, steps })
    }

    /// Something is wrong with a line.
    pub(super) fn error(&self, line: usize, problem: impl Into<String>) -> FixtureError {
        FixtureError { path: self.path.clone(), line: line + 1, problem: problem.into() }
    }

    /// The position of the first line.
    pub(super) fn header_line(&self) -> usize {
        self.lines.iter().position(|line| !is_for_the_reader(line)).unwrap_or_default()
    }

    /// Whether the module of the crate around the fixture is needed: that of a job may be.
    pub(super) fn needs_crate(&self) -> bool {
        match &self.header {
            Header::Function(header) => header.module.is_none(),
            Header::Job(_) => true,
        }
    }

    /// A path that the fixture names, which begins at its folder.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

impl Header {
    fn parse(text: &str) -> Result<Self, String> {
        let found = object(text)?;
        let parsed = match (found.contains_key("function"), found.contains_key("job")) {
            (true, false) => serde_json::from_str(text).map(|header| Self::Function(Box::new(header))),
            (false, true) => serde_json::from_str(text).map(Self::Job),
            (true, true) => return Err("found both `function` and `job`, expected one".to_owned()),
            (false, false) => return Err(format!("found neither `function` nor `job`, expected {HEADER}")),
        };
        parsed.map_err(|error| without_place(&error))
    }

    /// Processing time at the beginning.
    pub(super) fn processing_time(&self) -> Time {
        let set = match self {
            Self::Function(header) => header.processing_time,
            Self::Job(header) => header.processing_time,
        };
        set.unwrap_or(Time(0))
    }

    /// Whether the event times of what comes out are compared.
    pub(super) fn compares_times(&self) -> bool {
        match self {
            Self::Function(header) => header.times,
            Self::Job(header) => header.times,
        }
    }
}

/// The steps so far.
#[derive(Default)]
struct Steps {
    steps: Vec<Step>,
    /// Whether an empty line came last.
    apart: bool,
}

impl Steps {
    fn add(&mut self, at: usize, text: &str) -> Result<(), String> {
        if is_for_the_reader(text) {
            self.apart |= text.trim().is_empty();
            return Ok(());
        }
        match (Line::parse(text)?, self.steps.last_mut()) {
            (Line::Input(input), Some(step)) if step.expected.is_empty() && !self.apart => {
                step.inputs.push((at, input));
            }
            (Line::Input(input), _) => {
                self.steps.push(Step { inputs: vec![(at, input)], expected: Vec::new() });
            }
            (Line::Expectation(expectation), Some(step)) => step.expected.push((at, expectation)),
            (Line::Expectation(_), None) => {
                return Err("found an expectation, expected an input that causes it before".to_owned());
            }
        }
        self.apart = false;
        Ok(())
    }
}

fn is_for_the_reader(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

const HEADER: &str = "a first line such as {\"function\":\"name\"} or {\"job\":\"job.toml\"}";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Fixture, String> {
        Fixture::parse(Path::new("tests/f.jsonl"), text).map_err(|error| error.to_string())
    }

    /// The numbers of lines by step: inputs, then expectations.
    fn steps(text: &str) -> Vec<(Vec<usize>, Vec<usize>)> {
        let numbers = |step: &Step| {
            let inputs = step.inputs.iter().map(|(at, _)| at + 1).collect();
            (inputs, step.expected.iter().map(|(at, _)| at + 1).collect())
        };
        parse(text).expect("a fixture").steps.iter().map(numbers).collect()
    }

    #[test]
    fn steps_begin_behind_expectations_and_empty_lines() {
        let text = "# about\n{\"function\":\"f\"}\n{\"row\":{}}\n# not apart\n{\"row\":{}}\n\n{\"end\":true}\n\n\
                    {\"expect\":{}}\n{\"row\":{}}\n{\"expect-rejected\":\"no\"}\n";
        assert_eq!(steps(text), [(vec![3, 5], vec![]), (vec![7], vec![9]), (vec![10], vec![11])]);
    }

    #[test]
    fn a_header_is_of_a_function_or_a_job() {
        let text = r#"{"function":"f","key":["a"],"processing-time":5,"times":true}
            {"end":true}"#;
        let fixture = parse(text).expect("a header");
        assert!(fixture.header.compares_times() && fixture.header.processing_time() == Time(5));
        let Header::Function(header) = fixture.header else { panic!("no function") };
        assert_eq!(header.key.as_deref(), Some(&["a".to_owned()][..]));
        let fixture = parse("{\"job\":\"../job.toml\"}\n{\"end\":true}").expect("a header");
        let Header::Job(header) = &fixture.header else { panic!("no job") };
        assert_eq!(fixture.resolve(&header.job), Path::new("tests/../job.toml"));
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |text: &str| parse(text).expect_err(text);
        assert_eq!(
            error("# nothing\n"),
            "tests/f.jsonl:1: found no line, expected a first line such as {\"function\":\"name\"} or \
             {\"job\":\"job.toml\"}"
        );
        assert!(error("\n{\"row\":{}}").starts_with("tests/f.jsonl:2: found neither `function` nor `job`"));
        assert!(error("{\"function\":\"f\"}").starts_with("tests/f.jsonl:1: found no line behind this one"));
        assert!(error("{\"function\":\"f\",\"keys\":[]}").contains("unknown field `keys`"));
        assert_eq!(
            error("{\"function\":\"f\"}\n{\"expect\":{}}"),
            "tests/f.jsonl:2: found an expectation, expected an input that causes it before"
        );
        assert!(error("{\"function\":\"f\"}\n\n{\"row\":1}").starts_with("tests/f.jsonl:3: `row`: "));
    }
}

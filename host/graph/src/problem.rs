//! What is wrong with a job file: each problem says what was found and what was expected, points at the places that it
//! is about, and says what to do if that is not plain.

use std::{cell::RefCell, fmt};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use serde::Serialize;

use crate::source_text::{SourceText, Span};

/// Something wrong in a job file, or something odd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether the job can run all the same.
    pub severity: Severity,
    /// What was found and what was expected.
    pub message: String,
    /// The places it is about, the main one first, each with a word about it.
    pub labels: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<String>,
}

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The job cannot run.
    Error,
    /// The job can run, but perhaps not as it was meant.
    Warning,
}

impl Problem {
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), labels: Vec::new(), help: None }
    }

    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    pub(crate) fn at(mut self, span: &Span, label: impl Into<String>) -> Self {
        self.labels.push((span.clone(), label.into()));
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    fn position(&self) -> usize {
        self.labels.first().map_or(0, |(span, _)| span.start)
    }
}

/// Where problems are put while a job file is read and checked. Shared by readers of nested tables, hence the cell.
#[derive(Debug, Default)]
pub(crate) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(crate) fn push(&self, problem: Problem) {
        self.0.borrow_mut().push(problem);
    }

    /// The problems so far, in the order of the file: errors and warnings apart.
    pub(crate) fn into_sorted(self) -> (Vec<Problem>, Vec<Problem>) {
        let mut all = self.0.into_inner();
        all.sort_by_key(Problem::position);
        all.dedup();
        all.into_iter().partition(|p| p.severity == Severity::Error)
    }
}

/// Problems together with the text that they are about: what printers and the API need.
#[derive(Clone, Debug)]
pub struct Report {
    source: SourceText,
    problems: Vec<Problem>,
}

/// A job file that cannot run.
#[derive(Clone, Debug)]
pub struct PlanError(pub Report);

/// A [`Problem`] as the API sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemRecord {
    /// How bad it is.
    pub severity: Severity,
    /// What was found and what was expected.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The file.
    pub file: String,
    /// The line, from 1, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Report {
    pub(crate) fn new(source: SourceText, problems: Vec<Problem>) -> Self {
        Self { source, problems }
    }

    /// The problems, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// The problems with their lines quoted, for people; `color` adds escapes for terminals.
    pub fn render(&self, color: bool) -> String {
        let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_context_lines(0);
        let mut text = String::new();
        for problem in self.iter() {
            // Writing to a string does not fail, and a place outside the text is shown by miette as such.
            let _ = handler.render_report(&mut text, &problem);
        }
        text
    }

    /// The problems one by one, each able to be shown by itself.
    pub fn iter(&self) -> impl Iterator<Item = LocatedProblem<'_>> {
        self.problems.iter().map(|problem| LocatedProblem { source: &self.source, problem })
    }

    /// The problems with lines in place of byte positions.
    pub fn records(&self) -> Vec<ProblemRecord> {
        let record = |p: &Problem| {
            let place = p.labels.first().map(|(span, _)| self.source.line_and_column(span.start));
            ProblemRecord {
                severity: p.severity,
                message: p.message.clone(),
                help: p.help.clone(),
                file: self.source.path().display().to_string(),
                line: place.map(|(line, _)| line),
                column: place.map(|(_, column)| column),
            }
        };
        self.problems.iter().map(record).collect()
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, path) = (self.0.problems.len(), self.0.source.path().display());
        let errors = if count == 1 { "error" } else { "errors" };
        write!(f, "{count} {errors} in {path}")
    }
}

impl std::error::Error for PlanError {}

/// A problem with its text: a [`miette::Diagnostic`].
#[derive(Clone, Copy, Debug)]
pub struct LocatedProblem<'a> {
    source: &'a SourceText,
    problem: &'a Problem,
}

impl fmt::Display for LocatedProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for LocatedProblem<'_> {}

impl Diagnostic for LocatedProblem<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = |(span, text): &(Span, String)| {
            let text = (!text.is_empty()).then(|| text.clone());
            LabeledSpan::new(text, span.start, span.len())
        };
        Some(Box::new(self.problem.labels.iter().map(label)))
    }
}

/// Columns of a rendered report.
const WIDTH: usize = 110;

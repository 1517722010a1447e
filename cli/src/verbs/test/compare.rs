//! What was found against what is expected: whether they differ, where, and what the fixture would be with what was
//! found in the place of what was expected.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};

use super::{
    drive::{Found, FoundLine},
    fixture::{Fixture, FixtureError, Step},
    line::{Expectation, ExpectedRow},
    subject::Subject,
};

/// The end of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    /// The fixture as it is.
    old: String,
    /// The fixture as it would be without a difference.
    new: String,
    /// An error of the job that was not expected.
    pub(super) error: Option<String>,
}

impl Comparison {
    /// Compares step by step. Steps behind an error have not been run and are left as they are.
    pub(super) fn new(fixture: &Fixture, found: &[Found], subject: &Subject) -> Result<Self, FixtureError> {
        let mut rewrite = Rewrite::default();
        let mut error = None;
        for (step, found) in fixture.steps.iter().zip(found) {
            let mut wanted = wanted(fixture, step, subject)?;
            let mut lines = found.lines.clone();
            match &found.error {
                Some((cause, text)) if expects_error(step, text) => {
                    wanted.retain(|wanted| wanted.sink != ERROR);
                    nothing_follows(fixture, *cause)?;
                }
                Some((cause, text)) => {
                    error = Some(text.clone());
                    lines.push(FoundLine { cause: *cause, sink: ERROR, text: error_line(text) });
                }
                None => {}
            }
            rewrite.step(wanted, lines);
        }
        let new = rewrite.apply(&fixture.lines);
        Ok(Self { old: join(&fixture.lines), new: join(&new), error })
    }

    /// Whether nothing differs.
    pub(super) fn is_equal(&self) -> bool {
        self.old == self.new
    }

    /// The differences in the unified form, with the fixture's own line numbers.
    pub(super) fn diff(&self, path: &str) -> String {
        let diff = TextDiff::from_lines(self.old.as_str(), self.new.as_str());
        let (expected, found) = (format!("{path} (expected)"), format!("{path} (found)"));
        diff.unified_diff().context_radius(3).header(&expected, &found).to_string().trim_end().to_owned()
    }

    /// The fixture with what was found.
    pub(super) fn updated(&self) -> &str {
        &self.new
    }
}

/// An expectation: its line, the sink that it is about, and its text in the form in which it is found.
#[derive(Clone, Debug)]
struct Wanted {
    line: usize,
    sink: usize,
    text: String,
}

/// Stands for no sink but for the end of the job, behind all rows.
const ERROR: usize = usize::MAX;

fn wanted(fixture: &Fixture, step: &Step, subject: &Subject) -> Result<Vec<Wanted>, FixtureError> {
    let wanted = |(line, expectation): &(usize, Expectation)| {
        let (sink, text) = match expectation {
            Expectation::Row(row) => expected_row(row, subject),
            Expectation::Rejected(reason) => expected_rejection(reason, subject),
            // Not equal to any text: what an error says is looked for in another way.
            Expectation::Error(_) => Ok((ERROR, fixture.lines[*line].clone())),
        }
        .map_err(|problem| fixture.error(*line, problem))?;
        Ok(Wanted { line: *line, sink, text })
    };
    step.expected.iter().map(wanted).collect()
}

fn expected_row(row: &ExpectedRow, subject: &Subject) -> Result<(usize, String), String> {
    let (sink, form) = subject.form_of(row)?;
    if row.time.is_some() && !form.times {
        return Err("found a `time` to compare, which takes \"times\":true in the first line".to_owned());
    }
    Ok((sink, form.expected(row)))
}

fn expected_rejection(reason: &str, subject: &Subject) -> Result<(usize, String), String> {
    let sink = subject.rejected().ok_or(
        "found `expect-rejected`, which is for functions: in a job expect such a row at the sink that reads the \
         operator's `dead-letter`",
    )?;
    Ok((sink, json!({ "expect-rejected": reason }).to_string()))
}

/// Whether the last expectation of a step is this error.
fn expects_error(step: &Step, text: &str) -> bool {
    matches!(step.expected.last(), Some((_, Expectation::Error(part))) if text.contains(part))
}

/// An expected error of the job is the end of the fixture.
fn nothing_follows(fixture: &Fixture, cause: usize) -> Result<(), FixtureError> {
    let mut inputs = fixture.steps.iter().flat_map(|step| &step.inputs);
    match inputs.find(|(line, _)| *line > cause) {
        Some((line, _)) => {
            Err(fixture.error(*line, "found an input behind the expected error, which ends the job"))
        }
        None => Ok(()),
    }
}

/// An error in one line, as a fixture would expect it.
fn error_line(text: &str) -> String {
    json!({ "expect-error": text.lines().next().unwrap_or_default() }).to_string()
}

/// Which lines go and which come.
#[derive(Default)]
struct Rewrite {
    removed: BTreeSet<usize>,
    /// By the line before which they come.
    before: BTreeMap<usize, Vec<String>>,
}

impl Rewrite {
    /// Puts the lines that were found in the place of those that were expected, or behind the inputs that caused them
    /// where none were. What is equal stays as it stands; between sinks there is no order.
    fn step(&mut self, mut wanted: Vec<Wanted>, mut found: Vec<FoundLine>) {
        wanted.sort_by_key(|wanted| wanted.sink);
        found.sort_by_key(|found| found.sink);
        let wanted_texts: Vec<&str> = wanted.iter().map(|wanted| wanted.text.as_str()).collect();
        let found_texts: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
        for op in capture_diff_slices(Algorithm::Myers, &wanted_texts, &found_texts) {
            let (_, old, new) = op.as_tag_tuple();
            if matches!(op, DiffOp::Equal { .. }) {
                continue;
            }
            self.removed.extend(wanted[old.clone()].iter().map(|wanted| wanted.line));
            // Where it would have stood: at the first line that goes, behind the last one that stays, or behind its
            // cause.
            let place = match (wanted.get(old.start), old.start.checked_sub(1).and_then(|at| wanted.get(at)))
            {
                (Some(next), _) => Some(next.line),
                (None, Some(last)) => Some(last.line + 1),
                (None, None) => None,
            };
            for FoundLine { cause, text, .. } in &found[new] {
                self.before.entry(place.unwrap_or(cause + 1)).or_default().push(text.clone());
            }
        }
    }

    fn apply(&self, lines: &[String]) -> Vec<String> {
        let mut rewritten = Vec::new();
        for at in 0..=lines.len() {
            rewritten.extend(self.before.get(&at).into_iter().flatten().cloned());
            rewritten.extend(lines.get(at).filter(|_| !self.removed.contains(&at)).cloned());
        }
        rewritten
    }
}

fn join(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rewrites a fixture of lines; those that begin with `=` are expectations of the text behind it. A text that
    /// begins with `late` is of another sink.
    fn rewrite(lines: &[&str], found_lines: &[(usize, &str)]) -> Vec<String> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let sink = |text: &str| usize::from(text.starts_with("late"));
        let wanted = lines.iter().enumerate().filter_map(|(line, text)| {
            let text = text.strip_prefix('=')?.trim().to_owned();
            Some(Wanted { line, sink: sink(&text), text })
        });
        let found = |(cause, text): &(usize, &str)| FoundLine {
            cause: *cause,
            sink: sink(text),
            text: (*text).to_owned(),
        };
        let mut rewrite = Rewrite::default();
        rewrite.step(wanted.collect(), found_lines.iter().map(found).collect());
        rewrite.apply(&lines)
    }

    #[test]
    fn what_is_equal_stays_as_it_stands() {
        let lines = ["in", "=  a", "# note", "= b"];
        assert_eq!(rewrite(&lines, &[(0, "a"), (0, "b")]), lines);
        let lines = ["in", "= late a", "= b", "= late c"];
        assert_eq!(rewrite(&lines, &[(0, "b"), (0, "late a"), (0, "late c")]), lines, "sinks have no order");
        assert_ne!(rewrite(&lines, &[(0, "b"), (0, "late c"), (0, "late a")]), lines);
    }

    #[test]
    fn what_differs_is_replaced_in_its_place() {
        assert_eq!(
            rewrite(&["in", "= a", "= b", "= c"], &[(0, "a"), (0, "x"), (0, "c")]),
            ["in", "= a", "x", "= c"]
        );
        assert_eq!(rewrite(&["in", "= a", "= b"], &[(0, "b")]), ["in", "= b"]);
        assert_eq!(rewrite(&["in", "= a"], &[(0, "a"), (0, "b")]), ["in", "= a", "b"]);
        assert_eq!(rewrite(&["in", "= b"], &[(0, "a"), (0, "b")]), ["in", "a", "= b"]);
    }

    #[test]
    fn what_was_not_expected_at_all_comes_behind_its_cause() {
        let found = [(0, "a"), (0, "b"), (2, "c")];
        assert_eq!(rewrite(&["in", "# note", "in"], &found), ["in", "a", "b", "# note", "in", "c"]);
    }
}

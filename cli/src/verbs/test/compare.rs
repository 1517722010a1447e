//! What was found against what is expected: whether they differ, where, and what the fixture would be with what was
//! found in the place of what was expected.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};

use super::{
    drive::Found,
    fixture::{Fixture, FixtureError, Step},
    line::Expectation,
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
        for (at, (step, found)) in fixture.steps.iter().zip(found).enumerate() {
            let mut wanted = wanted(fixture, step, subject)?;
            let mut lines = found.lines.clone();
            if let Some((line, text)) = &found.error {
                let later =
                    step.inputs.iter().chain(fixture.steps[at + 1..].iter().flat_map(|step| &step.inputs));
                match step.expected.last() {
                    Some((_, Expectation::Error(part))) if text.contains(part) => {
                        wanted.pop();
                        if let Some((next, _)) = later.clone().find(|(next, _)| next > line) {
                            return Err(fixture.error(
                                *next,
                                "found an input behind the expected error of the job, which \
                                                             nothing can follow",
                            ));
                        }
                    }
                    _ => {
                        error = Some(text.clone());
                        lines.push((*line, error_line(text)));
                    }
                }
            }
            rewrite.step(&wanted, &lines);
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

/// An expectation: its line, and its text in the form in which it is found.
struct Wanted {
    line: usize,
    text: String,
}

fn wanted(fixture: &Fixture, step: &Step, subject: &Subject) -> Result<Vec<Wanted>, FixtureError> {
    let text = |line: usize, expectation: &Expectation| -> Result<String, String> {
        Ok(match expectation {
            Expectation::Row(row) => {
                let form = subject.form_of(row)?;
                if row.time.is_some() && !form.times {
                    return Err(
                        "found a `time` to compare, which takes \"times\":true in the first line".to_owned()
                    );
                }
                form.expected(row)
            }
            Expectation::Rejected(_) if !subject.has_rejected_rows() => {
                return Err("found `expect-rejected`, which is for functions: in a job expect such a row at the sink \
                            that reads the operator's `dead-letter`"
                    .to_owned());
            }
            Expectation::Rejected(reason) => json!({ "expect-rejected": reason }).to_string(),
            // Not equal to any text: what an error says is looked for in another way.
            Expectation::Error(_) => fixture.lines[line].clone(),
        })
    };
    let all = step.expected.iter();
    all.map(|(line, expectation)| {
        let text = text(*line, expectation).map_err(|problem| fixture.error(*line, problem))?;
        Ok(Wanted { line: *line, text })
    })
    .collect()
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
    /// where none were. What is equal stays as it stands.
    fn step(&mut self, wanted: &[Wanted], found: &[(usize, String)]) {
        let wanted_texts: Vec<&str> = wanted.iter().map(|wanted| wanted.text.as_str()).collect();
        let found_texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
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
            for (cause, text) in &found[new] {
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

    /// Rewrites a fixture of lines; those that begin with `=` are expectations of the text behind it.
    fn rewrite(lines: &[&str], found: &[(usize, &str)]) -> Vec<String> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let wanted = lines.iter().enumerate().filter_map(|(line, text)| {
            Some(Wanted { line, text: text.strip_prefix('=')?.trim().to_owned() })
        });
        let found: Vec<_> = found.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
        let mut rewrite = Rewrite::default();
        rewrite.step(&wanted.collect::<Vec<_>>(), &found);
        rewrite.apply(&lines)
    }

    #[test]
    fn what_is_equal_stays_as_it_stands() {
        let lines = ["in", "=  a", "# note", "= b"];
        assert_eq!(rewrite(&lines, &[(0, "a"), (0, "b")]), lines);
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

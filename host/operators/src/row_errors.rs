//! What becomes of rows that a function refuses or a source cannot read: the operator's policy.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, StringViewArray, builder::StringViewBuilder};
use millstream_operator::{
    BadRow, Collector, OperatorContext, OperatorError, OperatorMetrics, Rejected, RowPolicy,
};
use millstream_types::{Batch, DataType, Field, NO_TIME, Schema};

use crate::json_row::row_json;

/// The columns of dead letters.
///
/// `position` is where the row stands in its source: its own place within the chain of the source, the range that it
/// comes from behind an exchange, and null where rows are of no one input; `row` is the row as JSON, or the text that
/// could not be read as one.
pub fn dead_letter_schema() -> Schema {
    Schema::new(vec![
        Field::new("operator", DataType::Utf8),
        Field::new("subtask", DataType::Int32),
        Field::nullable("position", DataType::Utf8),
        Field::new("reason", DataType::Utf8),
        Field::new("row", DataType::Utf8),
    ])
}

/// What an operator does with rows that cannot be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowErrorSpec {
    /// The policy: `on-error` of the job file.
    pub policy: RowPolicy,
    /// The operator's output port for dead letters, which has the columns of [`dead_letter_schema`]. Used under
    /// [`RowPolicy::DeadLetter`] only.
    pub port: usize,
}

/// Applies the policy of one operator subtask.
#[derive(Debug)]
pub struct RowErrors {
    spec: RowErrorSpec,
    schema: Schema,
    operator: String,
    subtask: i32,
    metrics: Arc<OperatorMetrics>,
}

/// A row as a dead letter holds it.
struct Letter {
    position: Option<String>,
    reason: String,
    row: String,
    time: i64,
}

impl RowErrors {
    /// The policy `spec` for the subtask of `ctx`.
    pub fn new(spec: RowErrorSpec, ctx: &OperatorContext) -> Self {
        let (operator, subtask) = (ctx.operator.to_string(), ctx.subtask.0 as i32);
        Self { spec, schema: dead_letter_schema(), operator, subtask, metrics: ctx.metrics.clone() }
    }

    /// Treats the rows `rejected` of `batch`: an error, a count, or dead letters on the port kept for them.
    pub fn refuse(
        &self,
        batch: &Batch,
        rejected: &[Rejected],
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        self.treat(rejected, out, |r| Letter {
            position: batch.positions().map(|positions| positions.of(r.row as usize)),
            reason: r.reason.clone(),
            row: row_json(batch, r.row as usize),
            time: batch.times()[r.row as usize],
        })
    }

    /// Treats pieces of input that are no rows.
    pub fn refuse_bad(&self, bad: &[BadRow], out: &mut Collector) -> Result<(), OperatorError> {
        self.treat(bad, out, |b| Letter {
            position: Some(b.position.clone()),
            reason: b.reason.clone(),
            row: b.text.clone(),
            time: NO_TIME,
        })
    }

    fn treat<T>(
        &self,
        refused: &[T],
        out: &mut Collector,
        letter: impl Fn(&T) -> Letter,
    ) -> Result<(), OperatorError> {
        let Some(first) = refused.first() else { return Ok(()) };
        OperatorMetrics::add(&self.metrics.rejected, refused.len() as u64);
        match self.spec.policy {
            RowPolicy::Fail => Err(failure(letter(first))),
            RowPolicy::Skip => Ok(()),
            RowPolicy::DeadLetter => {
                out.emit(self.spec.port, self.dead_letters(refused.iter().map(letter))?);
                Ok(())
            }
        }
    }

    fn dead_letters(&self, letters: impl Iterator<Item = Letter>) -> Result<Batch, OperatorError> {
        let mut texts: [StringViewBuilder; 3] = Default::default();
        let mut times = Vec::new();
        for letter in letters {
            texts[0].append_option(letter.position);
            texts[1].append_value(letter.reason);
            texts[2].append_value(letter.row);
            times.push(letter.time);
        }
        let operator: ArrayRef = Arc::new(StringViewArray::from(vec![self.operator.as_str(); times.len()]));
        let subtask: ArrayRef = Arc::new(Int32Array::from(vec![self.subtask; times.len()]));
        let texts = texts.map(|mut text| Arc::new(text.finish()) as ArrayRef);
        let columns = [operator, subtask].into_iter().chain(texts).collect();
        Ok(Batch::new(&self.schema, columns, times.into())?)
    }
}

fn failure(letter: Letter) -> OperatorError {
    let at = letter.position.map(|p| format!("{p}: ")).unwrap_or_default();
    OperatorError::Rejected { reason: format!("{at}{}", letter.reason), row: cut(letter.row) }
}

/// A message shows a row's beginning; a dead letter has all of it.
fn cut(mut row: String) -> String {
    if row.len() > SHOWN_BYTES {
        row.truncate(row.floor_char_boundary(SHOWN_BYTES));
        row.push('…');
    }
    row
}

const SHOWN_BYTES: usize = 500;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::test_support::{context, drain, rows, text_batch};

    fn refuse(policy: RowPolicy) -> (Result<(), String>, String, u64) {
        let ctx = context("op");
        let errors = RowErrors::new(RowErrorSpec { policy, port: 2 }, &ctx);
        let batch = text_batch(&["k:utf8 v:int64?", "@5 a 1", "@6 b null"]);
        let rejected = [Rejected { row: 1, reason: "too small".into(), retryable: false }];
        let mut out = Collector::new();
        let result = errors.refuse(&batch, &rejected, &mut out).map_err(|e| e.to_string());
        (result, drain(&mut out), ctx.metrics.rejected.load(Relaxed))
    }

    #[test]
    fn fail_names_reason_and_row() {
        let (result, emitted, count) = refuse(RowPolicy::Fail);
        let message = result.expect_err("refused");
        assert!(message.starts_with(r#"row refused: too small; row: {"k":"b","v":null};"#), "{message}");
        assert_eq!((emitted.as_str(), count), ("", 1));
    }

    #[test]
    fn skip_counts() {
        assert_eq!(refuse(RowPolicy::Skip), (Ok(()), String::new(), 1));
    }

    #[test]
    fn a_dead_letter_says_where_why_and_what() {
        let expected = rows(&[r#"2: @6 op 0 null "too small" {"k":"b","v":null}"#]);
        assert_eq!(refuse(RowPolicy::DeadLetter), (Ok(()), expected, 1));
    }

    #[test]
    fn what_a_source_cannot_read_keeps_its_position() {
        let bad = [BadRow { position: "a.csv:7".into(), reason: "no number".into(), text: "x,y".into() }];
        let mut out = Collector::new();
        let spec = RowErrorSpec { policy: RowPolicy::DeadLetter, port: 1 };
        RowErrors::new(spec, &context("src")).refuse_bad(&bad, &mut out).expect("goes on");
        assert_eq!(drain(&mut out), rows(&[r#"1: src 0 a.csv:7 "no number" x,y"#]));
        let error = RowErrors::new(RowErrorSpec::default(), &context("src")).refuse_bad(&bad, &mut out);
        let message = error.expect_err("fails").to_string();
        assert!(message.starts_with("row refused: a.csv:7: no number; row: x,y;"), "{message}");
    }

    #[test]
    fn a_long_row_is_cut_at_a_character() {
        let cut = cut("é".repeat(400));
        assert!(cut.ends_with("é…") && cut.len() <= SHOWN_BYTES + '…'.len_utf8());
    }
}

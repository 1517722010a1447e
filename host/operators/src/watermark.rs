//! Event times and watermarks from a column: the watermark runs behind the latest time seen by a bound, and a subtask
//! that has seen no row for a while says that it is idle, so that it does not hold up the others.
//!
//! Watermarks that come in are dropped, as those that are made here take their place; only the end of time goes
//! through.

use arrow_array::{Array, cast::AsArray, types};
use arrow_buffer::ScalarBuffer;
use arrow_schema::DataType as ArrowType;
use async_trait::async_trait;
use millstream_operator::{Collector, Operator, OperatorContext, OperatorError, Progress, Rejected};
use millstream_types::{Batch, MAX_WATERMARK, MIN_WATERMARK, NO_TIME, SnapshotRequest, StatePart};

use crate::{
    RowErrorSpec, RowErrors,
    kept::WATERMARK,
    project::without,
    subtask_state::{nothing_left, number, take_clock},
    time_range::{bounds, refused_times},
};

/// A watermark operator with everything resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatermarkSpec {
    /// The column with the event time, a timestamp or an int64 of milliseconds since the epoch. Without one the rows
    /// keep the times that they have.
    pub column: Option<usize>,
    /// How far, in milliseconds, a row may lie behind the latest before it.
    pub out_of_orderness: i64,
    /// After how many milliseconds of processing time without a row the subtask is idle, if ever.
    pub idle_after: Option<i64>,
    /// What becomes of rows without a time or with one out of range.
    pub row_errors: RowErrorSpec,
}

/// Takes event times from a column.
#[derive(Clone, Copy, Debug)]
pub struct TimeAssigner {
    column: Option<usize>,
}

impl TimeAssigner {
    /// Times from this column, or those that the rows have.
    pub fn new(column: Option<usize>) -> Self {
        Self { column }
    }

    /// The rows with their times, without those that have no time or one out of range; these are returned by their
    /// position.
    pub fn assign(&self, batch: Batch) -> Result<(Batch, Vec<Rejected>), OperatorError> {
        let batch = match self.column {
            Some(column) => {
                let times = times_of(batch.column(column));
                batch.with_times(times)?
            }
            None => batch,
        };
        let rejected = refused_times(batch.times(), || self.missing(&batch));
        let batch = if rejected.is_empty() { batch } else { without(&batch, &rejected) };
        Ok((batch, rejected))
    }

    fn missing(&self, batch: &Batch) -> String {
        match self.column {
            Some(i) => format!(
                "column `{}` is null and is the event time",
                batch.records().schema_ref().field(i).name()
            ),
            None => "the row has no event time".to_owned(),
        }
    }
}

/// The values of a column of times; null is no time.
fn times_of(column: &dyn Array) -> ScalarBuffer<i64> {
    let values = match column.data_type() {
        ArrowType::Int64 => column.as_primitive::<types::Int64Type>().values(),
        _ => column.as_primitive::<types::TimestampMillisecondType>().values(),
    };
    match column.nulls().filter(|n| n.null_count() > 0) {
        None => values.clone(),
        Some(nulls) => values.iter().zip(nulls).map(|(&v, valid)| if valid { v } else { NO_TIME }).collect(),
    }
}

/// A watermark behind the latest time seen: `latest - bound - 1`, as a row at the bound may still come.
#[derive(Clone, Copy, Debug)]
pub struct BoundedOutOfOrderness {
    bound: i64,
    watermark: i64,
}

impl BoundedOutOfOrderness {
    /// No time seen yet; rows may come `bound` milliseconds behind the latest.
    pub fn new(bound: i64) -> Self {
        Self::reached(bound, MIN_WATERMARK)
    }

    /// The watermark had got as far as this before.
    pub fn reached(bound: i64, watermark: i64) -> Self {
        Self { bound, watermark }
    }

    /// The watermark after these times, all of them in range; it never falls.
    pub fn observe(&mut self, times: &[i64]) -> i64 {
        if !times.is_empty() {
            let (_, latest) = bounds(times);
            self.watermark = self.watermark.max(latest.saturating_sub(self.bound).saturating_sub(1));
        }
        self.watermark
    }

    /// The watermark so far.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }
}

/// Assigns event times and watermarks.
pub struct WatermarkOperator {
    spec: WatermarkSpec,
    assigner: TimeAssigner,
    watermarks: BoundedOutOfOrderness,
    row_errors: RowErrors,
    ctx: OperatorContext,
    /// When the subtask goes idle if no row comes.
    idle_at: Option<i64>,
    timed_out: bool,
    input_idle: bool,
}

impl WatermarkOperator {
    /// An operator for the subtask of `ctx`.
    pub fn new(spec: WatermarkSpec, ctx: OperatorContext) -> Self {
        let idle_at = spec.idle_after.map(|after| ctx.clock.now().saturating_add(after));
        Self {
            spec,
            assigner: TimeAssigner::new(spec.column),
            watermarks: BoundedOutOfOrderness::new(spec.out_of_orderness),
            row_errors: RowErrors::new(spec.row_errors, &ctx),
            ctx,
            idle_at,
            timed_out: false,
            input_idle: false,
        }
    }

    fn is_idle(&self) -> bool {
        self.timed_out || self.input_idle
    }

    /// Changes the reasons for being idle and says so if that makes a difference.
    fn update_status(&mut self, out: &mut Collector, change: impl FnOnce(&mut Self)) {
        let before = self.is_idle();
        change(self);
        if self.is_idle() != before {
            out.status(self.is_idle());
        }
    }

    fn wake(&mut self, out: &mut Collector) {
        self.update_status(out, |s| (s.timed_out, s.input_idle) = (false, false));
        self.idle_at = self.spec.idle_after.map(|after| self.ctx.clock.now().saturating_add(after));
    }
}

#[async_trait(?Send)]
impl Operator for WatermarkOperator {
    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.wake(out);
        let (kept, rejected) = self.assigner.assign(batch.clone())?;
        self.row_errors.refuse(&batch, &rejected, out)?;
        let before = self.watermarks.watermark();
        let watermark = self.watermarks.observe(kept.times());
        out.emit(0, kept);
        if watermark > before {
            out.watermark(watermark);
        }
        Ok(())
    }

    async fn watermark(&mut self, watermark: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        if watermark == MAX_WATERMARK {
            self.idle_at = None;
            out.watermark(watermark);
        }
        Ok(Progress::Done)
    }

    async fn processing_time(&mut self, now: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        if self.idle_at.take_if(|at| *at <= now).is_some() {
            self.update_status(out, |s| s.timed_out = true);
        }
        Ok(Progress::Done)
    }

    fn next_wakeup(&self) -> Option<i64> {
        self.idle_at
    }

    async fn snapshot(&mut self, _request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        Ok(vec![number(WATERMARK, self.watermarks.watermark())])
    }

    async fn restore(&mut self, mut parts: Vec<StatePart>) -> Result<(), OperatorError> {
        let reached = take_clock(WATERMARK, &mut parts)?;
        self.watermarks = BoundedOutOfOrderness::reached(self.spec.out_of_orderness, reached);
        Ok(nothing_left(parts)?)
    }

    fn status(&mut self, idle: bool, out: &mut Collector) {
        self.update_status(out, |s| s.input_idle = idle);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millstream_operator::{ManualClock, RowPolicy};

    use super::*;
    use crate::test_support::{
        context, context_with_clock, drain, end_of_input, process, processing_time, rows, text_batch,
        watermark,
    };

    fn spec() -> WatermarkSpec {
        let row_errors = RowErrorSpec { policy: RowPolicy::DeadLetter, port: 1 };
        WatermarkSpec { column: Some(0), out_of_orderness: 100, idle_after: None, row_errors }
    }

    #[test]
    fn the_watermark_runs_behind_and_never_falls() {
        let mut operator = WatermarkOperator::new(spec(), context("w"));
        let mut send = |lines: &[&str]| process(&mut operator, text_batch(lines)).expect("goes on");
        let output = send(&["t:timestamp k:utf8", "1000 a", "1200 b", "900 c"]);
        assert_eq!(output, rows(&["0: @1000 1000 a", "0: @1200 1200 b", "0: @900 900 c", "watermark 1099"]));
        assert_eq!(send(&["t:timestamp k:utf8", "1150 d"]), rows(&["0: @1150 1150 d"]));
        let output = send(&["t:int64 k:utf8", "1201 e"]);
        assert_eq!(output, rows(&["0: @1201 1201 e", "watermark 1100"]), "int64 is milliseconds");
        assert_eq!(watermark(&mut operator, 5000).expect("dropped"), "");
        assert_eq!(end_of_input(&mut operator).expect("ends"), "watermark end\n");
    }

    #[test]
    fn rows_without_a_time_in_range_are_refused_and_move_nothing() {
        let mut operator = WatermarkOperator::new(spec(), context("w"));
        let batch = text_batch(&["t:int64? k:utf8", "null a", "1357034400123000000 b", "1000 c"]);
        let expected = [
            r#"1: w 0 null "column `t` is null and is the event time" {"t":null,"k":"a"}"#,
            r#"1: w 0 null "event time 1357034400123000000 is out of range: milliseconds since 1970 within the years 1 to 9999 expected" {"t":1357034400123000000,"k":"b"}"#,
            "0: @1000 1000 c",
            "watermark 899",
        ];
        assert_eq!(process(&mut operator, batch).expect("goes on"), rows(&expected));
    }

    #[test]
    fn rows_can_keep_the_times_that_they_have() {
        let mut operator = WatermarkOperator::new(WatermarkSpec { column: None, ..spec() }, context("w"));
        let output = process(&mut operator, text_batch(&["k:utf8", "@500 a", "b"])).expect("goes on");
        let refused = r#"1: w 0 null "the row has no event time" {"k":"b"}"#;
        assert_eq!(output, rows(&[refused, "0: @500 a", "watermark 399"]));
    }

    #[test]
    fn without_rows_for_a_while_it_is_idle_until_the_next_row() {
        let clock = Arc::new(ManualClock::new(0));
        let spec = WatermarkSpec { idle_after: Some(1000), ..spec() };
        let mut operator = WatermarkOperator::new(spec, context_with_clock("w", clock.clone()));
        clock.set(600);
        process(&mut operator, text_batch(&["t:timestamp", "1000"])).expect("goes on");
        assert_eq!(processing_time(&mut operator, 1599).expect("too early"), "");
        clock.set(1600);
        assert_eq!(processing_time(&mut operator, 1600).expect("idle"), "idle\n");
        assert_eq!(operator.next_wakeup(), None, "nothing more to wait for");
        let output = process(&mut operator, text_batch(&["t:timestamp", "2000"])).expect("goes on");
        assert_eq!(output, rows(&["active", "0: @2000 2000", "watermark 1899"]));
    }

    #[test]
    fn an_idle_input_is_passed_on_once() {
        let mut operator = WatermarkOperator::new(spec(), context("w"));
        let mut out = Collector::new();
        operator.status(true, &mut out);
        operator.status(true, &mut out);
        operator.status(false, &mut out);
        assert_eq!(drain(&mut out), "idle\nactive\n");
    }
}

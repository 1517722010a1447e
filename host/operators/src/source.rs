//! The source operator: a connector's reader with the policy for what it cannot read, event times and watermarks.
//!
//! One watermark runs behind the latest time on any port. It is sent at most once an interval while rows come, and at
//! once when the reader has nothing for now, so that a busy source does not break up batches downstream and a quiet
//! one holds nothing up.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use millstream_operator::{
    BadRow, Collector, OperatorContext, OperatorError, OperatorMetrics, Read, SourceOperator, SourceProgress,
    Split, SplitReader,
};
use millstream_types::Batch;

use crate::{BoundedOutOfOrderness, RowErrorSpec, RowErrors, TimeAssigner};

/// A source operator with everything resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpec {
    /// Where event times come from; without it rows have none and no watermark is made.
    pub times: Option<SourceTimes>,
    /// What becomes of what cannot be read and of rows whose time cannot be used.
    pub row_errors: RowErrorSpec,
}

/// Where a source's event times come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTimes {
    /// The time column of each output port; none for rows that keep the times that the reader gave them.
    pub columns: Vec<Option<usize>>,
    /// How far, in milliseconds, a row may lie behind the latest before it.
    pub out_of_orderness: i64,
    /// After how long without a row the subtask is idle, if ever.
    pub idle_after: Option<Duration>,
    /// How often watermarks are sent while rows come.
    pub interval: Duration,
}

/// Drives a reader.
pub struct ReaderOperator {
    reader: Box<dyn SplitReader>,
    row_errors: RowErrors,
    clock: Option<EventClock>,
    ctx: OperatorContext,
    idle: bool,
}

impl ReaderOperator {
    /// An operator for the subtask of `ctx`.
    pub fn new(spec: SourceSpec, reader: Box<dyn SplitReader>, ctx: OperatorContext) -> Self {
        let row_errors = RowErrors::new(spec.row_errors, &ctx);
        Self { reader, row_errors, clock: spec.times.map(EventClock::new), ctx, idle: false }
    }

    fn emit(
        &mut self,
        port: usize,
        batch: Batch,
        bad: &[BadRow],
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        OperatorMetrics::add(&self.ctx.metrics.records_in, (batch.rows() + bad.len()) as u64);
        self.row_errors.refuse_bad(bad, out)?;
        if batch.is_empty() {
            return Ok(());
        }
        self.status(false, out);
        let Some(clock) = &mut self.clock else {
            out.emit(port, batch);
            return Ok(());
        };
        let (kept, rejected) = clock.assigner(port).assign(batch.clone())?;
        self.row_errors.refuse(&batch, &rejected, out)?;
        clock.observe(kept.times());
        out.emit(port, kept);
        clock.send_if_due(out);
        Ok(())
    }

    /// Nothing to read: what the others wait for goes out now.
    fn run_dry(&mut self, out: &mut Collector) {
        let Some(clock) = &mut self.clock else { return };
        clock.send(out);
        if clock.timed_out() {
            self.status(true, out);
        }
    }
}

#[async_trait(?Send)]
impl SourceOperator for ReaderOperator {
    fn start(&mut self, split: Split) -> Result<(), OperatorError> {
        Ok(self.reader.start(split)?)
    }

    async fn read(&mut self, out: &mut Collector) -> Result<SourceProgress, OperatorError> {
        Ok(match self.reader.read().await? {
            Read::Rows { port, batch, bad } => {
                self.emit(port, batch, &bad, out)?;
                SourceProgress::Read
            }
            Read::Wait(time) => {
                self.run_dry(out);
                SourceProgress::Wait(time)
            }
            Read::SplitFinished => SourceProgress::SplitFinished,
        })
    }

    fn status(&mut self, idle: bool, out: &mut Collector) {
        if idle != self.idle {
            self.idle = idle;
            if let Some(clock) = self.clock.as_mut().filter(|_| idle) {
                clock.send(out);
            }
            out.status(idle);
        }
    }
}

/// Makes the watermarks of a source.
struct EventClock {
    times: SourceTimes,
    watermarks: BoundedOutOfOrderness,
    sent: i64,
    sent_at: Instant,
    last_row: Instant,
}

impl EventClock {
    fn new(times: SourceTimes) -> Self {
        let watermarks = BoundedOutOfOrderness::new(times.out_of_orderness);
        let now = Instant::now();
        Self { times, sent: watermarks.watermark(), watermarks, sent_at: now, last_row: now }
    }

    fn assigner(&self, port: usize) -> TimeAssigner {
        TimeAssigner::new(self.times.columns.get(port).copied().flatten())
    }

    fn observe(&mut self, times: &[i64]) {
        self.watermarks.observe(times);
        self.last_row = Instant::now();
    }

    fn send_if_due(&mut self, out: &mut Collector) {
        if self.last_row.duration_since(self.sent_at) >= self.times.interval {
            self.send(out);
        }
    }

    fn send(&mut self, out: &mut Collector) {
        if self.watermarks.watermark() > self.sent {
            self.sent = self.watermarks.watermark();
            self.sent_at = Instant::now();
            out.watermark(self.sent);
        }
    }

    fn timed_out(&self) -> bool {
        self.times.idle_after.is_some_and(|after| self.last_row.elapsed() >= after)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use millstream_operator::{ConnectorError, RowPolicy};

    use super::*;
    use crate::test_support::{context, drain, rows, text_batch};

    /// Hands out what it was given.
    struct Script(VecDeque<Read>);

    #[async_trait(?Send)]
    impl SplitReader for Script {
        fn start(&mut self, _split: Split) -> Result<(), ConnectorError> {
            Ok(())
        }

        async fn read(&mut self) -> Result<Read, ConnectorError> {
            Ok(self.0.pop_front().unwrap_or(Read::SplitFinished))
        }
    }

    fn run(interval: Duration, policy: RowPolicy, reads: Vec<Read>) -> Result<String, OperatorError> {
        let times = SourceTimes {
            columns: vec![Some(0)],
            out_of_orderness: 100,
            idle_after: Some(Duration::ZERO),
            interval,
        };
        let spec = SourceSpec { times: Some(times), row_errors: RowErrorSpec { policy, port: 1 } };
        let mut operator = ReaderOperator::new(spec, Box::new(Script(reads.into())), context("s"));
        let mut text = String::new();
        loop {
            let mut out = Collector::new();
            let read = futures_util::FutureExt::now_or_never(operator.read(&mut out)).expect("never waits");
            let progress = read?;
            text += &drain(&mut out);
            if progress == SourceProgress::SplitFinished {
                return Ok(text);
            }
        }
    }

    fn some(lines: &[&str]) -> Read {
        Read::Rows { port: 0, batch: text_batch(lines), bad: Vec::new() }
    }

    #[test]
    fn watermarks_come_at_intervals_and_when_the_input_runs_dry() {
        let reads =
            vec![some(&["t:timestamp", "1000"]), some(&["t:timestamp", "2000"]), Read::Wait(Duration::ZERO)];
        let output = run(Duration::from_secs(3600), RowPolicy::Fail, reads).expect("good rows");
        assert_eq!(output, rows(&["0: @1000 1000", "0: @2000 2000", "watermark 1899", "idle"]));
        let reads = vec![some(&["t:timestamp", "1000"]), some(&["t:timestamp", "900"])];
        let output = run(Duration::ZERO, RowPolicy::Fail, reads).expect("good rows");
        assert_eq!(output, rows(&["0: @1000 1000", "watermark 899", "0: @900 900"]));
    }

    #[test]
    fn what_cannot_be_read_follows_the_policy() {
        let bad = || {
            let row = BadRow { position: "f.csv:3".into(), reason: "3 columns".into(), text: "a,b,c".into() };
            vec![Read::Rows { port: 0, batch: text_batch(&["t:timestamp"]), bad: vec![row] }]
        };
        let output = run(Duration::ZERO, RowPolicy::DeadLetter, bad()).expect("goes on");
        assert_eq!(output, rows(&[r#"1: s 0 f.csv:3 "3 columns" a,b,c"#]));
        assert_eq!(run(Duration::ZERO, RowPolicy::Skip, bad()).expect("goes on"), "");
        let error = run(Duration::ZERO, RowPolicy::Fail, bad()).expect_err("fails").to_string();
        assert!(error.contains("3 columns") && error.contains("f.csv:3"), "{error}");
    }
}

//! The source operator: a connector's reader with the policy for what it cannot read, event times and watermarks.
//!
//! A watermark is kept for each split, behind the latest time on any port; the subtask's is the lowest of those of its
//! splits. A split that was begun earlier and waits for its turn holds with what it had reached; one of which nothing
//! has been read counts with the one before it, and once it is begun holds until its first row. The subtask's
//! watermark is sent at most once an interval while rows come, and at once when there is nothing to read for now, so
//! that a busy source does not break up batches downstream and a quiet one holds nothing up.
//!
//! In a group of subtasks that are aligned it does not read while it is too far ahead of the slowest of them.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use millstream_operator::{
    BadRow, Collector, OperatorContext, OperatorError, OperatorMetrics, Read, SourceOperator, SourceProgress,
    Split, SplitReader,
};
use millstream_types::{Batch, MIN_WATERMARK};

use crate::{AlignmentMember, BoundedOutOfOrderness, RowErrorSpec, RowErrors, TimeAssigner};

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
    /// Splits that wait for the one in progress.
    waiting: VecDeque<Split>,
    row_errors: RowErrors,
    clock: Option<EventClock>,
    alignment: Option<AlignmentMember>,
    ctx: OperatorContext,
    idle: bool,
}

impl ReaderOperator {
    /// An operator for the subtask of `ctx`.
    pub fn new(spec: SourceSpec, reader: Box<dyn SplitReader>, ctx: OperatorContext) -> Self {
        let row_errors = RowErrors::new(spec.row_errors, &ctx);
        let clock = spec.times.map(EventClock::new);
        Self { reader, waiting: VecDeque::new(), row_errors, clock, alignment: None, ctx, idle: false }
    }

    /// The same, waiting for the others of a group while it is too far ahead of them.
    pub fn aligned(self, alignment: Option<AlignmentMember>) -> Self {
        Self { alignment, ..self }
    }

    /// Starts the next of the splits that wait; false if there is none.
    fn next_split(&mut self) -> Result<bool, OperatorError> {
        let Some(split) = self.waiting.pop_front() else { return Ok(false) };
        if let Some(clock) = &mut self.clock {
            clock.start(split.watermark, &self.waiting);
        }
        self.reader.start(split)?;
        Ok(true)
    }

    fn emit(
        &mut self,
        batches: Vec<(usize, Batch)>,
        bad: &[BadRow],
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let rows: usize = batches.iter().map(|(_, batch)| batch.rows()).sum();
        OperatorMetrics::add(&self.ctx.metrics.records_in, (rows + bad.len()) as u64);
        self.row_errors.refuse_bad(bad, out)?;
        if rows == 0 {
            return Ok(());
        }
        self.status(false, out);
        for (port, batch) in batches {
            self.emit_batch(port, batch, out)?;
        }
        // Not before all ports have had theirs: the watermark is behind the latest of any.
        if let Some(clock) = &mut self.clock {
            clock.send_if_due(out);
            self.alignment.iter_mut().for_each(|a| a.read(rows as u64, clock.watermark()));
        }
        Ok(())
    }

    fn emit_batch(&mut self, port: usize, batch: Batch, out: &mut Collector) -> Result<(), OperatorError> {
        let Some(clock) = &mut self.clock else {
            out.emit(port, batch);
            return Ok(());
        };
        let (kept, rejected) = clock.assigner(port).assign(batch.clone())?;
        self.row_errors.refuse(&batch, &rejected, out)?;
        clock.observe(kept.times());
        out.emit(port, kept);
        Ok(())
    }

    /// Whether it has to wait for others of its group. Such a wait is no idleness: what has been read counts.
    fn is_too_far_ahead(&mut self, out: &mut Collector) -> bool {
        let (Some(clock), Some(alignment)) = (&mut self.clock, &mut self.alignment) else { return false };
        if alignment.may_read() {
            return false;
        }
        clock.last_row = Instant::now();
        clock.send_if_due(out);
        true
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
    fn start(&mut self, splits: Vec<Split>) -> Result<(), OperatorError> {
        self.waiting.extend(splits);
        self.next_split()?;
        Ok(())
    }

    async fn read(&mut self, out: &mut Collector) -> Result<SourceProgress, OperatorError> {
        if self.is_too_far_ahead(out) {
            return Ok(SourceProgress::Wait(ALIGNMENT_WAIT));
        }
        Ok(match self.reader.read().await? {
            Read::Rows { batches, bad } => {
                self.emit(batches, &bad, out)?;
                SourceProgress::Read
            }
            Read::Wait(time) => {
                self.run_dry(out);
                SourceProgress::Wait(time)
            }
            Read::SplitFinished if self.next_split()? => SourceProgress::Read,
            Read::SplitFinished => SourceProgress::SplitFinished,
        })
    }

    fn snapshot(&self) -> Result<Vec<Split>, OperatorError> {
        let mut current = self.reader.snapshot()?;
        if let (Some(split), Some(clock)) = (&mut current, &self.clock) {
            split.watermark = clock.split.watermark();
        }
        Ok(current.into_iter().chain(self.waiting.iter().cloned()).collect())
    }

    fn status(&mut self, idle: bool, out: &mut Collector) {
        if idle != self.idle {
            self.idle = idle;
            if let Some(clock) = self.clock.as_mut().filter(|_| idle) {
                clock.send(out);
            }
            self.alignment.iter_mut().for_each(|alignment| alignment.set_idle(idle));
            out.status(idle);
        }
    }
}

/// After which time a subtask that is too far ahead looks again. The others need much longer for what it is ahead.
const ALIGNMENT_WAIT: Duration = Duration::from_millis(2);

/// Makes the watermarks of a source.
struct EventClock {
    times: SourceTimes,
    /// Of the split in progress, or of the last one.
    split: BoundedOutOfOrderness,
    /// The lowest of those splits that were begun and wait for their turn.
    held_at: Option<i64>,
    sent: i64,
    sent_at: Instant,
    last_row: Instant,
}

impl EventClock {
    fn new(times: SourceTimes) -> Self {
        let split = BoundedOutOfOrderness::new(times.out_of_orderness);
        let now = Instant::now();
        Self { times, split, held_at: None, sent: MIN_WATERMARK, sent_at: now, last_row: now }
    }

    /// Goes over to a split that had reached `watermark`; the others have to wait.
    fn start(&mut self, watermark: i64, waiting: &VecDeque<Split>) {
        self.split = BoundedOutOfOrderness::reached(self.times.out_of_orderness, watermark);
        self.held_at = waiting.iter().map(|split| split.watermark).filter(|w| *w != MIN_WATERMARK).min();
    }

    /// The subtask's watermark, as far as it has not been sent already.
    fn watermark(&self) -> i64 {
        self.held_at.map_or(self.split.watermark(), |held| held.min(self.split.watermark()))
    }

    fn assigner(&self, port: usize) -> TimeAssigner {
        TimeAssigner::new(self.times.columns.get(port).copied().flatten())
    }

    fn observe(&mut self, times: &[i64]) {
        self.split.observe(times);
        self.last_row = Instant::now();
    }

    fn send_if_due(&mut self, out: &mut Collector) {
        if self.last_row.duration_since(self.sent_at) >= self.times.interval {
            self.send(out);
        }
    }

    /// What has been sent is not taken back, though a split may begin further back.
    fn send(&mut self, out: &mut Collector) {
        let watermark = self.watermark();
        if watermark > self.sent {
            self.sent = watermark;
            self.sent_at = Instant::now();
            out.watermark(watermark);
        }
    }

    fn timed_out(&self) -> bool {
        self.times.idle_after.is_some_and(|after| self.last_row.elapsed() >= after)
    }
}

#[cfg(test)]
mod tests {
    use millstream_operator::{ConnectorError, RowPolicy};
    use millstream_protocol::MaxDrift;

    use super::*;
    use crate::AlignmentGroup;
    use crate::test_support::{context, drain, rows, text_batch};

    /// Hands out what it was given, split by split.
    struct Script {
        reads: VecDeque<Read>,
        split: Option<Split>,
    }

    #[async_trait(?Send)]
    impl SplitReader for Script {
        fn start(&mut self, split: Split) -> Result<(), ConnectorError> {
            self.split = Some(split);
            Ok(())
        }

        async fn read(&mut self) -> Result<Read, ConnectorError> {
            let read = self.reads.pop_front().unwrap_or(Read::SplitFinished);
            if matches!(read, Read::SplitFinished) {
                self.split = None;
            }
            Ok(read)
        }

        fn snapshot(&self) -> Result<Option<Split>, ConnectorError> {
            Ok(self.split.clone())
        }
    }

    fn operator(interval: Duration, policy: RowPolicy, reads: Vec<Read>) -> ReaderOperator {
        let times = SourceTimes {
            columns: vec![Some(0), Some(0)],
            out_of_orderness: 100,
            idle_after: Some(Duration::ZERO),
            interval,
        };
        let spec = SourceSpec { times: Some(times), row_errors: RowErrorSpec { policy, port: 1 } };
        ReaderOperator::new(spec, Box::new(Script { reads: reads.into(), split: None }), context("s"))
    }

    /// One step; what came out, and whether all splits are finished.
    fn step(operator: &mut ReaderOperator) -> Result<(String, bool), OperatorError> {
        let mut out = Collector::new();
        let read = futures_util::FutureExt::now_or_never(operator.read(&mut out)).expect("never waits");
        Ok((drain(&mut out), read? == SourceProgress::SplitFinished))
    }

    fn run_to_end(operator: &mut ReaderOperator) -> Result<String, OperatorError> {
        let mut text = String::new();
        loop {
            let (made, finished) = step(operator)?;
            text += &made;
            if finished {
                return Ok(text);
            }
        }
    }

    fn run(interval: Duration, policy: RowPolicy, reads: Vec<Read>) -> Result<String, OperatorError> {
        run_to_end(&mut operator(interval, policy, reads))
    }

    fn split(id: &str, watermark: i64) -> Split {
        Split { id: id.into(), payload: Vec::new(), watermark }
    }

    fn some(lines: &[&str]) -> Read {
        Read::Rows { batches: vec![(0, text_batch(lines))], bad: Vec::new() }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn watermarks_come_at_intervals_and_when_the_input_runs_dry() {
        let reads =
            vec![some(&["t:timestamp", "1000"]), some(&["t:timestamp", "2000"]), Read::Wait(Duration::ZERO)];
        let output = run(HOUR, RowPolicy::Fail, reads).expect("good rows");
        assert_eq!(output, rows(&["0: @1000 1000", "0: @2000 2000", "watermark 1899", "idle"]));
        let reads = vec![some(&["t:timestamp", "1000"]), some(&["t:timestamp", "900"])];
        let output = run(Duration::ZERO, RowPolicy::Fail, reads).expect("good rows");
        assert_eq!(output, rows(&["0: @1000 1000", "watermark 899", "0: @900 900"]));
    }

    #[test]
    fn all_ports_have_had_their_rows_before_a_watermark_goes_out() {
        let batches =
            vec![(0, text_batch(&["t:timestamp", "2000"])), (1, text_batch(&["t:timestamp", "1500"]))];
        let reads = vec![Read::Rows { batches, bad: Vec::new() }];
        let output = run(Duration::ZERO, RowPolicy::Fail, reads).expect("good rows");
        assert_eq!(output, rows(&["0: @2000 2000", "1: @1500 1500", "watermark 1899"]));
    }

    #[test]
    fn a_split_counts_with_its_own_rows_once_it_is_begun() {
        let reads = vec![
            some(&["t:timestamp", "2000"]),
            Read::SplitFinished,
            some(&["t:timestamp", "1000"]),
            Read::Wait(Duration::ZERO),
        ];
        let mut reader = operator(HOUR, RowPolicy::Fail, reads);
        reader.start(vec![split("a", MIN_WATERMARK), split("b", MIN_WATERMARK)]).expect("starts");
        let output = run_to_end(&mut reader).expect("good rows");
        assert_eq!(output, rows(&["0: @2000 2000", "0: @1000 1000", "watermark 899", "idle"]));
    }

    #[test]
    fn between_splits_the_last_one_counts() {
        let mut reader = operator(HOUR, RowPolicy::Fail, vec![some(&["t:timestamp", "2000"])]);
        reader.start(vec![split("a", MIN_WATERMARK)]).expect("starts");
        assert_eq!(run_to_end(&mut reader).expect("good rows"), rows(&["0: @2000 2000"]));
        let mut out = Collector::new();
        reader.status(true, &mut out);
        assert_eq!(drain(&mut out), rows(&["watermark 1899", "idle"]));
    }

    #[test]
    fn a_split_that_was_begun_holds_while_it_waits_and_no_watermark_is_taken_back() {
        let reads = vec![
            some(&["t:timestamp", "5000"]),
            Read::SplitFinished,
            some(&["t:timestamp", "2300"]),
            some(&["t:timestamp", "6000"]),
        ];
        let mut reader = operator(Duration::ZERO, RowPolicy::Fail, reads);
        reader.start(vec![split("a", 2500), split("b", 2000), split("c", MIN_WATERMARK)]).expect("starts");
        let output = run_to_end(&mut reader).expect("good rows");
        let expected = [
            "0: @5000 5000",
            "watermark 2000",
            "0: @2300 2300",
            "watermark 2199",
            "0: @6000 6000",
            "watermark 5899",
        ];
        assert_eq!(output, rows(&expected));
    }

    #[test]
    fn a_snapshot_has_the_split_in_progress_with_its_watermark_and_those_that_wait() {
        let reads = vec![some(&["t:timestamp", "5000"]), Read::SplitFinished];
        let mut reader = operator(HOUR, RowPolicy::Fail, reads);
        assert_eq!(reader.snapshot().expect("nothing yet"), []);
        reader.start(vec![split("a", 2500), split("b", 2000)]).expect("starts");
        assert_eq!(reader.snapshot().expect("both"), [split("a", 2500), split("b", 2000)]);
        step(&mut reader).expect("reads");
        assert_eq!(reader.snapshot().expect("both"), [split("a", 4899), split("b", 2000)]);
        step(&mut reader).expect("goes over to the next split");
        assert_eq!(reader.snapshot().expect("one"), [split("b", 2000)]);
    }

    #[test]
    fn one_that_is_too_far_ahead_waits_and_is_not_idle() {
        let group = AlignmentGroup::new(MaxDrift::Time(1000), 2);
        let mut slow = group.member(1).expect("the other one");
        let reads = vec![some(&["t:timestamp", "1000"]), some(&["t:timestamp", "3000"]), Read::Wait(HOUR)];
        let mut reader = operator(HOUR, RowPolicy::Fail, reads).aligned(group.member(0));
        assert_eq!(step(&mut reader).expect("reads"), (rows(&["0: @1000 1000"]), false));
        assert_eq!(
            step(&mut reader).expect("waits"),
            (String::new(), false),
            "the other one has read nothing"
        );
        slow.read(1, 0);
        assert_eq!(step(&mut reader).expect("reads"), (rows(&["0: @3000 3000"]), false));
        assert_eq!(step(&mut reader).expect("waits"), (String::new(), false));
        slow.set_idle(true);
        assert_eq!(step(&mut reader).expect("runs dry"), (rows(&["watermark 2899", "idle"]), false));
        assert!(slow.may_read(), "nobody waits for one that is idle");
    }

    #[test]
    fn what_cannot_be_read_follows_the_policy() {
        let bad = || {
            let row = BadRow { position: "f.csv:3".into(), reason: "3 columns".into(), text: "a,b,c".into() };
            vec![Read::Rows { batches: vec![(0, text_batch(&["t:timestamp"]))], bad: vec![row] }]
        };
        let output = run(Duration::ZERO, RowPolicy::DeadLetter, bad()).expect("goes on");
        assert_eq!(output, rows(&[r#"1: s 0 f.csv:3 "3 columns" a,b,c"#]));
        assert_eq!(run(Duration::ZERO, RowPolicy::Skip, bad()).expect("goes on"), "");
        let error = run(Duration::ZERO, RowPolicy::Fail, bad()).expect_err("fails").to_string();
        assert!(error.contains("3 columns") && error.contains("f.csv:3"), "{error}");
    }
}

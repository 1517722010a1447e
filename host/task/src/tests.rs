//! Subtasks together: real chains over real channels, in two slots of one process.

mod checkpoints;
mod unaligned;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use arrow_array::{Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
use async_trait::async_trait;
use millstream_net::{ChannelId, GateBudget, LocalTransport, Transport};
use millstream_operator::{
    Assignment, Collector, ConnectorError, Operator, OperatorContext, OperatorError, Progress,
    SourceOperator, SourceProgress, Split, SplitEnumerator, SystemClock,
};
use millstream_types::{
    Attempt, Batch, DataType, Field, JobName, MAX_WATERMARK, MIN_WATERMARK, MaxParallelism, OperatorId,
    Schema, SubtaskIndex,
};
use tokio::sync::watch;

use crate::{
    Chain, ChainedOperator, GateChannel, Input, InputGate, Mailbox, OutgoingChannel, Partitioner,
    ResultPartition, Slot, SourceTask, SplitService, Subtask, SubtaskEnd, Target,
};

type Log = Arc<Mutex<Vec<String>>>;

fn batch(values: &[i64]) -> Batch {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64)]);
    let column = Arc::new(Int64Array::from(values.to_vec()));
    Batch::without_times(RecordBatch::try_new(schema.arrow().clone(), vec![column]).expect("fits"))
}

fn context(operator: &str) -> OperatorContext {
    OperatorContext {
        job: JobName::new("test"),
        operator: OperatorId::new(operator),
        subtask: SubtaskIndex(0),
        parallelism: 1,
        max_parallelism: MaxParallelism::DEFAULT,
        run: Default::default(),
        attempt: Attempt(0),
        parameters: Arc::new(BTreeMap::new()),
        states: Arc::new([]),
        checkpoints: false,
        restored: false,
        metrics: Arc::default(),
        clock: Arc::new(SystemClock),
    }
}

/// One split, of numbers from 0 to below its length, a batch a number.
#[derive(Default)]
struct Numbers {
    next: i64,
    end: i64,
    _alive: Arc<()>,
}

#[async_trait(?Send)]
impl SourceOperator for Numbers {
    fn start(&mut self, splits: Vec<Split>) -> Result<(), OperatorError> {
        self.end = splits[0].payload.len() as i64;
        Ok(())
    }

    async fn read(&mut self, out: &mut Collector) -> Result<SourceProgress, OperatorError> {
        if self.next == self.end {
            return Ok(SourceProgress::SplitFinished);
        }
        out.emit(0, batch(&[self.next]));
        self.next += 1;
        Ok(SourceProgress::Read)
    }

    fn snapshot(&self) -> Result<Vec<Split>, OperatorError> {
        Ok(Vec::new())
    }

    fn status(&mut self, _idle: bool, _out: &mut Collector) {}
}

struct OneSplit(Option<usize>);

impl SplitEnumerator for OneSplit {
    fn next_split(&mut self, _subtask: u32) -> Result<Assignment, ConnectorError> {
        let split =
            |length| Split { id: "numbers".into(), payload: vec![0; length], watermark: MIN_WATERMARK };
        Ok(self.0.take().map_or(Assignment::Finished, |length| Assignment::Splits(vec![split(length)])))
    }

    fn snapshot(&self) -> Result<Vec<u8>, ConnectorError> {
        Ok(Vec::new())
    }
}

/// Writes down what it sees and does as its name says: `echo` passes on, `burst` makes three batches of steps at the
/// end of time, `fail` and `panic` do so at the number 3, `slow` lets others run.
struct Scripted {
    what: &'static str,
    log: Log,
    steps: i64,
}

impl Scripted {
    fn note(&self, text: String) {
        self.log.lock().expect("no panic holds it").push(format!("{} {text}", self.what));
    }
}

#[async_trait(?Send)]
impl Operator for Scripted {
    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        out: &mut Collector,
    ) -> Result<(), OperatorError> {
        let value = batch.column(0).as_primitive::<Int64Type>().value(0);
        match (self.what, value) {
            ("fail", 3) => return Err(ConnectorError::user("three is too much").into()),
            ("panic", 3) => panic!("three is too much"),
            ("slow", _) => tokio::time::sleep(Duration::from_millis(2)).await,
            _ => self.note(value.to_string()),
        }
        out.emit(0, batch);
        Ok(())
    }

    async fn watermark(&mut self, watermark: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        if self.what == "burst" && self.steps < 3 {
            self.steps += 1;
            out.emit(0, batch(&[100 + self.steps]));
            return Ok(Progress::More);
        }
        self.note(if watermark == MAX_WATERMARK {
            "end of time".into()
        } else {
            format!("watermark {watermark}")
        });
        out.watermark(watermark);
        Ok(Progress::Done)
    }

    async fn end_of_input(&mut self, _out: &mut Collector) -> Result<Progress, OperatorError> {
        self.note("end".into());
        Ok(Progress::Done)
    }

    async fn close(&mut self) -> Result<(), OperatorError> {
        self.note("close".into());
        Ok(())
    }
}

fn chained(what: &'static str, log: &Log, outputs: Vec<Vec<Target>>) -> ChainedOperator {
    let operator = Scripted { what, log: log.clone(), steps: 0 };
    ChainedOperator { operator: Some(Box::new(operator)), ctx: context(what), outputs }
}

const ID: ChannelId = ChannelId { edge: 0, from: 0, to: 0 };

/// Source → `first` | exchange | `second` → `third`, in two slots, over this many numbers. Answers with how the two
/// subtasks ended and what the operators saw.
fn run(
    operators: [&'static str; 3],
    numbers: usize,
    cancel_after: Option<Duration>,
) -> (Vec<String>, Vec<String>) {
    let log = Log::default();
    let transport = Arc::new(LocalTransport::new());
    let (requests, service) = SplitService::new(Box::new(OneSplit(Some(numbers))), 1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
    runtime.spawn(service.run());
    let (cancel, cancelled) = watch::channel(false);
    let (report, ends) = std::sync::mpsc::channel();
    let slots = [0, 1].map(|i| Slot::open(i).expect("a thread"));
    let [first, second, third] = operators;

    let (sender_log, sending, report_sender, stop) =
        (log.clone(), transport.clone(), report.clone(), cancelled.clone());
    let send = move || async move {
        let head = ChainedOperator {
            operator: None,
            ctx: context("source"),
            outputs: vec![vec![Target::Operator(1, 0)]],
        };
        let map = chained(first, &sender_log, vec![vec![Target::Partition(0)]]);
        let channels = vec![OutgoingChannel { id: ID, sender: sending.sender(ID).expect("new") }];
        let edge = ResultPartition::new(Partitioner::Rebalance, channels, Duration::from_millis(1), 0);
        let source = SourceTask { operator: Box::<Numbers>::default(), splits: requests };
        let chain = Chain::new(vec![head, map], vec![edge]);
        let subtask = Subtask {
            input: Input::Source(source),
            chain,
            mailbox: Mailbox::new().1,
            checkpoints: None,
            restore: None,
        };
        report_sender.send(("sender", subtask.run(stop).await)).expect("the test waits");
    };
    let receiver_log = log.clone();
    let receive = move || async move {
        let gate = transport.gate(&[ID], GateBudget { exclusive: 2, floating: 0, elements: 4 }).expect("new");
        let channels = gate.into_iter().map(|receiver| GateChannel { id: ID, port: 0, receiver }).collect();
        let operators = vec![
            chained(second, &receiver_log, vec![vec![Target::Operator(1, 0)]]),
            chained(third, &receiver_log, vec![vec![]]),
        ];
        let chain = Chain::new(operators, Vec::new());
        let subtask = Subtask {
            input: Input::Gate(Box::new(InputGate::new(channels))),
            chain,
            mailbox: Mailbox::new().1,
            checkpoints: None,
            restore: None,
        };
        report.send(("receiver", subtask.run(cancelled).await)).expect("the test waits");
    };
    slots[0].start(send).expect("open");
    slots[1].start(receive).expect("open");
    if let Some(time) = cancel_after {
        std::thread::sleep(time);
        cancel.send_replace(true);
    }
    let show = |(who, end): (&str, SubtaskEnd)| match end {
        SubtaskEnd::Finished => format!("{who} finished"),
        SubtaskEnd::Cancelled => format!("{who} cancelled"),
        SubtaskEnd::Failed(error) => {
            let source = std::error::Error::source(&error).map(|s| format!(": {s}")).unwrap_or_default();
            format!("{who} failed: {error}{source}")
        }
    };
    let mut ends: Vec<String> = ends.iter().map(show).collect();
    ends.sort();
    let close = async {
        for slot in slots {
            slot.close().await;
        }
    };
    tokio::runtime::Builder::new_current_thread().build().expect("an event loop").block_on(close);
    let log = log.lock().expect("all have ended").clone();
    (ends, log)
}

fn only(log: &[String], operator: &str) -> Vec<String> {
    let of = |line: &String| line.strip_prefix(operator).map(|l| l.trim().to_owned());
    log.iter().filter_map(of).collect()
}

#[test]
fn rows_and_the_end_go_through_in_order() {
    let (ends, log) = run(["echo", "mid", "last"], 5, None);
    assert_eq!(ends, ["receiver finished", "sender finished"]);
    let expected = ["0", "1", "2", "3", "4", "end of time", "end", "close"];
    for operator in ["echo", "mid", "last"] {
        assert_eq!(only(&log, operator), expected);
    }
}

#[test]
fn steps_are_passed_on_before_the_next_one_and_before_the_watermark() {
    let (_, log) = run(["echo", "burst", "last"], 1, None);
    assert_eq!(only(&log, "last"), ["0", "101", "102", "103", "end of time", "end", "close"]);
}

#[test]
fn a_failure_is_told_with_its_operator_and_ends_the_sender() {
    let (ends, log) = run(["echo", "mid", "fail"], 100_000, None);
    assert_eq!(ends[0], "receiver failed: `fail[0]` failed: three is too much");
    assert!(
        ends[1].starts_with("sender failed: `source[0]` was cut off: the other end of edge 0"),
        "{}",
        ends[1]
    );
    assert!(only(&log, "echo").len() < 1000, "backpressure holds the sender");
}

#[test]
fn a_panic_is_a_failure_and_not_the_end_of_the_process() {
    let (ends, _) = run(["echo", "mid", "panic"], 100_000, None);
    assert_eq!(ends[0], "receiver failed: `mid[0]`: internal error: three is too much; please report it");
}

#[test]
fn cancelling_ends_subtasks_in_the_middle() {
    let (ends, _) = run(["echo", "mid", "slow"], 1_000_000, Some(Duration::from_millis(50)));
    assert_eq!(ends, ["receiver cancelled", "sender cancelled"]);
}

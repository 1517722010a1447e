//! Barriers that overtake, in a job of three stages that is slow at its end: whatever has been read is in the snapshot
//! exactly once, in a sink or under way, and what goes on from it has every row exactly once, at any parallelism.

use std::{future::poll_fn, time::Instant};

use futures_util::FutureExt;
use millstream_types::{
    Alignment, Barrier, BarrierKind, SnapshotRequest, StateChunk, StateForm, StatePart, StreamElement,
};
use tokio::{sync::mpsc, task::LocalSet};

use super::*;
use crate::{
    CheckpointLink, CheckpointReport, InFlight, Mail, Overtaken, Resent, Restore, deal, gate::GateEvent,
};

/// Numbers from `next` to below `end`, some a batch, with a watermark behind each: the last number.
struct Range {
    next: i64,
    end: i64,
}

#[async_trait(?Send)]
impl SourceOperator for Range {
    fn start(&mut self, splits: Vec<Split>) -> Result<(), OperatorError> {
        (self.next, self.end) = bounds(&splits[0]);
        Ok(())
    }

    async fn read(&mut self, out: &mut Collector) -> Result<SourceProgress, OperatorError> {
        if self.next == self.end {
            return Ok(SourceProgress::SplitFinished);
        }
        let end = self.end.min(self.next + BATCH);
        out.emit(0, batch(&(self.next..end).collect::<Vec<_>>()));
        out.watermark(end - 1);
        self.next = end;
        Ok(SourceProgress::Read)
    }

    fn snapshot(&self) -> Result<Vec<Split>, OperatorError> {
        Ok(if self.next < self.end { vec![split(self.next, self.end)] } else { Vec::new() })
    }

    fn status(&mut self, _idle: bool, _out: &mut Collector) {}
}

const BATCH: i64 = 40;

fn split(next: i64, end: i64) -> Split {
    let payload = [next.to_le_bytes(), end.to_le_bytes()].concat();
    Split { id: next.to_string().into(), payload, watermark: MIN_WATERMARK }
}

fn bounds(split: &Split) -> (i64, i64) {
    let number = |at: usize| i64::from_le_bytes(split.payload[at..at + 8].try_into().expect("eight"));
    (number(0), number(8))
}

struct Splits(Vec<Split>);

impl SplitEnumerator for Splits {
    fn next_split(&mut self, _subtask: u32) -> Result<Assignment, ConnectorError> {
        self.0.sort_by_key(|split| std::cmp::Reverse(bounds(split)));
        Ok(self.0.pop().map_or(Assignment::Finished, |split| Assignment::Splits(vec![split])))
    }

    fn snapshot(&self) -> Result<Vec<u8>, ConnectorError> {
        Ok(self.0.iter().flat_map(|split| split.payload.clone()).collect())
    }
}

/// The splits that a participant has in its snapshot: those of a reader, or of the enumerator.
fn splits_of(parts: &[StatePart]) -> Vec<Split> {
    let mut splits = Vec::new();
    for part in parts {
        match part.form {
            StateForm::Splits => {
                splits.extend(part.chunks.iter().filter_map(|chunk| crate::decode_split(&chunk.bytes)));
            }
            StateForm::Enumerator => {
                let numbers = part.chunks[0].bytes.chunks(16);
                let split = |payload: &[u8]| Split { payload: payload.to_vec(), ..split(0, 0) };
                splits.extend(numbers.map(split));
            }
            _ => {}
        }
    }
    splits
}

/// Passes on what comes.
struct Pass;

#[async_trait(?Send)]
impl Operator for Pass {
    async fn process(&mut self, _: usize, batch: Batch, out: &mut Collector) -> Result<(), OperatorError> {
        out.emit(0, batch);
        Ok(())
    }

    async fn watermark(&mut self, watermark: i64, out: &mut Collector) -> Result<Progress, OperatorError> {
        out.watermark(watermark);
        Ok(Progress::Done)
    }
}

/// Keeps all numbers, taking its time, and sees that none is late.
struct Slow {
    numbers: Vec<i64>,
    pause: Duration,
    watermark: i64,
}

#[async_trait(?Send)]
impl Operator for Slow {
    async fn process(&mut self, _: usize, batch: Batch, _out: &mut Collector) -> Result<(), OperatorError> {
        let numbers = batch.column(0).as_primitive::<Int64Type>().values();
        assert!(numbers.iter().all(|n| *n > self.watermark), "{numbers:?} behind {}", self.watermark);
        self.numbers.extend(numbers);
        tokio::time::sleep(self.pause).await;
        Ok(())
    }

    async fn watermark(&mut self, watermark: i64, _out: &mut Collector) -> Result<Progress, OperatorError> {
        self.watermark = watermark;
        Ok(Progress::Done)
    }

    async fn snapshot(&mut self, _request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        let bytes = |n: &i64| StateChunk::item(n.to_le_bytes().to_vec());
        let chunks = self.numbers.iter().map(bytes).collect();
        Ok(vec![StatePart::plain("numbers", StateForm::Items, chunks)])
    }

    async fn restore(&mut self, parts: Vec<StatePart>) -> Result<(), OperatorError> {
        self.numbers = numbers_of(&parts);
        Ok(())
    }
}

fn numbers_of(parts: &[StatePart]) -> Vec<i64> {
    let chunks = parts.iter().filter(|part| part.name == "numbers").flat_map(|part| &part.chunks);
    chunks.map(|chunk| i64::from_le_bytes(chunk.bytes[..].try_into().expect("eight"))).collect()
}

/// How many subtasks sources, the stage in the middle and sinks have.
type Shape = [u32; 3];

/// What a snapshot has of a job.
struct Snapshot {
    shape: Shape,
    left: Vec<Split>,
    kept: Vec<i64>,
    in_flight: Option<InFlight>,
    took: Duration,
}

impl Snapshot {
    /// Where a job of `numbers` numbers begins.
    fn begin(shape: Shape, numbers: i64) -> Self {
        let share = numbers / 4;
        let left = (0..4).map(|i| split(i * share, (i + 1) * share)).collect();
        Self { shape, left, kept: Vec::new(), in_flight: None, took: Duration::ZERO }
    }

    /// All numbers that it has anywhere, in order.
    fn numbers(&self) -> Vec<i64> {
        let mut numbers = self.kept.clone();
        numbers.extend(self.left.iter().flat_map(|split| bounds(split).0..bounds(split).1));
        numbers.extend(
            self.under_way().iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values()),
        );
        numbers.sort_unstable();
        numbers
    }

    fn under_way(&self) -> Vec<Batch> {
        let in_flight = self.in_flight.iter();
        let channels = in_flight.flat_map(|in_flight| in_flight.received.iter().chain(&in_flight.unsent));
        let elements = channels.flat_map(|channel| &channel.elements);
        elements
            .filter_map(|element| match element {
                StreamElement::Batch(batch) => Some(batch.clone()),
                _ => None,
            })
            .collect()
    }

    /// What subtask `index` of `senders` of an edge sends again.
    fn resent(&self, edge: u32, index: u32, senders: u32) -> Vec<Resent> {
        let of_edge = |all: &[Overtaken]| -> Vec<Overtaken> {
            all.iter().filter(|channel| channel.channel.edge == edge).cloned().collect()
        };
        let Some(InFlight { received, unsent }) = &self.in_flight else { return Vec::new() };
        let before = self.shape[edge as usize];
        let elements = deal(&of_edge(received), &of_edge(unsent), before, index, senders);
        vec![Resent { target: Target::Partition(0), elements }]
    }
}

/// A job on this thread.
struct Job {
    shape: Shape,
    mails: Vec<mpsc::UnboundedSender<Mail>>,
    reports: mpsc::UnboundedReceiver<(usize, CheckpointReport)>,
    ends: mpsc::UnboundedReceiver<SubtaskEnd>,
    _cancel: watch::Sender<bool>,
}

impl Job {
    fn start(local: &LocalSet, shape: Shape, from: &Snapshot, pause: Duration) -> Self {
        let transport = LocalTransport::new();
        let (report, reports) = mpsc::unbounded_channel();
        let (splits, service) = SplitService::new(Box::new(Splits(from.left.clone())), shape[0]);
        let link = CheckpointLink::new(shape.iter().sum::<u32>() as usize, report.clone());
        local.spawn_local(service.with_checkpoints(link, OperatorId::new("source")).run());
        let (cancel, cancelled) = watch::channel(false);
        let (ended, ends) = mpsc::unbounded_channel();
        let mut mails = Vec::new();
        let mut restored = from.kept.chunks(from.kept.len().div_ceil(shape[2] as usize).max(1));
        let places = (0..3u32).flat_map(|stage| (0..shape[stage as usize]).map(move |index| (stage, index)));
        for (participant, (stage, index)) in places.enumerate() {
            let mut operators = vec![Vec::new()];
            let operator: Option<Box<dyn Operator>> = match stage {
                0 => None,
                1 => Some(Box::new(Pass)),
                _ => {
                    let numbers = restored.next().unwrap_or_default();
                    let chunks = numbers.iter().map(|n| StateChunk::item(n.to_le_bytes().to_vec())).collect();
                    operators = vec![vec![StatePart::plain("numbers", StateForm::Items, chunks)]];
                    Some(Box::new(Slow { numbers: Vec::new(), pause, watermark: MIN_WATERMARK }))
                }
            };
            let (outputs, partitions, resent) = match stage {
                2 => (vec![vec![]], Vec::new(), Vec::new()),
                edge => (
                    vec![vec![Target::Partition(0)]],
                    vec![partition(&transport, edge, index, shape[edge as usize + 1])],
                    from.resent(edge, index, shape[edge as usize]),
                ),
            };
            let ctx = OperatorContext {
                subtask: SubtaskIndex(index),
                ..context(["source", "pass", "slow"][stage as usize])
            };
            let chain = Chain::new(vec![ChainedOperator { operator, ctx, outputs }], partitions);
            let input = match stage {
                0 => Input::Source(SourceTask {
                    operator: Box::new(Range { next: 0, end: 0 }),
                    splits: splits.clone(),
                }),
                _ => Input::Gate(Box::new(gate(&transport, stage - 1, index, shape[stage as usize - 1]))),
            };
            let (mail, mailbox) = Mailbox::new();
            mails.push(mail);
            let checkpoints = Some(CheckpointLink::new(participant, report.clone()));
            let restore = Some(Restore { operators, resent, ..Restore::default() });
            let subtask = Subtask { input, chain, mailbox, checkpoints, restore };
            let (ended, cancelled) = (ended.clone(), cancelled.clone());
            local.spawn_local(async move { drop(ended.send(subtask.run(cancelled).await)) });
        }
        Self { shape, mails, reports, ends, _cancel: cancel }
    }

    fn subtasks(&self) -> usize {
        self.mails.len()
    }

    fn mail(&self, mail: &Mail) {
        self.mails.iter().for_each(|to| drop(to.send(mail.clone())));
    }

    fn trigger(&self, id: u64, alignment: Alignment) {
        let (kind, triggered) = (BarrierKind::Checkpoint, millstream_operator::Clock::now(&SystemClock));
        let barrier = Barrier { id, kind, alignment, triggered, stop: false, base: None };
        self.mail(&Mail::Checkpoint(barrier));
    }

    /// What all report for a checkpoint.
    async fn collect(&mut self, id: u64) -> Snapshot {
        let started = Instant::now();
        let (mut left, mut kept, mut in_flight) = (Vec::new(), Vec::new(), None);
        let mut missing = self.subtasks() + 1;
        while missing > 0 {
            let (_, report) = self.reports.recv().await.expect("they go on");
            match report {
                CheckpointReport::Ended => {}
                CheckpointReport::Declined { checkpoint, .. } => assert!(checkpoint < id),
                CheckpointReport::Snapshot { checkpoint, .. } if checkpoint < id => {}
                CheckpointReport::Snapshot { checkpoint, snapshot } => {
                    assert_eq!(checkpoint, id);
                    missing -= 1;
                    let parts =
                        snapshot.operators.into_iter().flat_map(|(_, parts)| parts).collect::<Vec<_>>();
                    left.extend(splits_of(&parts));
                    kept.extend(numbers_of(&parts));
                    if let Some(InFlight { received, unsent }) = snapshot.in_flight {
                        let all: &mut InFlight = in_flight.get_or_insert_default();
                        all.received.extend(received);
                        all.unsent.extend(unsent);
                    }
                }
            }
        }
        Snapshot { shape: self.shape, left, kept, in_flight, took: started.elapsed() }
    }

    /// Goes on to the end.
    async fn finish(mut self, id: u64) -> Snapshot {
        let mut ended = 0;
        while ended < self.subtasks() {
            match self.reports.recv().await.expect("they go on") {
                (_, CheckpointReport::Ended) => ended += 1,
                (participant, CheckpointReport::Declined { reason, .. }) => panic!("{participant}: {reason}"),
                (_, CheckpointReport::Snapshot { .. }) => {}
            }
        }
        self.trigger(id, Alignment::Unaligned);
        let snapshot = self.collect(id).await;
        self.mail(&Mail::Complete { checkpoint: id, last: true });
        for _ in 0..self.subtasks() {
            let end = self.ends.recv().await.expect("all end");
            assert!(matches!(end, SubtaskEnd::Finished), "{end:?}");
        }
        snapshot
    }
}

fn partition(transport: &LocalTransport, edge: u32, from: u32, receivers: u32) -> ResultPartition {
    let channel = |to| {
        let id = ChannelId { edge, from, to };
        OutgoingChannel { id, sender: transport.sender(id).expect("new") }
    };
    let partitioner = Partitioner::Hash { columns: vec![0], max_parallelism: MaxParallelism::DEFAULT };
    ResultPartition::new(partitioner, (0..receivers).map(channel).collect(), Duration::from_millis(1), from)
}

fn gate(transport: &LocalTransport, edge: u32, to: u32, senders: u32) -> InputGate {
    let ids: Vec<_> = (0..senders).map(|from| ChannelId { edge, from, to }).collect();
    let gate = transport.gate(&ids, GateBudget { exclusive: 4, floating: 8, elements: 16 }).expect("new");
    let channel = |(&id, receiver)| GateChannel { id, port: 0, receiver };
    InputGate::new(ids.iter().zip(gate).map(channel).collect())
}

const NUMBERS: i64 = 40_000;

fn all() -> Vec<i64> {
    (0..NUMBERS).collect()
}

#[tokio::test(flavor = "current_thread")]
async fn a_barrier_passes_slow_sinks_that_hold_an_aligned_one_up() {
    let local = LocalSet::new();
    let begin = Snapshot::begin([2, 2, 2], NUMBERS);
    let mut job = Job::start(&local, [2, 2, 2], &begin, Duration::from_millis(10));
    local
        .run_until(async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut took = Vec::new();
            let modes =
                [Alignment::Unaligned, Alignment::AlignedFor(Duration::from_millis(30)), Alignment::Aligned];
            for (id, alignment) in (1..).zip(modes) {
                job.trigger(id, alignment);
                let snapshot = job.collect(id).await;
                assert_eq!(snapshot.numbers(), all(), "{alignment:?}");
                assert_eq!(snapshot.in_flight.is_some(), alignment != Alignment::Aligned);
                took.push((snapshot.took, snapshot.under_way().len()));
            }
            let [unaligned, limited, aligned] = took[..] else { unreachable!() };
            assert!(unaligned.0 * 3 < aligned.0 && limited.0 * 2 < aligned.0, "{took:?}");
            assert!(unaligned.1 > 10 && limited.1 > 10 && aligned.1 == 0, "{took:?}");
        })
        .await;
}

#[tokio::test(flavor = "current_thread")]
async fn whatever_goes_on_has_each_row_once_at_any_parallelism() {
    let shapes = [[1, 1, 1], [2, 2, 2], [2, 4, 3], [1, 3, 4], [3, 2, 1], [1, 1, 1]];
    let mut from = Snapshot::begin(shapes[0], NUMBERS);
    let mut id = 0;
    for shape in shapes {
        let local = LocalSet::new();
        let mut job = Job::start(&local, shape, &from, Duration::from_millis(2));
        from = local
            .run_until(async {
                for pause in [0, 3, 20] {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    // One is given up at some moment, and the next one has everything all the same.
                    job.trigger(id + 1, Alignment::Unaligned);
                    for _ in 0..pause {
                        tokio::task::yield_now().await;
                    }
                    job.mail(&Mail::Abort(id + 1));
                    job.trigger(id + 2, Alignment::Unaligned);
                    id += 2;
                    let snapshot = job.collect(id).await;
                    assert_eq!(snapshot.numbers(), all(), "{shape:?}");
                    from = snapshot;
                }
                assert!(!from.under_way().is_empty() && !from.left.is_empty(), "it is in the middle");
                from
            })
            .await;
    }
    let local = LocalSet::new();
    let job = Job::start(&local, [2, 2, 2], &from, Duration::ZERO);
    let end = local.run_until(job.finish(1000)).await;
    assert!(end.left.is_empty() && end.under_way().is_empty());
    assert_eq!(end.numbers(), all());
}

#[tokio::test(flavor = "current_thread")]
async fn no_row_becomes_late() {
    let shape = [2, 1, 3];
    let mut from = Snapshot::begin(shape, NUMBERS / 10);
    for id in 1..20 {
        let local = LocalSet::new();
        let mut job = Job::start(&local, shape, &from, Duration::from_micros(300));
        from = local
            .run_until(async {
                tokio::time::sleep(Duration::from_micros(id * 200)).await;
                job.trigger(id, Alignment::AlignedFor(Duration::from_millis(id % 3)));
                job.collect(id).await
            })
            .await;
        assert_eq!(from.numbers(), (0..NUMBERS / 10).collect::<Vec<_>>());
    }
}

/// A barrier that overtakes at once.
fn overtaking(id: u64) -> StreamElement {
    let (kind, alignment) = (BarrierKind::Checkpoint, Alignment::Unaligned);
    StreamElement::Barrier(Barrier { id, kind, alignment, triggered: 0, stop: false, base: None })
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_barrier_has_overtaken_is_there_though_nothing_follows_it() {
    let transport = LocalTransport::new();
    let mut senders: Vec<_> = (0..2).map(|from| partition(&transport, 0, from, 1)).collect();
    let (mut gate, clock) = (gate(&transport, 0, 0, 2), SystemClock);
    senders[0].event(&overtaking(1)).await.expect("there is a gate");
    let first = poll_fn(|cx| gate.poll_event(cx, &clock)).await.expect("all are there");
    assert!(matches!(first, Some(GateEvent::Overtakes(_))), "{first:?}");
    assert!(poll_fn(|cx| gate.poll_event(cx, &clock)).now_or_never().is_none(), "the other one is to come");
    senders[1].event(&overtaking(1)).await.expect("there is a gate");
    let second = poll_fn(|cx| gate.poll_event(cx, &clock)).now_or_never();
    assert!(matches!(second, Some(Ok(None))), "{second:?}");
    assert_eq!(gate.take_recorded().map(|recorded| recorded.id), Some(1));
    assert!(poll_fn(|cx| gate.poll_event(cx, &clock)).now_or_never().is_none(), "it has been taken");
}

#[tokio::test(flavor = "current_thread")]
async fn rows_that_took_turns_go_again_to_whom_they_had_been_sent() {
    let transport = LocalTransport::new();
    let channel = |to| {
        let id = ChannelId { edge: 0, from: 0, to };
        OutgoingChannel { id, sender: transport.sender(id).expect("new") }
    };
    let channels = (0..2).map(channel).collect();
    let mut edge = ResultPartition::new(Partitioner::Rebalance, channels, Duration::from_millis(1), 0);
    let mut gates = [gate(&transport, 0, 0, 1), gate(&transport, 0, 1, 1)];
    let rows = || StreamElement::Batch(batch(&[0, 1, 2]));
    (0..3).for_each(|_| edge.resend(rows(), 1).expect("no keys"));
    edge.flush().await.expect("there are gates");
    for _ in 0..3 {
        let event = poll_fn(|cx| gates[1].poll_next(cx, &SystemClock)).await.expect("it is there");
        assert!(matches!(event, GateEvent::Batch(..)), "{event:?}");
    }
    assert!(poll_fn(|cx| gates[0].poll_next(cx, &SystemClock)).now_or_never().is_none(), "it may have ended");
}

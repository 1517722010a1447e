//! Checkpoints of a source and a subtask that reads from it.

use std::sync::Weak;

use millstream_types::{Alignment, Barrier, BarrierKind, SnapshotRequest, StateChunk, StateForm, StatePart};
use tokio::{sync::mpsc, task::LocalSet};

use super::*;
use crate::{CheckpointLink, CheckpointReport, Mail, Restore, TaskError};

/// Counts rows, notes what it is told, and keeps the count.
struct Counter {
    rows: i64,
    log: Log,
}

#[async_trait(?Send)]
impl Operator for Counter {
    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        _out: &mut Collector,
    ) -> Result<(), OperatorError> {
        self.rows += batch.rows() as i64;
        Ok(())
    }

    async fn snapshot(&mut self, _request: &SnapshotRequest) -> Result<Vec<StatePart>, OperatorError> {
        let chunk = StateChunk::item(self.rows.to_le_bytes().to_vec());
        Ok(vec![StatePart::plain("rows", StateForm::Subtask, vec![chunk])])
    }

    async fn restore(&mut self, parts: Vec<StatePart>) -> Result<(), OperatorError> {
        self.rows = count_of(&parts);
        Ok(())
    }

    async fn checkpoint_complete(&mut self, checkpoint: u64) -> Result<(), OperatorError> {
        self.log.lock().expect("no panic holds it").push(format!("complete {checkpoint}"));
        Ok(())
    }

    async fn end_of_input(&mut self, _out: &mut Collector) -> Result<Progress, OperatorError> {
        self.log.lock().expect("no panic holds it").push("end".to_owned());
        Ok(Progress::Done)
    }
}

fn count_of(parts: &[StatePart]) -> i64 {
    let bytes = parts.iter().flat_map(|p| &p.chunks).map(|c| c.bytes.clone()).next().expect("a count");
    i64::from_le_bytes(bytes.try_into().expect("a number"))
}

/// The state of a counter.
fn count(rows: i64) -> StatePart {
    StatePart::plain("rows", StateForm::Subtask, vec![StateChunk::item(rows.to_le_bytes().to_vec())])
}

fn barrier(id: u64) -> Barrier {
    let (kind, alignment) = (BarrierKind::Checkpoint, Alignment::Aligned);
    Barrier { id, kind, alignment, triggered: 0, stop: false, base: None }
}

/// A source of so many numbers and a counter behind it, on this thread.
struct Pair {
    mails: Vec<mpsc::UnboundedSender<Mail>>,
    reports: mpsc::UnboundedReceiver<(usize, CheckpointReport)>,
    ends: mpsc::UnboundedReceiver<SubtaskEnd>,
    log: Log,
    /// Gone with the reader of the source.
    reader: Weak<()>,
    _cancel: watch::Sender<bool>,
}

impl Pair {
    fn start(local: &LocalSet, numbers: usize, restore: Option<[Restore; 2]>) -> Self {
        let (log, transport) = (Log::default(), LocalTransport::new());
        let (report, reports) = mpsc::unbounded_channel();
        let (splits, service) = SplitService::new(Box::new(OneSplit(Some(numbers))), 1);
        let link = |participant| CheckpointLink::new(participant, report.clone());
        local.spawn_local(service.with_checkpoints(link(2), OperatorId::new("source")).run());
        let (cancel, cancelled) = watch::channel(false);
        let (ended, ends) = mpsc::unbounded_channel();
        let gate = transport.gate(&[ID], GateBudget::default()).expect("new");
        let channels = gate.into_iter().map(|receiver| GateChannel { id: ID, port: 0, receiver }).collect();
        let numbers = Numbers::default();
        let reader = Arc::downgrade(&numbers._alive);
        let source = SourceTask { operator: Box::new(numbers), splits };
        let head = ChainedOperator {
            operator: None,
            ctx: context("source"),
            outputs: vec![vec![Target::Partition(0)]],
        };
        let senders = vec![OutgoingChannel { id: ID, sender: transport.sender(ID).expect("new") }];
        let edge = ResultPartition::new(Partitioner::Forward, senders, Duration::ZERO, 0);
        let counter = Box::new(Counter { rows: 0, log: log.clone() });
        let counter =
            ChainedOperator { operator: Some(counter), ctx: context("counter"), outputs: vec![vec![]] };
        let parts = [
            (Input::Source(source), Chain::new(vec![head], vec![edge])),
            (Input::Gate(Box::new(InputGate::new(channels))), Chain::new(vec![counter], Vec::new())),
        ];
        let mut mails = Vec::new();
        let mut restore = restore.map(Vec::from).unwrap_or_default().into_iter();
        for (participant, (input, chain)) in parts.into_iter().enumerate() {
            let (mail, mailbox) = Mailbox::new();
            mails.push(mail);
            let (checkpoints, restore) = (Some(link(participant)), restore.next());
            let subtask = Subtask { input, chain, mailbox, checkpoints, restore };
            let (ended, cancelled) = (ended.clone(), cancelled.clone());
            local.spawn_local(async move { drop(ended.send(subtask.run(cancelled).await)) });
        }
        Self { mails, reports, ends, log, reader, _cancel: cancel }
    }

    fn mail(&self, mail: &Mail) {
        self.mails.iter().for_each(|to| to.send(mail.clone()).expect("it still runs"));
    }

    /// The reports until all three have taken a snapshot: the counter's, and who ended before.
    async fn snapshot(&mut self, id: u64) -> (Restore, Vec<usize>) {
        let (mut counter, mut ended, mut missing) = (None, Vec::new(), 3);
        while missing > 0 {
            let (participant, report) = self.reports.recv().await.expect("they go on");
            match report {
                CheckpointReport::Ended => ended.push(participant),
                CheckpointReport::Declined { reason, .. } => panic!("{reason}"),
                CheckpointReport::Snapshot { checkpoint, snapshot } => {
                    assert_eq!(checkpoint, id);
                    missing -= 1;
                    if participant == 1 {
                        let operators = snapshot.operators.into_iter().map(|(_, parts)| parts).collect();
                        counter = Some(Restore { ended: snapshot.ended, operators, ..Restore::default() });
                    }
                }
            }
        }
        (counter.expect("it took one"), ended)
    }

    async fn finish(&mut self) -> Vec<String> {
        for _ in 0..2 {
            let end = self.ends.recv().await.expect("both end");
            assert!(matches!(end, SubtaskEnd::Finished), "{end:?}");
        }
        self.log.lock().expect("all have ended").clone()
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_snapshot_has_what_lies_before_its_barrier_and_the_last_one_has_the_end() {
    let local = LocalSet::new();
    let mut pair = Pair::start(&local, 100, None);
    pair.mail(&Mail::Checkpoint(barrier(1)));
    let script = async {
        let (first, ended) = pair.snapshot(1).await;
        assert_eq!((count_of(&first.operators[0]), first.ended, ended), (0, false, vec![]));
        pair.mail(&Mail::Complete { checkpoint: 1, last: false });
        let mut ended = Vec::new();
        while ended.len() < 2 {
            let (participant, report) = pair.reports.recv().await.expect("they go on");
            assert!(matches!(report, CheckpointReport::Ended), "{report:?}");
            ended.push(participant);
        }
        assert_eq!(pair.reader.strong_count(), 0, "nobody waits for a reader that has ended");
        pair.mail(&Mail::Checkpoint(barrier(2)));
        let (last, _) = pair.snapshot(2).await;
        assert_eq!((count_of(&last.operators[0]), last.ended), (100, true));
        pair.mail(&Mail::Complete { checkpoint: 2, last: true });
        assert_eq!(pair.finish().await, ["complete 1", "end", "complete 2"]);
    };
    local.run_until(script).await;
}

#[tokio::test(flavor = "current_thread")]
async fn an_announced_barrier_that_the_end_overtakes_is_in_the_snapshot_of_the_end() {
    let local = LocalSet::new();
    let mut pair = Pair::start(&local, 3, None);
    let script = async {
        while !matches!(pair.reports.recv().await, Some((0, CheckpointReport::Ended))) {}
        pair.mail(&Mail::Checkpoint(barrier(1)));
        let (only, _) = pair.snapshot(1).await;
        assert_eq!((count_of(&only.operators[0]), only.ended), (3, true));
        pair.mail(&Mail::Complete { checkpoint: 1, last: true });
        assert_eq!(pair.finish().await, ["end", "complete 1"]);
    };
    local.run_until(script).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_subtask_that_had_ended_is_asked_for_nothing_but_its_state() {
    let local = LocalSet::new();
    let restore = [
        Restore { ended: true, operators: vec![vec![]], ..Restore::default() },
        Restore { ended: true, operators: vec![vec![count(7)]], ..Restore::default() },
    ];
    let mut pair = Pair::start(&local, 100, Some(restore));
    pair.mail(&Mail::Checkpoint(barrier(9)));
    let script = async {
        let (state, _) = pair.snapshot(9).await;
        assert_eq!((count_of(&state.operators[0]), state.ended), (7, true));
        assert_eq!(pair.reader.strong_count(), 0, "nobody waits for a reader that had ended");
        pair.mail(&Mail::Complete { checkpoint: 9, last: true });
        assert_eq!(pair.finish().await, ["complete 9"], "it is not told of the end again");
    };
    local.run_until(script).await;
}

fn stop(id: u64) -> Mail {
    Mail::Checkpoint(Barrier { stop: true, ..barrier(id) })
}

#[tokio::test(flavor = "current_thread")]
async fn a_job_that_stops_at_a_snapshot_has_no_end_of_input() {
    let local = LocalSet::new();
    let mut pair = Pair::start(&local, 100, None);
    pair.mail(&stop(1));
    let script = async {
        let (state, ended) = pair.snapshot(1).await;
        assert_eq!((count_of(&state.operators[0]), state.ended, ended), (0, false, vec![]));
        pair.mail(&Mail::Complete { checkpoint: 1, last: true });
        assert_eq!(pair.finish().await, ["complete 1"]);
        assert_eq!(pair.reader.strong_count(), 0);
    };
    local.run_until(script).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_job_stands_still_at_a_stop_and_goes_on_if_that_is_given_up() {
    let local = LocalSet::new();
    let mut pair = Pair::start(&local, 100, None);
    pair.mail(&stop(1));
    let script = async {
        pair.snapshot(1).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(pair.reports.try_recv().is_err(), "nobody has come to the end of the input");
        pair.mail(&Mail::Abort(1));
        while !matches!(pair.reports.recv().await, Some((1, CheckpointReport::Ended))) {}
        pair.mail(&Mail::Checkpoint(barrier(2)));
        let (last, _) = pair.snapshot(2).await;
        assert_eq!((count_of(&last.operators[0]), last.ended), (100, true));
        pair.mail(&Mail::Complete { checkpoint: 2, last: true });
        assert_eq!(pair.finish().await, ["end", "complete 2"]);
    };
    local.run_until(script).await;
}

#[tokio::test(flavor = "current_thread")]
async fn rows_for_a_subtask_that_had_ended_fail_it_and_are_not_lost() {
    let local = LocalSet::new();
    // The source has rows, and the counter behind it says that it had had all of them.
    let restore = [
        Restore { operators: vec![vec![]], ..Restore::default() },
        Restore { ended: true, operators: vec![vec![count(7)]], ..Restore::default() },
    ];
    let mut pair = Pair::start(&local, 100, Some(restore));
    let script = async {
        loop {
            match pair.ends.recv().await.expect("both end") {
                SubtaskEnd::Failed(TaskError::Restore { source, .. }) => {
                    let text = source.to_string();
                    assert!(text.contains("1 rows have come to it since"), "{text}");
                    return;
                }
                SubtaskEnd::Finished => panic!("the rows are nowhere"),
                _ => {}
            }
        }
    };
    local.run_until(script).await;
}

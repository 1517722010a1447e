//! A hash exchange within a process: one sending subtask, as many receiving ones as it deals out to, all in one slot,
//! so that nothing depends on how threads take turns.

use std::{sync::Arc, time::Duration};

use arrow_array::{BinaryViewArray, Int64Array};
use async_trait::async_trait;
use millstream_net::{ChannelId, GateBudget, LocalTransport, Transport};
use millstream_operator::{
    Assignment, Collector, ConnectorError, Operator, OperatorError, SourceOperator, SourceProgress, Split,
    SplitEnumerator,
};
use millstream_task::{
    Chain, ChainedOperator, GateChannel, Input, InputGate, Mailbox, OutgoingChannel, Partitioner,
    ResultPartition, SourceTask, SplitRequests, SplitService, Subtask, SubtaskEnd, Target,
};
use millstream_types::{Batch, DataType, MIN_WATERMARK, MaxParallelism};
use tokio::{runtime::Runtime, sync::watch, task::LocalSet};

use super::{ROWS, Work};
use crate::support::{batch, place};

/// Rows with a number, the key, and 100 bytes, to two subtasks.
pub(super) fn to_two() -> Box<dyn Work> {
    Box::new(Exchange::new(2))
}

/// The same to sixteen.
pub(super) fn to_sixteen() -> Box<dyn Work> {
    Box::new(Exchange::new(16))
}

struct Exchange {
    runtime: Runtime,
    batches: Vec<Batch>,
    targets: u32,
}

impl Exchange {
    fn new(targets: u32) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        Self { runtime, batches: (0..BATCHES).map(rows).collect(), targets }
    }
}

impl Work for Exchange {
    fn run(&mut self, steps: u64) {
        let (requests, service) = SplitService::new(Box::new(OneSplit { given: false }), 1);
        let transport = LocalTransport::new();
        let (cancel, cancelled) = watch::channel(false);
        let source = Repeat { batches: self.batches.clone(), left: steps };
        let mut subtasks = vec![sender(&transport, source, requests, self.targets)];
        subtasks.extend((0..self.targets).map(|target| receiver(&transport, target)));
        let all = LocalSet::new();
        all.spawn_local(service.run());
        let running: Vec<_> =
            subtasks.into_iter().map(|subtask| all.spawn_local(subtask.run(cancelled.clone()))).collect();
        self.runtime.block_on(all.run_until(async {
            for subtask in running {
                let end = subtask.await.expect("it does not panic");
                assert!(matches!(end, SubtaskEnd::Finished), "{end:?}");
            }
        }));
        drop(cancel);
    }
}

fn sender(transport: &LocalTransport, source: Repeat, splits: SplitRequests, targets: u32) -> Subtask {
    let open = |target| {
        let id = channel(target);
        OutgoingChannel { id, sender: transport.sender(id).expect("a new channel") }
    };
    let senders = (0..targets).map(open).collect();
    let partitioner = Partitioner::Hash { columns: vec![0], max_parallelism: MaxParallelism::DEFAULT };
    // No row waits for its company for so long: only full buffers and the end send any on.
    let edge = ResultPartition::new(partitioner, senders, Duration::from_secs(3600), 0);
    let head = ChainedOperator { operator: None, ctx: place(), outputs: vec![vec![Target::Partition(0)]] };
    let input = Input::Source(SourceTask { operator: Box::new(source), splits });
    subtask(input, Chain::new(vec![head], vec![edge]))
}

fn receiver(transport: &LocalTransport, target: u32) -> Subtask {
    let gate = transport.gate(&[channel(target)], GateBudget::default()).expect("a new channel");
    let id = channel(target);
    let channels = gate.into_iter().map(|receiver| GateChannel { id, port: 0, receiver }).collect();
    let end = ChainedOperator { operator: Some(Box::new(Discard)), ctx: place(), outputs: vec![Vec::new()] };
    let input = Input::Gate(Box::new(InputGate::new(channels)));
    subtask(input, Chain::new(vec![end], Vec::new()))
}

fn subtask(input: Input, chain: Chain) -> Subtask {
    Subtask { input, chain, mailbox: Mailbox::new().1, checkpoints: None, restore: None }
}

fn channel(to: u32) -> ChannelId {
    ChannelId { edge: 0, from: 0, to }
}

fn rows(index: usize) -> Batch {
    let keys =
        (0..ROWS).map(|row| ((index * ROWS + row) as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64));
    let record = [7; 100];
    let key = Arc::new(Int64Array::from_iter_values(keys));
    let record = Arc::new(BinaryViewArray::from_iter_values((0..ROWS).map(|_| &record)));
    batch(vec![("key", DataType::Int64, key), ("record", DataType::Binary, record)], 0)
}

/// One split.
struct OneSplit {
    given: bool,
}

impl SplitEnumerator for OneSplit {
    fn next_split(&mut self, _subtask: u32) -> Result<Assignment, ConnectorError> {
        match std::mem::replace(&mut self.given, true) {
            true => Ok(Assignment::Finished),
            false => {
                let (id, payload, watermark) = ("rows".into(), Vec::new(), MIN_WATERMARK);
                Ok(Assignment::Splits(vec![Split { id, payload, watermark }]))
            }
        }
    }

    fn snapshot(&self) -> Result<Vec<u8>, ConnectorError> {
        Ok(Vec::new())
    }
}

/// The same batches again and again.
struct Repeat {
    batches: Vec<Batch>,
    left: u64,
}

#[async_trait(?Send)]
impl SourceOperator for Repeat {
    fn start(&mut self, _splits: Vec<Split>) -> Result<(), OperatorError> {
        Ok(())
    }

    async fn read(&mut self, out: &mut Collector) -> Result<SourceProgress, OperatorError> {
        if self.left == 0 {
            return Ok(SourceProgress::SplitFinished);
        }
        self.left -= 1;
        out.emit(0, self.batches[self.left as usize % self.batches.len()].clone());
        Ok(SourceProgress::Read)
    }

    fn status(&mut self, _idle: bool, _out: &mut Collector) {}

    fn snapshot(&self) -> Result<Vec<Split>, OperatorError> {
        Ok(Vec::new())
    }
}

/// Takes rows and makes none.
struct Discard;

#[async_trait(?Send)]
impl Operator for Discard {
    async fn process(
        &mut self,
        _port: usize,
        batch: Batch,
        _out: &mut Collector,
    ) -> Result<(), OperatorError> {
        assert!(!batch.is_empty());
        Ok(())
    }
}

const BATCHES: usize = 8;

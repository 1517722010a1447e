//! A chain: operators that run in one subtask and call each other directly.
//!
//! Calls are kept on a stack of their own instead of the thread's, innermost first: whatever an operator makes is
//! passed on before it is called again, so an operator that fires a million windows in steps (`Progress::More`)
//! never has more than one step's rows in memory.

use std::{
    rc::Rc,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use millstream_operator::{
    Collector, Operator, OperatorContext, OperatorError, OperatorMetrics, Progress, SourceOperator,
    SourceProgress,
};
use millstream_types::{Barrier, Batch, OperatorId, SnapshotRequest, StatePart, StreamElement};

use crate::{
    PiecesOf, Resent, ResultPartition, TaskError, in_flight::Overtaken, output::SendError,
    overdraft::Overdraft,
};

/// Where what comes out of an operator's port goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To an operator of the same chain, by its position, and its input port.
    Operator(usize, usize),
    /// To an outgoing edge, by its position.
    Partition(usize),
}

/// An operator in its chain.
pub struct ChainedOperator {
    /// The operator; none for a source at the head, whose reader the subtask drives itself.
    pub operator: Option<Box<dyn Operator>>,
    /// Where it runs.
    pub ctx: OperatorContext,
    /// The targets of each of its output ports.
    pub outputs: Vec<Vec<Target>>,
}

/// The operators of a subtask with its outgoing edges.
pub struct Chain {
    operators: Vec<ChainedOperator>,
    partitions: Vec<ResultPartition>,
    stack: Vec<Step>,
    collector: Collector,
    overdraft: Rc<Overdraft>,
}

enum Step {
    /// Calls an operator.
    Call(usize, Call),
    /// Passes on what an operator made on a port.
    Pass(usize, usize, StreamElement),
}

#[derive(Clone)]
enum Call {
    Batch(usize, Batch),
    Watermark(i64),
    ProcessingTime(i64),
    Idle(bool),
    Barrier(Barrier),
    EndOfInput,
}

impl Chain {
    /// A chain of these operators, the head first.
    pub fn new(operators: Vec<ChainedOperator>, mut partitions: Vec<ResultPartition>) -> Self {
        let overdraft = Rc::<Overdraft>::default();
        partitions.iter_mut().for_each(|partition| partition.set_overdraft(overdraft.clone()));
        Self { operators, partitions, stack: Vec::new(), collector: Collector::new(), overdraft }
    }

    /// `delays[0]`: how messages name the subtask.
    pub(crate) fn name(&self) -> String {
        self.operators.first().map_or_else(String::new, |o| o.ctx.name())
    }

    /// Where the head runs.
    pub(crate) fn head(&self) -> &OperatorContext {
        &self.operators[0].ctx
    }

    /// Gives the operators what a snapshot has of them, by their position.
    pub(crate) async fn restore(&mut self, state: Vec<Vec<StatePart>>) -> Result<(), TaskError> {
        for (index, parts) in state.into_iter().enumerate() {
            let Some(ChainedOperator { operator: Some(operator), .. }) = self.operators.get_mut(index) else {
                continue;
            };
            let restored = operator.restore(parts).await;
            restored.map_err(|e| self.failed(index, e))?;
        }
        Ok(())
    }

    /// Gives the operators what a snapshot has of them and is too large to be handed over at once.
    pub(crate) async fn restore_pieces(&mut self, pieces: Vec<PiecesOf>) -> Result<(), TaskError> {
        for (index, mut pieces) in pieces {
            loop {
                let next = pieces.next().await;
                let next = next.map_err(|source| TaskError::Restore { subtask: self.name(), source })?;
                let Some(piece) = next else { break };
                let Some(operator) = &mut self.operators[index].operator else { break };
                let restored = operator.restore_piece(piece).await;
                restored.map_err(|e| self.failed(index, e))?;
            }
        }
        Ok(())
    }

    /// Opens the operators, the last one first, so that each finds those behind it open.
    pub(crate) async fn open(&mut self) -> Result<(), TaskError> {
        for index in (0..self.operators.len()).rev() {
            if let Some(operator) = &mut self.operators[index].operator {
                let opened = operator.open().await;
                opened.map_err(|e| self.failed(index, e))?;
            }
        }
        Ok(())
    }

    /// Gives rows to the head.
    pub(crate) async fn process(&mut self, port: usize, batch: Batch) -> Result<(), TaskError> {
        self.run(Step::Call(0, Call::Batch(port, batch))).await
    }

    /// Lets the source at the head read, and passes on what it read.
    pub(crate) async fn read(
        &mut self,
        source: &mut dyn SourceOperator,
    ) -> Result<SourceProgress, TaskError> {
        let started = Instant::now();
        let progress = source.read(&mut self.collector).await;
        OperatorMetrics::add(&self.head().metrics.busy_nanos, nanos(started.elapsed()));
        let progress = progress.map_err(|e| self.failed(0, e))?;
        self.run_collected().await?;
        Ok(progress)
    }

    /// Tells those behind the source at the head whether rows are to be expected.
    pub(crate) async fn source_status(
        &mut self,
        source: &mut dyn SourceOperator,
        idle: bool,
    ) -> Result<(), TaskError> {
        source.status(idle, &mut self.collector);
        self.run_collected().await
    }

    /// Says that the head failed.
    pub(crate) fn head_failed(&self, error: OperatorError) -> TaskError {
        self.failed(0, error)
    }

    /// Tells the head how far event time is.
    pub(crate) async fn watermark(&mut self, watermark: i64) -> Result<(), TaskError> {
        self.run(Step::Call(0, Call::Watermark(watermark))).await
    }

    /// Tells the head whether rows are to be expected.
    pub(crate) async fn idle(&mut self, idle: bool) -> Result<(), TaskError> {
        self.run(Step::Call(0, Call::Idle(idle))).await
    }

    /// Has everything that lies before a barrier go out, and then the barrier.
    pub(crate) async fn barrier(&mut self, barrier: Barrier) -> Result<(), TaskError> {
        self.run(Step::Call(0, Call::Barrier(barrier))).await
    }

    /// What lets it go on where an outgoing edge has to wait.
    pub(crate) fn overdraft(&self) -> Rc<Overdraft> {
        self.overdraft.clone()
    }

    /// What the last barrier has overtaken, if it has overtaken anything.
    pub(crate) fn take_overtaken(&mut self) -> Option<Vec<Overtaken>> {
        let of_edges = self.partitions.iter_mut().filter_map(ResultPartition::take_overtaken);
        of_edges.reduce(|mut all, of_edge| {
            all.extend(of_edge);
            all
        })
    }

    /// Whether outgoing edges have put something by.
    pub(crate) fn is_behind(&self) -> bool {
        self.overdraft.is_used()
    }

    /// Sends what outgoing edges have put by.
    pub(crate) async fn catch_up(&mut self) -> Result<(), TaskError> {
        for edge in 0..self.partitions.len() {
            let sent = self.partitions[edge].catch_up().await;
            self.sent(0, edge, sent.map_err(SendError::from))?;
        }
        Ok(())
    }

    /// Takes what was under way at the snapshot that it goes on from: what goes over an edge is put by, what an operator
    /// of the chain was to get it gets.
    pub(crate) async fn resend(&mut self, resent: Vec<Resent>) -> Result<(), TaskError> {
        for Resent { target, elements } in resent {
            for (to, element) in elements {
                match (target, element) {
                    (Target::Partition(edge), element) => {
                        let put = self.partitions[edge].resend(element, to);
                        self.sent(0, edge, put.map_err(SendError::Key))?;
                    }
                    (Target::Operator(index, port), StreamElement::Batch(batch)) => {
                        self.run(Step::Call(index, Call::Batch(port, batch))).await?;
                    }
                    (Target::Operator(..), _) => {}
                }
            }
        }
        Ok(())
    }

    /// What the operators keep, the head first.
    pub(crate) async fn snapshot(
        &mut self,
        request: &SnapshotRequest,
    ) -> Result<Vec<(OperatorId, Vec<StatePart>)>, TaskError> {
        let mut snapshot = Vec::with_capacity(self.operators.len());
        for index in 0..self.operators.len() {
            let ChainedOperator { operator, ctx, .. } = &mut self.operators[index];
            let id = ctx.operator.clone();
            let parts = match operator {
                Some(operator) => operator.snapshot(request).await,
                None => Ok(Vec::new()),
            };
            snapshot.push((id, parts.map_err(|e| self.failed(index, e))?));
        }
        Ok(snapshot)
    }

    /// Tells the operators that a checkpoint is complete.
    pub(crate) async fn checkpoint_complete(&mut self, checkpoint: u64) -> Result<(), TaskError> {
        for index in 0..self.operators.len() {
            if let Some(operator) = &mut self.operators[index].operator {
                let told = operator.checkpoint_complete(checkpoint).await;
                told.map_err(|e| self.failed(index, e))?;
            }
        }
        Ok(())
    }

    /// Tells those behind the chain that nothing follows, past operators that have processed the end already.
    pub(crate) async fn pass_end(&mut self) -> Result<(), TaskError> {
        for edge in 0..self.partitions.len() {
            self.send(0, edge, &StreamElement::EndOfInput).await?;
        }
        Ok(())
    }

    /// Ends the input of the head, and so of all.
    pub(crate) async fn end(&mut self) -> Result<(), TaskError> {
        self.run(Step::Call(0, Call::EndOfInput)).await
    }

    /// Closes the operators, the head first.
    pub(crate) async fn close(&mut self) -> Result<(), TaskError> {
        for index in 0..self.operators.len() {
            if let Some(operator) = &mut self.operators[index].operator {
                let closed = operator.close().await;
                closed.map_err(|e| self.failed(index, e))?;
            }
        }
        Ok(())
    }

    /// The next processing time at which an operator wants to be called.
    pub(crate) fn next_wakeup(&self) -> Option<i64> {
        self.operators.iter().filter_map(|o| o.operator.as_ref()?.next_wakeup()).min()
    }

    /// Calls every operator whose time has come.
    pub(crate) async fn processing_time(&mut self, now: i64) -> Result<(), TaskError> {
        for index in 0..self.operators.len() {
            let operator = self.operators[index].operator.as_ref();
            if operator.and_then(|o| o.next_wakeup()).is_some_and(|due| due <= now) {
                self.run(Step::Call(index, Call::ProcessingTime(now))).await?;
            }
        }
        Ok(())
    }

    /// Sends on what operators and outgoing edges hold back.
    pub(crate) async fn flush(&mut self) -> Result<(), TaskError> {
        for index in 0..self.operators.len() {
            if let Some(operator) = &mut self.operators[index].operator {
                let flushed = operator.flush().await;
                flushed.map_err(|e| self.failed(index, e))?;
            }
        }
        for index in 0..self.partitions.len() {
            let sent = self.partitions[index].flush().await;
            self.sent(0, index, sent)?;
        }
        Ok(())
    }

    async fn run(&mut self, first: Step) -> Result<(), TaskError> {
        self.stack.push(first);
        self.unwind().await
    }

    /// Passes on what the head has put into the collector.
    async fn run_collected(&mut self) -> Result<(), TaskError> {
        self.take_collected(0);
        self.unwind().await
    }

    async fn unwind(&mut self) -> Result<(), TaskError> {
        while let Some(step) = self.stack.pop() {
            match step {
                Step::Call(index, call) => self.call(index, call).await?,
                Step::Pass(index, port, element) => self.pass(index, port, element).await?,
            }
        }
        Ok(())
    }

    async fn call(&mut self, index: usize, call: Call) -> Result<(), TaskError> {
        let started = Instant::now();
        let ChainedOperator { operator, ctx, .. } = &mut self.operators[index];
        let progress = match operator {
            Some(operator) => invoke(&mut **operator, call.clone(), &ctx.metrics, &mut self.collector).await,
            None => Ok(pass_through(&call, &mut self.collector)),
        };
        OperatorMetrics::add(&ctx.metrics.busy_nanos, nanos(started.elapsed()));
        let progress = progress.map_err(|e| match &call {
            Call::Batch(_, batch) => self.failed(index, e.at(batch)),
            _ => self.failed(index, e),
        })?;
        if progress == Progress::More {
            self.stack.push(Step::Call(index, call));
        } else if let Some(last) = passed_on(call) {
            self.stack.push(Step::Pass(index, 0, last));
        }
        self.take_collected(index);
        Ok(())
    }

    fn take_collected(&mut self, index: usize) {
        let made = self.stack.len();
        while let Some((port, element)) = self.collector.pop() {
            self.stack.push(Step::Pass(index, port, element));
        }
        self.stack[made..].reverse();
    }

    async fn pass(&mut self, index: usize, port: usize, element: StreamElement) -> Result<(), TaskError> {
        let ChainedOperator { ctx, outputs, .. } = &self.operators[index];
        let targets: Vec<Target> = match &element {
            StreamElement::Batch(batch) => {
                OperatorMetrics::add(&ctx.metrics.records_out, batch.rows() as u64);
                outputs.get(port).cloned().unwrap_or_default()
            }
            StreamElement::Watermark(watermark) => {
                ctx.metrics.watermark.store(*watermark, Relaxed);
                all_targets(outputs)
            }
            _ => all_targets(outputs),
        };
        // Operators of the chain go onto the stack last one first, so that the first one comes first.
        for target in targets.iter().rev() {
            if let Target::Operator(next, port) = *target {
                self.stack.extend(call_for(&element, port).map(|call| Step::Call(next, call)));
            }
        }
        for target in targets {
            if let Target::Partition(edge) = target {
                self.send(index, edge, &element).await?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, index: usize, edge: usize, element: &StreamElement) -> Result<(), TaskError> {
        let partition = &mut self.partitions[edge];
        let sent = match element {
            StreamElement::Batch(batch) => partition.send(batch.clone()).await,
            event => partition.event(event).await,
        };
        self.sent(index, edge, sent)
    }

    /// Books the time that an operator has waited for credit, and says whose failure it was.
    fn sent(&mut self, index: usize, edge: usize, sent: Result<(), SendError>) -> Result<(), TaskError> {
        let blocked = self.partitions[edge].take_blocked();
        OperatorMetrics::add(&self.operators[index].ctx.metrics.backpressured_nanos, nanos(blocked));
        sent.map_err(|error| match error {
            SendError::Key(error) => self.failed(index, error.into()),
            SendError::Disconnected(source) => TaskError::Disconnected { subtask: self.name(), source },
        })
    }

    fn failed(&self, index: usize, source: OperatorError) -> TaskError {
        TaskError::Operator { operator: self.operators[index].ctx.name(), source }
    }
}

async fn invoke(
    operator: &mut dyn Operator,
    call: Call,
    metrics: &OperatorMetrics,
    out: &mut Collector,
) -> Result<Progress, OperatorError> {
    match call {
        Call::Batch(port, batch) => {
            OperatorMetrics::add(&metrics.records_in, batch.rows() as u64);
            operator.process(port, batch, out).await?;
        }
        Call::Watermark(watermark) => return operator.watermark(watermark, out).await,
        Call::ProcessingTime(now) => return operator.processing_time(now, out).await,
        Call::EndOfInput => return operator.end_of_input(out).await,
        Call::Idle(idle) => operator.status(idle, out),
        Call::Barrier(barrier) => operator.before_barrier(&barrier, out).await?,
    }
    Ok(Progress::Done)
}

/// What a source at the head makes of what it is told.
fn pass_through(call: &Call, out: &mut Collector) -> Progress {
    match *call {
        Call::Watermark(watermark) => out.watermark(watermark),
        Call::Idle(idle) => out.status(idle),
        _ => {}
    }
    Progress::Done
}

/// What follows by itself once an operator is through with a call.
fn passed_on(call: Call) -> Option<StreamElement> {
    match call {
        Call::Barrier(barrier) => Some(StreamElement::Barrier(barrier)),
        Call::EndOfInput => Some(StreamElement::EndOfInput),
        _ => None,
    }
}

fn call_for(element: &StreamElement, port: usize) -> Option<Call> {
    Some(match element {
        StreamElement::Batch(batch) => Call::Batch(port, batch.clone()),
        StreamElement::Watermark(watermark) => Call::Watermark(*watermark),
        StreamElement::Barrier(barrier) => Call::Barrier(barrier.clone()),
        StreamElement::Idle => Call::Idle(true),
        StreamElement::Active => Call::Idle(false),
        StreamElement::EndOfInput => Call::EndOfInput,
        StreamElement::LatencyMarker { .. } => return None,
    })
}

/// Each target once: an event goes over an edge once, whatever number of ports feed it.
fn all_targets(outputs: &[Vec<Target>]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for &target in outputs.iter().flatten() {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    targets
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

//! A job on one thread, a step at a time, for tests: rows, watermarks and processing time come from whoever drives it,
//! and what arrives at its sinks goes back to him.
//!
//! The operators are those of an ordinary run, one subtask each; connectors are left out and exchanges are calls. A
//! step returns when everything that it causes has been done, and operators are called in an order that depends on
//! nothing but the job, so the same steps always make the same rows.

use std::{iter, sync::Arc};

use millstream_graph::{ExecutionGraph, JobGraph, LogicalEdge, NodeBody, NodeIndex, Plan};
use millstream_net::LocalTransport;
use millstream_operator::{
    Clock, Collector, ManualClock, Operator, OperatorContext, OperatorError, Progress,
};
use millstream_operators::TimeAssigner;
use millstream_protocol::{Valve, ValveEvents};
use millstream_task::TaskError;
use millstream_types::{Alignment, Barrier, BarrierKind, Batch, PortIndex, RunId, StreamElement};

use crate::{
    Modules, StartError,
    build::{Blueprint, SubtaskBuilder},
};

/// A job that goes on by one step whenever it is told to. After an error it is not to be used again.
pub struct SteppedJob {
    plan: Arc<Plan>,
    nodes: Vec<Node>,
    clock: Arc<ManualClock>,
    /// What is still to be done in this step, the next one last.
    stack: Vec<Task>,
    collector: Collector,
    arrivals: Vec<Arrival>,
}

/// Rows that have come to a sink.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The sink.
    pub sink: NodeIndex,
    /// The rows.
    pub batch: Batch,
}

/// Rows that a source could not have sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RowRefused {
    /// Why its event time cannot be used.
    pub reason: String,
}

struct Node {
    /// None for sources and sinks.
    operator: Option<Box<dyn Operator>>,
    ctx: OperatorContext,
    /// Over the edges into it.
    valve: Valve,
}

enum Task {
    /// Brings an element over an edge, by its position.
    Deliver(usize, StreamElement),
    Call(NodeIndex, Call),
}

#[derive(Clone)]
enum Call {
    Batch(PortIndex, Batch),
    Watermark(i64),
    ProcessingTime(i64),
    Idle(bool),
    Barrier,
    EndOfInput,
}

impl SteppedJob {
    /// Builds the operators of a plan. Whatever parallelism it has, each is there once. `clock` is the time that they
    /// see; it is set by [`SteppedJob::processing_time`] only.
    pub fn new(plan: Plan, modules: &Modules, clock: Arc<ManualClock>) -> Result<Self, StepError> {
        let plan = Arc::new(with_parallelism_1(plan));
        let blueprint = Arc::new(Blueprint::of_functions(&plan, modules)?);
        let mut nodes: Vec<Option<Node>> = plan.logical.nodes.iter().map(|_| None).collect();
        for subtask in &plan.execution.subtasks {
            let chain = &plan.job.vertex(subtask.vertex).chain;
            let builder = SubtaskBuilder {
                plan: plan.clone(),
                blueprint: blueprint.clone(),
                subtask: subtask.clone(),
                run: RunId::default(),
                attempt: plan.execution.attempt,
                metrics: chain.iter().map(|_| Arc::default()).collect(),
                splits: None,
                transport: Arc::new(LocalTransport::new()),
                clock: clock.clone(),
                checkpoints: None,
                restore: None,
            };
            for (position, chained) in chain.iter().enumerate() {
                nodes[chained.node.0] = Some(Node::new(&builder, chained.node, position)?);
            }
        }
        let nodes = nodes.into_iter().flatten().collect();
        Ok(Self { plan, nodes, clock, stack: Vec::new(), collector: Collector::new(), arrivals: Vec::new() })
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Opens the operators, those behind first.
    pub async fn open(&mut self) -> Result<(), TaskError> {
        for node in self.nodes.iter_mut().rev() {
            if let Some(operator) = &mut node.operator {
                operator.open().await.map_err(|e| failed(&node.ctx, e))?;
            }
        }
        Ok(())
    }

    /// Gives the rows the event times that the source would give them, if it gives any.
    pub fn with_source_times(
        &self,
        source: NodeIndex,
        port: usize,
        batch: Batch,
    ) -> Result<Batch, RowRefused> {
        let NodeBody::Source(body) = &self.plan.logical.node(source).body else { return Ok(batch) };
        let Some(time) = &body.time else { return Ok(batch) };
        let column = time.columns.get(port).copied().flatten();
        let (batch, refused) =
            TimeAssigner::new(column).assign(batch).map_err(|e| RowRefused { reason: e.to_string() })?;
        match refused.into_iter().next() {
            Some(refused) => Err(RowRefused { reason: refused.reason }),
            None => Ok(batch),
        }
    }

    /// A source sends rows, which have their event times.
    pub async fn rows(
        &mut self,
        source: NodeIndex,
        port: usize,
        batch: Batch,
    ) -> Result<Vec<Arrival>, TaskError> {
        self.send(source, PortIndex(port as u32), StreamElement::Batch(batch));
        self.step().await
    }

    /// A source says how far event time is.
    pub async fn watermark(&mut self, source: NodeIndex, watermark: i64) -> Result<Vec<Arrival>, TaskError> {
        self.send(source, PortIndex(0), StreamElement::Watermark(watermark));
        self.step().await
    }

    /// Processing time goes on to `now`.
    pub async fn processing_time(&mut self, now: i64) -> Result<Vec<Arrival>, TaskError> {
        self.clock.set(now);
        self.step().await
    }

    /// A barrier goes through the job: every operator emits what it has to before it.
    pub async fn barrier(&mut self) -> Result<Vec<Arrival>, TaskError> {
        // Upstream nodes come first, and what they emit has arrived before the barrier does.
        for index in 0..self.nodes.len() {
            self.stack.push(Task::Call(NodeIndex(index), Call::Barrier));
            self.work().await?;
        }
        self.step().await
    }

    /// A source has come to its end.
    pub async fn end(&mut self, source: NodeIndex) -> Result<Vec<Arrival>, TaskError> {
        self.send(source, PortIndex(0), StreamElement::EndOfInput);
        self.step().await
    }

    /// Closes the operators.
    pub async fn close(&mut self) -> Result<(), TaskError> {
        for node in &mut self.nodes {
            if let Some(operator) = &mut node.operator {
                operator.close().await.map_err(|e| failed(&node.ctx, e))?;
            }
        }
        Ok(())
    }

    /// Does everything that is to be done, then what has become due by processing time.
    async fn step(&mut self) -> Result<Vec<Arrival>, TaskError> {
        self.work().await?;
        let now = self.clock.now();
        for index in 0..self.nodes.len() {
            let operator = self.nodes[index].operator.as_ref();
            if operator.and_then(|o| o.next_wakeup()).is_some_and(|due| due <= now) {
                self.stack.push(Task::Call(NodeIndex(index), Call::ProcessingTime(now)));
                self.work().await?;
            }
        }
        Ok(std::mem::take(&mut self.arrivals))
    }

    async fn work(&mut self) -> Result<(), TaskError> {
        while let Some(task) = self.stack.pop() {
            match task {
                Task::Deliver(edge, element) => self.deliver(edge, element),
                Task::Call(node, call) => self.call(node, call).await?,
            }
        }
        Ok(())
    }

    /// Brings an element to the node at the end of an edge; the valve says what the node has to see of it.
    fn deliver(&mut self, edge: usize, element: StreamElement) {
        let LogicalEdge { to, input, .. } = self.plan.logical.edges[edge];
        let channel = self.plan.logical.edges[..edge].iter().filter(|e| e.to == to).count();
        let valve = &mut self.nodes[to.0].valve;
        let (events, rows) = match element {
            StreamElement::Batch(batch) => (valve.handle_active(channel), Some(batch)),
            StreamElement::Watermark(watermark) => (valve.handle_watermark(channel, watermark), None),
            StreamElement::Idle => (valve.handle_idle(channel), None),
            StreamElement::Active => (valve.handle_active(channel), None),
            StreamElement::EndOfInput => (valve.handle_end(channel), None),
            StreamElement::Barrier(_) | StreamElement::LatencyMarker { .. } => (ValveEvents::default(), None),
        };
        let idle = events.idle.map(Call::Idle);
        let watermark = events.watermark.map(Call::Watermark);
        let end = events.ended.then_some(Call::EndOfInput);
        let rows = rows.map(|batch| Call::Batch(input, batch));
        let calls = [end, rows, watermark, idle].into_iter().flatten();
        self.stack.extend(calls.map(|call| Task::Call(to, call)));
    }

    async fn call(&mut self, index: NodeIndex, call: Call) -> Result<(), TaskError> {
        let Node { operator, ctx, .. } = &mut self.nodes[index.0];
        let Some(operator) = operator else {
            if let Call::Batch(_, batch) = call {
                self.arrivals.push(Arrival { sink: index, batch });
            }
            return Ok(());
        };
        let progress = invoke(&mut **operator, call.clone(), &mut self.collector).await;
        let progress = progress.map_err(|e| failed(ctx, e))?;
        // What comes last goes onto the stack first.
        let made: Vec<_> = iter::from_fn(|| self.collector.pop()).collect();
        match call {
            _ if progress == Progress::More => self.stack.push(Task::Call(index, call)),
            Call::EndOfInput => self.send(index, PortIndex(0), StreamElement::EndOfInput),
            _ => {}
        }
        for (port, element) in made.into_iter().rev() {
            self.send(index, PortIndex(port as u32), element);
        }
        Ok(())
    }

    /// Puts an element on the edges out of a node: rows on those of their port, everything else on all.
    fn send(&mut self, from: NodeIndex, port: PortIndex, element: StreamElement) {
        let is_batch = matches!(element, StreamElement::Batch(_));
        let edges = self.plan.logical.edges.iter().enumerate().rev();
        let edges = edges.filter(|(_, e)| e.from == from && (!is_batch || e.output == port));
        self.stack.extend(edges.map(|(edge, _)| Task::Deliver(edge, element.clone())));
    }
}

/// A job that cannot be driven.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It cannot be built.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An operator cannot be built.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl Node {
    fn new(builder: &SubtaskBuilder, index: NodeIndex, position: usize) -> Result<Self, TaskError> {
        let ctx = builder.context(builder.plan.logical.node(index), position);
        let operator = builder.operator(index, &ctx).map_err(|e| failed(&ctx, e))?;
        let valve = Valve::new(builder.plan.logical.edges_into(index).count());
        Ok(Self { operator, ctx, valve })
    }
}

fn failed(ctx: &OperatorContext, source: OperatorError) -> TaskError {
    TaskError::Operator { operator: ctx.name(), source }
}

async fn invoke(
    operator: &mut dyn Operator,
    call: Call,
    out: &mut Collector,
) -> Result<Progress, OperatorError> {
    match call {
        Call::Batch(port, batch) => operator.process(port.index(), batch, out).await?,
        Call::Watermark(watermark) => return operator.watermark(watermark, out).await,
        Call::ProcessingTime(now) => return operator.processing_time(now, out).await,
        Call::EndOfInput => return operator.end_of_input(out).await,
        Call::Idle(idle) => operator.status(idle, out),
        Call::Barrier => operator.before_barrier(&BARRIER, out).await?,
    }
    Ok(Progress::Done)
}

/// Nothing is kept at it: it is there for what functions do before one.
const BARRIER: Barrier = Barrier {
    id: 0,
    kind: BarrierKind::Checkpoint,
    alignment: Alignment::Aligned,
    triggered: 0,
    stop: false,
    base: None,
};

fn with_parallelism_1(plan: Plan) -> Plan {
    let Plan { mut logical, execution, warnings, .. } = plan;
    logical.nodes.iter_mut().for_each(|node| node.parallelism = 1);
    let job = JobGraph::new(&logical);
    let execution = ExecutionGraph::new(&job, logical.job.max_parallelism, execution.attempt);
    Plan { logical, job, execution, warnings }
}

#[cfg(test)]
mod tests {
    use millstream_connectors::{read_json_rows, write_json_rows};
    use millstream_graph::{JobFile, JobFormat, SourceText};
    use millstream_wasm::{WasmEngine, WasmOptions};

    use super::*;
    use crate::Catalog;

    const JOB: &str = r#"
        [job]
        name = "two-in-one"
        parallelism = 4

        [source.a]
        connector = "file"
        path = "a.jsonl"
        format = "jsonl"
        schema = { n = "int64", t = "int64" }
        time = { column = "t" }

        [source.b]
        connector = "file"
        path = "b.jsonl"
        format = "jsonl"
        schema = { n = "int64", t = "int64" }
        time = { column = "t" }

        [operator.both]
        builtin = "union"
        input = ["a", "b"]
        parallelism = 2

        [operator.timed]
        builtin = "watermark"
        input = "both"
        time = { column = "t", out-of-orderness = "1s" }

        [sink.first]
        connector = "blackhole"
        input = "timed"

        [sink.second]
        connector = "blackhole"
        input = "a"
    "#;

    fn job() -> SteppedJob {
        let engine = Arc::new(WasmEngine::new(WasmOptions::default()).expect("an engine"));
        let modules = Modules::new(engine);
        let file = JobFile::read(SourceText::new("job.toml", JOB), JobFormat::Toml, &|_| None);
        let plan = Plan::new(file, &modules, &Catalog::new("")).expect("a good job");
        SteppedJob::new(plan, &modules, Arc::default()).expect("it can be built")
    }

    fn node(job: &SteppedJob, name: &str) -> NodeIndex {
        job.plan().logical.iter().find(|(_, n)| n.name == name).expect("it is in the job").0
    }

    fn batch(job: &SteppedJob, source: NodeIndex, line: &str) -> Batch {
        read_json_rows(&job.plan().logical.node(source).outputs[0].schema, &[line]).expect("a row")
    }

    fn show(job: &SteppedJob, arrivals: &[Arrival]) -> Vec<String> {
        let rows = |a: &Arrival| {
            let sink = job.plan().logical.node(a.sink).name.clone();
            let times = a.batch.times().to_vec();
            write_json_rows(&a.batch)
                .expect("JSON")
                .into_iter()
                .map(move |row| format!("{sink} {times:?} {row}"))
        };
        arrivals.iter().flat_map(rows).collect()
    }

    #[tokio::test]
    async fn a_step_brings_rows_to_all_sinks_in_the_same_order() {
        let mut job = job();
        job.open().await.expect("opens");
        let (a, b) = (node(&job, "a"), node(&job, "b"));
        let row = batch(&job, a, r#"{"n":1,"t":5}"#);
        let row = job.with_source_times(a, 0, row).expect("it has a time");
        let arrivals = job.rows(a, 0, row).await.expect("goes through");
        let row = r#"{"n":1,"t":5}"#;
        assert_eq!(show(&job, &arrivals), [format!("first [5] {row}"), format!("second [5] {row}")]);
        let row = batch(&job, b, r#"{"n":2,"t":6}"#);
        let row = job.with_source_times(b, 0, row).expect("it has a time");
        let arrivals = job.rows(b, 0, row).await.expect("goes through");
        assert_eq!(show(&job, &arrivals), [r#"first [6] {"n":2,"t":6}"#]);
        for source in [a, b] {
            assert!(job.watermark(source, 7).await.expect("goes through").is_empty());
            assert!(job.end(source).await.expect("goes through").is_empty());
        }
        job.close().await.expect("closes");
    }

    #[test]
    fn a_row_whose_time_cannot_be_used_is_refused() {
        let job = job();
        let a = node(&job, "a");
        let row = batch(&job, a, &format!(r#"{{"n":1,"t":{}}}"#, i64::MAX));
        let refused = job.with_source_times(a, 0, row).expect_err("there is no such time");
        assert!(refused.reason.contains("out of range"), "{refused}");
    }
}

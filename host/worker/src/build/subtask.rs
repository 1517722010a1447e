//! One subtask: its gate or reader, its chain and its outgoing edges.

use std::{collections::BTreeMap, sync::Arc};

use millstream_graph::{
    JobEdge, LogicalNode, NodeBody, NodeIndex, Partitioning, Plan, SourceNode, Subtask as Planned,
};
use millstream_net::{ChannelId, GateBudget, Transport};
use millstream_operator::{
    Clock, FunctionFactory, Operator, OperatorContext, OperatorError, OperatorMetrics, RowPolicy, Source,
};
use millstream_operators::{
    ReaderOperator, RowErrorSpec, SinkOperator, SinkSpec, SourceSpec, SourceTimes, UnionOperator,
    WatermarkOperator, WatermarkSpec,
};
use millstream_task::{
    Chain, ChainedOperator, CheckpointLink, GateChannel, Input, InputGate, Mailbox, OutgoingChannel,
    Partitioner, ResultPartition, SourceTask, SplitRequests, Subtask, Target, TaskError,
};
use millstream_types::{Attempt, RunId, Schema};

use super::{Blueprint, Part, function};
use crate::restore::RestorePlan;

/// Everything that a subtask is built of, ready to go to the thread that runs it.
pub(crate) struct SubtaskBuilder {
    pub(crate) plan: Arc<Plan>,
    pub(crate) blueprint: Arc<Blueprint>,
    pub(crate) subtask: Planned,
    pub(crate) run: RunId,
    pub(crate) attempt: Attempt,
    /// By position in the chain.
    pub(crate) metrics: Vec<Arc<OperatorMetrics>>,
    /// For a source.
    pub(crate) splits: Option<SplitRequests>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where its snapshots go, if the job takes checkpoints.
    pub(crate) checkpoints: Option<CheckpointLink>,
    /// What the job goes on from.
    pub(crate) restore: Option<RestorePlan>,
}

impl SubtaskBuilder {
    /// Reads what the subtask goes on from, and builds it.
    pub(crate) async fn build_restored(&self, mailbox: Mailbox) -> Result<Subtask, TaskError> {
        // Built first: those who send to it wait for its gate.
        let subtask = self.build(mailbox)?;
        let restore = match &self.restore {
            None => None,
            Some(restore) => {
                Some(restore.subtask(&self.plan, &self.subtask, self.blueprint.state()).await.map_err(
                    |source| TaskError::Restore { subtask: self.name(), source: Box::new(source) },
                )?)
            }
        };
        Ok(Subtask { restore, ..subtask })
    }

    fn name(&self) -> String {
        format!("{}[{}]", self.plan.job.vertex(self.subtask.vertex).name, self.subtask.index)
    }

    /// Builds the subtask. The receiving ends are opened first, so that no sender waits for one that will not come.
    pub(crate) fn build(&self, mailbox: Mailbox) -> Result<Subtask, TaskError> {
        let vertex = self.plan.job.vertex(self.subtask.vertex);
        let gate = self.gate()?;
        let (partitions, edges) = self.partitions()?;
        let mut operators = Vec::with_capacity(vertex.chain.len());
        for (position, chained) in vertex.chain.iter().enumerate() {
            let node = self.plan.logical.node(chained.node);
            let ctx = self.context(node, position);
            let built = self.operator(chained.node, &ctx);
            let operator = built.map_err(|source| TaskError::Operator { operator: ctx.name(), source })?;
            operators.push(ChainedOperator { operator, ctx, outputs: self.outputs(position, node, &edges) });
        }
        let input = match (self.blueprint.source(vertex.head()), &self.splits) {
            (Some(source), Some(splits)) => {
                let ctx = operators[0].ctx.clone();
                let task = self.source(source, vertex.head(), &ctx, splits.clone());
                Input::Source(task.map_err(|source| TaskError::Operator { operator: ctx.name(), source })?)
            }
            _ => Input::Gate(Box::new(gate)),
        };
        let (chain, checkpoints) = (Chain::new(operators, partitions), self.checkpoints.clone());
        Ok(Subtask { input, chain, mailbox, checkpoints, restore: None })
    }

    pub(crate) fn context(&self, node: &LogicalNode, position: usize) -> OperatorContext {
        let parameters = node.function().map(|f| f.parameters.clone()).unwrap_or_default();
        let states = node.function().map(|f| f.declaration.states.clone()).unwrap_or_default();
        OperatorContext {
            job: self.plan.logical.job.name.clone(),
            operator: node.id.clone(),
            subtask: self.subtask.index,
            parallelism: self.subtask.parallelism,
            max_parallelism: self.plan.logical.job.max_parallelism,
            run: self.run,
            attempt: self.attempt,
            parameters: Arc::new(BTreeMap::from_iter(parameters)),
            states: states.into(),
            checkpoints: self.checkpoints.is_some(),
            restored: self.restore.as_ref().is_some_and(|restore| restore.has(&node.id)),
            metrics: self.metrics[position].clone(),
            clock: self.clock.clone(),
        }
    }

    /// The operator of a node; none for a source, which the subtask drives itself.
    pub(crate) fn operator(
        &self,
        index: NodeIndex,
        ctx: &OperatorContext,
    ) -> Result<Option<Box<dyn Operator>>, OperatorError> {
        let node = self.plan.logical.node(index);
        let errors = row_errors(node);
        Ok(Some(match (&node.body, &self.blueprint.parts[index.0]) {
            (NodeBody::Function(f), Part::Function(factory)) => self.function(node, f, &**factory, ctx)?,
            (NodeBody::Watermark(time), _) => {
                let spec = WatermarkSpec {
                    column: Some(time.column),
                    out_of_orderness: millis(time.out_of_orderness),
                    idle_after: time.idle.map(millis),
                    row_errors: errors,
                };
                Box::new(WatermarkOperator::new(spec, ctx.clone()))
            }
            (NodeBody::Union, _) => Box::new(UnionOperator::new(node.outputs[0].schema.clone())),
            (NodeBody::Sink(_), Part::Sink(sink)) => {
                let schema: &Schema = &node.inputs[0].schema;
                Box::new(SinkOperator::new(SinkSpec::default(), sink.writer(schema, ctx)?, ctx.clone()))
            }
            _ => return Ok(None),
        }))
    }

    fn function(
        &self,
        node: &LogicalNode,
        function: &millstream_graph::FunctionNode,
        factory: &dyn FunctionFactory,
        ctx: &OperatorContext,
    ) -> Result<Box<dyn Operator>, OperatorError> {
        function::operator(node, function, row_errors(node), factory.create(ctx)?, ctx, &self.blueprint.state)
    }

    fn source(
        &self,
        source: &dyn Source,
        node: NodeIndex,
        ctx: &OperatorContext,
        splits: SplitRequests,
    ) -> Result<SourceTask, OperatorError> {
        let alignment = self.blueprint.alignment(node).and_then(|group| group.member(self.subtask.index.0));
        let node = self.plan.logical.node(node);
        let NodeBody::Source(body) = &node.body else { unreachable!("only a source has a source") };
        let spec = SourceSpec { times: self.source_times(body), row_errors: row_errors(node) };
        let operator = ReaderOperator::new(spec, source.reader(ctx)?, ctx.clone()).aligned(alignment);
        Ok(SourceTask { operator: Box::new(operator), splits })
    }

    fn source_times(&self, source: &SourceNode) -> Option<SourceTimes> {
        source.time.as_ref().map(|time| SourceTimes {
            columns: time.columns.clone(),
            out_of_orderness: millis(time.out_of_orderness),
            idle_after: time.idle,
            interval: self.plan.logical.job.watermark_interval,
        })
    }

    fn gate(&self) -> Result<InputGate, TaskError> {
        let channels: Vec<_> = self.plan.execution.channels_into(&self.plan.job, &self.subtask).collect();
        let ids: Vec<_> = channels.iter().map(|(_, c)| channel_id(c)).collect();
        let receivers = self
            .transport
            .gate(&ids, GateBudget::of_channels(ids.len()))
            .map_err(|e| self.transport_failed(e))?;
        let port = |c: &millstream_graph::Channel| self.plan.job.edges[c.edge.0].input.index();
        let with_port = channels.iter().zip(receivers).map(|((_, c), receiver)| GateChannel {
            id: channel_id(c),
            port: port(c),
            receiver,
        });
        Ok(InputGate::new(with_port.collect()))
    }

    /// The outgoing edges, and which edge of the job graph each is.
    fn partitions(&self) -> Result<(Vec<ResultPartition>, Vec<usize>), TaskError> {
        let (mut partitions, mut edges) = (Vec::new(), Vec::new());
        for (index, edge) in self.plan.job.edges_out_of(self.subtask.vertex) {
            let all = self.plan.execution.channels_out_of(&self.plan.job, &self.subtask);
            let open = |c| {
                let id = channel_id(c);
                let sender = self.transport.sender(id).map_err(|e| self.transport_failed(e))?;
                Ok(OutgoingChannel { id, sender })
            };
            let senders = all
                .filter(|(_, c)| c.edge == index)
                .map(|(_, c)| open(c))
                .collect::<Result<Vec<_>, TaskError>>()?;
            let timeout = self.plan.logical.job.buffer_timeout;
            partitions.push(ResultPartition::new(
                self.partitioner(edge),
                senders,
                timeout,
                self.subtask.index.0,
            ));
            edges.push(index.0);
        }
        Ok((partitions, edges))
    }

    fn partitioner(&self, edge: &JobEdge) -> Partitioner {
        match &edge.partitioning {
            Partitioning::Forward | Partitioning::Global => Partitioner::Forward,
            Partitioning::Rebalance => Partitioner::Rebalance,
            Partitioning::Broadcast => Partitioner::Broadcast,
            Partitioning::Hash { key } => Partitioner::Hash {
                columns: key.clone(),
                max_parallelism: self.plan.logical.job.max_parallelism,
            },
        }
    }

    /// The targets of each output port of the node at a position of the chain.
    fn outputs(&self, position: usize, node: &LogicalNode, edges: &[usize]) -> Vec<Vec<Target>> {
        let vertex = self.plan.job.vertex(self.subtask.vertex);
        let targets = |port: usize| {
            let chained = vertex.chain.iter().enumerate().filter_map(move |(next, chained)| {
                let input = chained.input.as_ref()?;
                (input.from == position && input.output.index() == port).then_some(Target::Operator(next, 0))
            });
            let sent = edges.iter().enumerate().filter_map(move |(partition, &edge)| {
                let edge = &self.plan.job.edges[edge];
                (edge.chained == position && edge.output.index() == port)
                    .then_some(Target::Partition(partition))
            });
            chained.chain(sent).collect()
        };
        (0..node.outputs.len()).map(targets).collect()
    }

    fn transport_failed(&self, source: millstream_net::TransportError) -> TaskError {
        TaskError::Transport { subtask: self.name(), source }
    }
}

fn channel_id(channel: &millstream_graph::Channel) -> ChannelId {
    ChannelId { edge: channel.edge.0 as u32, from: channel.from.0, to: channel.to.0 }
}

/// What becomes of rows that a node cannot use.
fn row_errors(node: &LogicalNode) -> RowErrorSpec {
    let policy = match node.on_error {
        millstream_graph::RowPolicy::Fail => RowPolicy::Fail,
        millstream_graph::RowPolicy::Skip => RowPolicy::Skip,
        millstream_graph::RowPolicy::DeadLetter => RowPolicy::DeadLetter,
    };
    RowErrorSpec { policy, port: node.dead_letter_port().map_or(usize::MAX, |p| p.index()) }
}

pub(super) fn millis(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

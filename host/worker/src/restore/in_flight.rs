//! What was under way in channels at a snapshot, for those who send it again.

use std::collections::BTreeMap;

use millstream_graph::{LogicalEdge, Partitioning, Plan, Subtask};
use millstream_net::ChannelId;
use millstream_snapshot::StateMetadata;
use millstream_state::decode_channel;
use millstream_storage::StoredSnapshot;
use millstream_task::{Overtaken, Resent, Target, deal};
use millstream_types::StateForm;

use super::{RestoreError, RestorePlan};
use crate::edges::{EdgeName, exchange_of};

/// What was under way on the edges of a job, by their names.
#[derive(Debug, Default)]
pub(super) struct StoredEdges(BTreeMap<String, StoredEdge>);

#[derive(Debug)]
struct StoredEdge {
    /// How many subtasks sent.
    senders: u32,
    /// What they had sent, and then what they had not.
    received: Vec<Overtaken>,
    unsent: Vec<Overtaken>,
}

/// That rows which all were to get can be given to those who had not got them.
pub(super) fn check_broadcast(snapshot: &StoredSnapshot, plan: &Plan) -> Result<(), RestoreError> {
    for edge in plan.logical.edges.iter().filter(|edge| edge.partitioning == Partitioning::Broadcast) {
        let EdgeName { name, from, to, .. } = EdgeName::of(plan, edge);
        let Some(receiver) = snapshot.metadata.operator(to.as_str()) else { continue };
        let sender = snapshot.metadata.operator(from.as_str()).into_iter();
        let mut states = sender.chain([receiver]).flat_map(|operator| operator.states());
        let (found, wanted) = (receiver.subtasks.len(), plan.logical.node(edge.to).parallelism);
        if found != wanted as usize && states.any(|state| state.name == name && !state.chunks.is_empty()) {
            return Err(RestoreError::Broadcast { edge: name, found, wanted });
        }
    }
    Ok(())
}

impl RestorePlan {
    /// What a subtask sends again.
    pub(super) async fn resent(&self, plan: &Plan, subtask: &Subtask) -> Result<Vec<Resent>, RestoreError> {
        let stored = self.in_flight.get_or_try_init(|| self.read_in_flight(plan)).await?;
        let mut all = Vec::new();
        for edge in &plan.logical.edges {
            let Some(stored) = stored.0.get(&EdgeName::of(plan, edge).name) else { continue };
            let Some(target) = target(plan, edge, subtask) else { continue };
            let StoredEdge { senders, received, unsent } = stored;
            let elements = deal(received, unsent, *senders, subtask.index.0, subtask.parallelism);
            all.push(Resent { target, elements });
        }
        Ok(all)
    }

    async fn read_in_flight(&self, plan: &Plan) -> Result<StoredEdges, RestoreError> {
        let mut edges = BTreeMap::new();
        if !self.snapshot.metadata.is_unaligned() {
            return Ok(StoredEdges(edges));
        }
        for edge in &plan.logical.edges {
            let edge = EdgeName::of(plan, edge);
            let received = self.overtaken(&edge, edge.to.as_str()).await?;
            let unsent = self.overtaken(&edge, edge.from.as_str()).await?;
            let sender = self.snapshot.metadata.operator(edge.from.as_str());
            let senders = sender.map_or(0, |operator| operator.subtasks.len() as u32);
            edges.insert(edge.name, StoredEdge { senders, received, unsent });
        }
        Ok(StoredEdges(edges))
    }

    /// What the subtasks of an operator have of an edge, as the edge has its rows now.
    async fn overtaken(&self, edge: &EdgeName, operator: &str) -> Result<Vec<Overtaken>, RestoreError> {
        let Some(operator) = self.snapshot.metadata.operator(operator) else { return Ok(Vec::new()) };
        let is_edge = |state: &&StateMetadata| state.form == StateForm::Overtaken && state.name == edge.name;
        let mut overtaken = Vec::new();
        for state in operator.states().filter(is_edge).filter(|state| !state.chunks.is_empty()) {
            let Some(part) = self.part(operator, state, None).await? else { continue };
            for chunk in &part.chunks {
                let content = decode_channel(&chunk.bytes, &edge.schema);
                let failed = |source| RestoreError::State { operator: operator.id.clone(), source };
                let content = content.map_err(failed)?;
                // The number of the edge is of no interest any more.
                let channel = ChannelId { edge: 0, from: content.from, to: content.to };
                overtaken.push(Overtaken { channel, elements: content.elements });
            }
        }
        Ok(overtaken)
    }
}

/// Where the rows of an edge go from the chain of a subtask; none if they do not come from there.
fn target(plan: &Plan, edge: &LogicalEdge, subtask: &Subtask) -> Option<Target> {
    let vertex = plan.job.vertex(subtask.vertex);
    let position = |node| vertex.chain.iter().position(|chained| chained.node == node);
    position(edge.from)?;
    match exchange_of(plan, edge) {
        Some(exchange) => {
            let mut edges = plan.job.edges_out_of(subtask.vertex);
            edges.position(|(index, _)| index.0 == exchange).map(Target::Partition)
        }
        None => Some(Target::Operator(position(edge.to)?, edge.input.index())),
    }
}

//! The edges of a plan as snapshots name them: what was under way on one is found again by its name, whatever operators are
//! chained by then.

use millstream_graph::{JobEdge, LogicalEdge, Partitioning, Plan};
use millstream_types::{OperatorId, Schema};

/// An edge between two operators.
#[derive(Clone, Debug)]
pub(crate) struct EdgeName {
    /// Its name, under which both operators keep what was under way.
    pub(crate) name: String,
    /// The operator that sends.
    pub(crate) from: OperatorId,
    /// The operator that receives.
    pub(crate) to: OperatorId,
    /// The rows.
    pub(crate) schema: Schema,
}

impl EdgeName {
    /// Of an edge between operators, which may be chained.
    pub(crate) fn of(plan: &Plan, edge: &LogicalEdge) -> Self {
        let (from, to) = (&plan.logical.node(edge.from).id, &plan.logical.node(edge.to).id);
        // What each receiver has under way is its own only where all get all.
        let to_all = if edge.partitioning == Partitioning::Broadcast { " (broadcast)" } else { "" };
        Self {
            name: format!("{from}:{} -> {to}:{}{to_all}", edge.output.index(), edge.input.index()),
            from: from.clone(),
            to: to.clone(),
            schema: plan.logical.edge_schema(edge).clone(),
        }
    }

    /// Of the exchanges of a job, by position.
    pub(crate) fn of_exchanges(plan: &Plan) -> Vec<Self> {
        plan.job.edges.iter().map(|exchange| Self::of(plan, &as_logical(plan, exchange))).collect()
    }
}

/// The exchange of an edge, by position; none if its operators are chained.
pub(crate) fn exchange_of(plan: &Plan, edge: &LogicalEdge) -> Option<usize> {
    plan.job.edges.iter().position(|exchange| as_logical(plan, exchange) == *edge)
}

fn as_logical(plan: &Plan, exchange: &JobEdge) -> LogicalEdge {
    LogicalEdge {
        from: plan.job.vertex(exchange.from).chain[exchange.chained].node,
        output: exchange.output,
        to: plan.job.vertex(exchange.to).head(),
        input: exchange.input,
        partitioning: exchange.partitioning.clone(),
    }
}

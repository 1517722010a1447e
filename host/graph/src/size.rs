//! How much of everything a job needs in the one process that runs it. What is too much is refused before subtasks and
//! channels are spelled out, which by itself would take the memory.

use millstream_types::Limits;

use crate::{JobEdge, JobGraph, LogicalGraph, NodeBody, Partitioning, problem::Problem};

/// What is too much.
pub(crate) fn check(logical: &LogicalGraph, job: &JobGraph) -> Vec<Problem> {
    let channels: u64 = job.edges.iter().map(|edge| channels(job, edge)).sum();
    let functions = logical.nodes.iter().filter(|node| matches!(node.body, NodeBody::Function(_)));
    let instances: u64 = functions.map(|node| u64::from(node.parallelism)).sum();
    let mut problems = Vec::new();
    if channels > Limits::CHANNELS {
        problems.push(too_much(channels, "channels between subtasks", Limits::CHANNELS));
    }
    if instances > u64::from(Limits::INSTANCES) {
        problems.push(too_much(instances, "instances of functions", u64::from(Limits::INSTANCES)));
    }
    problems
}

fn too_much(needed: u64, what: &str, most: u64) -> Problem {
    let message = format!("the job needs {needed} {what}: expected at most {most} in one process");
    Problem::error(message).help("run it with a lower parallelism")
}

fn channels(job: &JobGraph, edge: &JobEdge) -> u64 {
    let [senders, receivers] = [edge.from, edge.to].map(|vertex| u64::from(job.vertex(vertex).parallelism));
    match edge.partitioning {
        Partitioning::Forward | Partitioning::Global => senders,
        Partitioning::Hash { .. } | Partitioning::Rebalance | Partitioning::Broadcast => senders * receivers,
    }
}
